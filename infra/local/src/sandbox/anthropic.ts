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

// The shapes of the Messages API (platform.claude.com/docs/en/api: messages, streaming, errors).

const Conversation = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string(), content: Content })).min(1),
  system: Content,
});

/** POST /v1/messages */
export const messages = endpoint(
  Conversation.extend({ max_tokens: z.int().min(1), stream: z.boolean().nullish() }),
  (body, id) => {
    const reply = composeReply(textsOf(body), body.max_tokens);
    const message = { id: `msg_${id}`, type: 'message', role: 'assistant', model: body.model };
    if (body.stream) return { events: messageEvents(message, reply) };
    const content = [{ type: 'text', text: reply.text, citations: null }];
    return { json: { ...message, content, ...stopped(reply), usage: usageOf(reply, reply.outputTokens) } };
  },
);

/** POST /v1/messages/count_tokens */
export const countMessageTokens = endpoint(Conversation, (body) => ({
  json: { input_tokens: countTokens(textsOf(body)) },
}));

/** GET /v1/models */
export function anthropicModels(): object {
  const data = SANDBOX_MODELS.map((id) => ({
    type: 'model',
    id,
    display_name: id,
    created_at: '2025-01-01T00:00:00Z',
  }));
  return { data, has_more: false, first_id: data[0]?.id, last_id: data.at(-1)?.id };
}

export function anthropicError({ refused, message }: SandboxRefusal, id: string): object {
  const type = {
    unauthenticated: 'authentication_error',
    invalid: 'invalid_request_error',
    unknown_model: 'not_found_error',
    unknown_path: 'not_found_error',
  }[refused];
  return { type: 'error', error: { type, message }, request_id: `req_${id}` };
}

function textsOf({ system, messages }: z.infer<typeof Conversation>): string[] {
  const said = messages.map(({ content }) => textOf(content));
  return system == null ? said : [textOf(system), ...said];
}

/** The input is counted in the first event, the output in the one before the last. */
function messageEvents(message: object, reply: SandboxReply): SandboxEvent[] {
  const start = { ...message, content: [], stop_reason: null, stop_sequence: null, usage: usageOf(reply, 1) };
  const sequence: { type: string; [field: string]: unknown }[] = [
    { type: 'message_start', message: start },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '', citations: null } },
    { type: 'ping' },
    ...reply.pieces.map((text) => ({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text },
    })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: stopped(reply), usage: { output_tokens: reply.outputTokens } },
    { type: 'message_stop' },
  ];
  return sequence.map((data) => ({ event: data.type, data }));
}

function stopped(reply: SandboxReply) {
  return { stop_reason: reply.isCut ? 'max_tokens' : 'end_turn', stop_sequence: null };
}

function usageOf({ inputTokens }: SandboxReply, outputTokens: number): object {
  return {
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: outputTokens,
    service_tier: 'standard',
  };
}
