import { createHash } from 'node:crypto';
import { z } from 'zod';
import {
  Content,
  composeReply,
  countTokens,
  endpoint,
  SANDBOX_MODELS,
  type SandboxEvent,
  type SandboxRefusal,
  type SandboxReply,
  textOf,
} from './reply.ts';

// The shapes of platform.openai.com/docs/api-reference: chat, embeddings, models, and its errors.

/** POST /v1/chat/completions */
export const chatCompletions = endpoint(
  z.looseObject({
    model: z.string(),
    messages: z.array(z.looseObject({ role: z.string(), content: Content })).min(1),
    max_tokens: z.int().min(1).nullish(),
    max_completion_tokens: z.int().min(1).nullish(),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  }),
  (body, id) => {
    const texts = body.messages.map(({ content }) => textOf(content));
    const reply = composeReply(texts, body.max_completion_tokens ?? body.max_tokens);
    const head = { id: `chatcmpl-${id}`, created: unixSeconds(), model: body.model };
    if (body.stream) return { events: chatChunks(head, reply, body.stream_options?.include_usage === true) };
    const message = { role: 'assistant', content: reply.text, refusal: null };
    const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(reply) };
    return { json: { ...head, object: 'chat.completion', choices: [choice], usage: chatUsage(reply) } };
  },
);

/** POST /v1/embeddings */
export const embeddings = endpoint(
  z.looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.string()).min(1)]),
    encoding_format: z.enum(['float', 'base64']).nullish(),
    dimensions: z.int().min(1).max(1_024).nullish(),
  }),
  (body) => {
    const texts = typeof body.input === 'string' ? [body.input] : body.input;
    const data = texts.map((text, index) => {
      const vector = vectorOf(text, body.dimensions ?? 8);
      const embedding = body.encoding_format === 'base64' ? asBase64(vector) : vector;
      return { object: 'embedding', index, embedding };
    });
    const tokens = countTokens(texts);
    const usage = { prompt_tokens: tokens, total_tokens: tokens };
    return { json: { object: 'list', data, model: body.model, usage } };
  },
);

/** GET /v1/models */
export function openaiModels(): object {
  const model = { object: 'model', created: 1_735_689_600, owned_by: 'sandbox' };
  const data = SANDBOX_MODELS.map((id) => ({ id, ...model }));
  return { object: 'list', data };
}

export function openaiError({ refused, message, param }: SandboxRefusal): object {
  const code = {
    unauthenticated: 'invalid_api_key',
    unknown_model: 'model_not_found',
    invalid: null,
    unknown_path: null,
    overloaded: null,
  };
  const type = refused === 'overloaded' ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: param ?? null, code: code[refused] } };
}

function unixSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

function chatChunks(head: object, reply: SandboxReply, includeUsage: boolean): SandboxEvent[] {
  // With include_usage every chunk has the field, null but in the one after the last choice.
  const common = { ...head, object: 'chat.completion.chunk', ...(includeUsage ? { usage: null } : {}) };
  const chunk = (delta: object, finish_reason: string | null): SandboxEvent => ({
    data: { ...common, choices: [{ index: 0, delta, logprobs: null, finish_reason }] },
  });
  return [
    chunk({ role: 'assistant', content: '', refusal: null }, null),
    ...reply.pieces.map((content) => chunk({ content }, null)),
    chunk({}, finishReason(reply)),
    ...(includeUsage ? [{ data: { ...common, choices: [], usage: chatUsage(reply) } }] : []),
    { data: '[DONE]' },
  ];
}

function finishReason(reply: SandboxReply): 'stop' | 'length' {
  return reply.isCut ? 'length' : 'stop';
}

function chatUsage({ inputTokens, outputTokens }: SandboxReply): object {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
  };
}

/** A unit vector that depends on every byte of the text and on nothing else. */
function vectorOf(text: string, dimensions: number): number[] {
  const raw = Array.from({ length: dimensions }, (_, index) => {
    const digest = createHash('sha256').update(`${index}:${text}`).digest();
    return digest.readInt32BE(0) / 2 ** 31;
  });
  const length = Math.hypot(...raw) || 1;
  return raw.map((value) => value / length);
}

function asBase64(vector: number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString('base64');
}

// The shapes of platform.openai.com/docs/api-reference: responses and responses-streaming.

/** POST /v1/responses */
export const responses = endpoint(
  z.looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.looseObject({ content: Content })).min(1)]),
    instructions: z.string().nullish(),
    max_output_tokens: z.int().min(1).nullish(),
    stream: z.boolean().nullish(),
  }),
  (body, id) => {
    const said =
      typeof body.input === 'string' ? [body.input] : body.input.map(({ content }) => textOf(content));
    const reply = composeReply(
      [...(body.instructions ? [body.instructions] : []), ...said],
      body.max_output_tokens,
    );
    const response = {
      id: `resp_${id}`,
      object: 'response',
      created_at: unixSeconds(),
      model: body.model,
      instructions: body.instructions ?? null,
      max_output_tokens: body.max_output_tokens ?? null,
      ...UNUSED_SETTINGS,
    };
    if (body.stream) return { events: responseEvents(response, id, reply) };
    return { json: finished(response, id, reply) };
  },
);

/** Fields that every response has, at their defaults. */
const UNUSED_SETTINGS = {
  error: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  text: { format: { type: 'text' } },
  truncation: 'disabled',
};

function finished(response: object, id: string, reply: SandboxReply): object {
  return {
    ...response,
    status: statusOf(reply),
    incomplete_details: reply.isCut ? { reason: 'max_output_tokens' } : null,
    output: [{ ...message(id), status: statusOf(reply), content: [outputText(reply.text)] }],
    usage: {
      input_tokens: reply.inputTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: reply.outputTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: reply.inputTokens + reply.outputTokens,
    },
  };
}

function responseEvents(response: object, id: string, reply: SandboxReply): SandboxEvent[] {
  const begun = { ...response, status: 'in_progress', incomplete_details: null, output: [], usage: null };
  const item = { ...message(id), status: statusOf(reply), content: [outputText(reply.text)] };
  const place = { item_id: message(id).id, output_index: 0, content_index: 0 };
  const sequence: { type: string; [field: string]: unknown }[] = [
    { type: 'response.created', response: begun },
    { type: 'response.in_progress', response: begun },
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...place, part: outputText('') },
    ...reply.pieces.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...place, text: reply.text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part: outputText(reply.text) },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: `response.${statusOf(reply)}`, response: finished(response, id, reply) },
  ];
  return sequence.map((data, sequence_number) => ({ event: data.type, data: { ...data, sequence_number } }));
}

function statusOf(reply: SandboxReply): 'completed' | 'incomplete' {
  return reply.isCut ? 'incomplete' : 'completed';
}

function message(id: string) {
  return { type: 'message', id: `msg_${id}`, role: 'assistant' };
}

function outputText(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}
