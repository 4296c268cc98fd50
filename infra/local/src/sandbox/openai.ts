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
  tooLong,
  unixSeconds,
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
    const long = tooLong(reply.inputTokens, 'messages');
    if (long) return long;
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
    const long = tooLong(tokens, 'input');
    if (long) return long;
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
    unknown_response: 'previous_response_not_found',
    too_long: 'context_length_exceeded',
    invalid: null,
    unknown_path: null,
    overloaded: null,
  };
  const type = refused === 'overloaded' ? 'server_error' : 'invalid_request_error';
  return { error: { message, type, param: param ?? null, code: code[refused] } };
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
