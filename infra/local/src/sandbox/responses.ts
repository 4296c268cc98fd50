import { z } from 'zod';
import {
  Content,
  composeReply,
  endpoint,
  type SandboxAnswer,
  type SandboxEvent,
  type SandboxRefusal,
  type SandboxReply,
  textOf,
  tooLong,
  unixSeconds,
} from './reply.ts';

// The shapes of platform.openai.com/docs/api-reference: responses and responses-streaming.

/** POST /v1/responses, and a turn on its socket. The endpoint remembers its responses, which later ones can continue. */
export function responses(): (body: unknown, id: string) => SandboxAnswer {
  const conversations = new Conversations();
  return endpoint(Body, (body, id) => {
    const { previous_response_id: previous } = body;
    const before = conversations.tokensOf(previous);
    if (before === undefined) return notFound(previous ?? '');
    const said =
      typeof body.input === 'string' ? [body.input] : body.input.map(({ content }) => textOf(content));
    const own = composeReply(
      [...(body.instructions ? [body.instructions] : []), ...said],
      body.max_output_tokens,
    );
    const reply = { ...own, inputTokens: before + own.inputTokens };
    const long = tooLong(reply.inputTokens, 'input');
    if (long) return long;
    const response = {
      id: `resp_${id}`,
      object: 'response',
      created_at: unixSeconds(),
      model: body.model,
      instructions: body.instructions ?? null,
      max_output_tokens: body.max_output_tokens ?? null,
      ...UNUSED_SETTINGS,
      previous_response_id: previous ?? null,
    };
    if (body.generate === false) return { events: warmUp(conversations, response, reply) };
    conversations.remember(response.id, reply.inputTokens + reply.outputTokens);
    if (body.stream) return { events: responseEvents(response, id, reply) };
    return { json: finished(response, id, reply) };
  });
}

const Body = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(z.looseObject({ content: Content })).min(1)]),
  instructions: z.string().nullish(),
  max_output_tokens: z.int().min(1).nullish(),
  previous_response_id: z.string().nullish(),
  stream: z.boolean().nullish(),
  // A field of sockets: false prepares a later turn.
  generate: z.boolean().nullish(),
});

/** The tokens of the last conversations, by the id of the response that each ended with. */
class Conversations {
  readonly #tokens = new Map<string, number>();

  /** 0 for a conversation that begins. Undefined: no response has this id. */
  tokensOf(responseId: string | null | undefined): number | undefined {
    return responseId == null ? 0 : this.#tokens.get(responseId);
  }

  remember(responseId: string, tokens: number): void {
    this.#tokens.set(responseId, tokens);
    const [oldest] = this.#tokens.keys();
    if (this.#tokens.size > MOST_CONVERSATIONS && oldest !== undefined) this.#tokens.delete(oldest);
  }
}

const MOST_CONVERSATIONS = 1_000;

/** Refused as developers.openai.com/api/docs/guides/websocket-mode shows it (2026-11-29). */
const notFound = (id: string): SandboxRefusal => ({
  refused: 'unknown_response',
  message: `Previous response with id '${id}' not found.`,
  param: 'previous_response_id',
});

/** Fields that every response has, at their defaults. */
const UNUSED_SETTINGS = {
  error: null,
  metadata: {},
  parallel_tool_calls: true,
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
    usage: usageOf(reply.inputTokens, reply.outputTokens),
  };
}

function usageOf(inputTokens: number, outputTokens: number): object {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
}

/** A response without output, from which a turn can go on. */
function warmUp(
  conversations: Conversations,
  response: { readonly id: string },
  { inputTokens }: SandboxReply,
): SandboxEvent[] {
  conversations.remember(response.id, inputTokens);
  const end = { ...response, status: 'completed', output: [], usage: usageOf(inputTokens, 0) };
  return numbered([
    { type: 'response.created', response: begun(response) },
    { type: 'response.completed', response: { ...end, incomplete_details: null } },
  ]);
}

const begun = (response: object): object => ({
  ...response,
  status: 'in_progress',
  incomplete_details: null,
  output: [],
  usage: null,
});

function responseEvents(response: object, id: string, reply: SandboxReply): SandboxEvent[] {
  const item = { ...message(id), status: statusOf(reply), content: [outputText(reply.text)] };
  const place = { item_id: message(id).id, output_index: 0, content_index: 0 };
  return numbered([
    { type: 'response.created', response: begun(response) },
    { type: 'response.in_progress', response: begun(response) },
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
  ]);
}

const numbered = (sequence: readonly { type: string; [field: string]: unknown }[]): SandboxEvent[] =>
  sequence.map((data, sequence_number) => ({ event: data.type, data: { ...data, sequence_number } }));

function statusOf(reply: SandboxReply): 'completed' | 'incomplete' {
  return reply.isCut ? 'incomplete' : 'completed';
}

function message(id: string) {
  return { type: 'message', id: `msg_${id}`, role: 'assistant' };
}

function outputText(text: string): object {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}
