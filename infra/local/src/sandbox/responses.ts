import { z } from 'zod';
import { endpoint, type SandboxEvent } from './answer.ts';
import { unixSeconds } from './openai.ts';
import { Content, composeReply, type SandboxReply, textOf } from './reply.ts';

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
