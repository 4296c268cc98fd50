import type { ServerResponse } from 'node:http';
import { startUpstream, type Upstream } from '../../harness/upstream.ts';

/** The answer to every prompt without a tool. */
export const SAYS = 'Presigned URLs expire.';
/** The text of the file that an agent reads with its tool, and a word of it that the model repeats. */
export const NOTE = 'The word of the day is quince.';
export const WORD = 'quince';
/** The prompt that the model answers with a tool call. */
export const READ = 'Read note.txt and say its word';

/** The prompt that the model answers with a call of an MCP server's tool `get-sum`, and the sum that it repeats. */
export const ADD = 'Add 111111 and 222222 with the tool';
export const SUM = '333333';

/** `input` is a text for a tool that takes one. */
export type ToolCall = { readonly name: string; readonly input: object | string };

/** Agents forget a call whose id they know. */
let calls = 0;
const newId = (prefix: string): string => `${prefix}_${++calls}`;

type Reply = { readonly text: string } | { readonly call: ToolCall };
type Event = object & { readonly type: string };

/**
 * A provider with the APIs of OpenAI, Anthropic and Google, as agents stream them. It asks for a tool where the prompt is `READ`, and
 * says `WORD` when it has the file's text.
 * @param toolOf the tool that the agent of this test has
 */
export function startAgentProvider(toolOf: () => ToolCall | undefined): Promise<Upstream> {
  return startUpstream(({ url, body }, response) => {
    const asked = body.toString();
    const reply = replyTo(asked, toolOf);
    const { model = '', stream = false } = asked.startsWith('{')
      ? (JSON.parse(asked) as { model?: string; stream?: boolean })
      : {};
    if (url.includes('count_tokens')) return sendJson(response, { input_tokens: 100 });
    if (url.includes('/messages')) return sendMessages(response, model, stream, reply);
    if (url.includes('/responses')) return sendEvents(response, responses(model, reply));
    if (url.includes('/chat/completions')) return sendChat(response, model, stream, reply);
    if (url.includes(':streamGenerateContent')) return sendData(response, [gemini(reply)]);
    if (url.includes(':generateContent')) return sendJson(response, gemini(reply));
    return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  });
}

function replyTo(asked: string, toolOf: () => ToolCall | undefined): Reply {
  if (asked.includes(NOTE)) return { text: `The word is ${WORD}.` };
  if (asked.includes(SUM)) return { text: `The sum is ${SUM}.` };
  const reads = asked.includes(READ) && asked.includes('"tools"') ? toolOf() : undefined;
  const call = reads ?? (asked.includes(ADD) ? addOf(asked) : undefined);
  return call === undefined ? { text: SAYS } : { call };
}

/** The tool `get-sum` as the agent names it: most put the server's name before it. */
function addOf(asked: string): ToolCall | undefined {
  const input = { a: 111_111, b: 222_222 };
  const name = /"name":"([\w-]*get-sum)"/.exec(asked)?.[1];
  if (name !== undefined) return { name, input };
  // Codex runs the model's program, which calls tools, and names some of them only there.
  if (asked.includes('Deferred tool namespaces'))
    return { name: 'exec', input: `text(await tools.mcp__sums__get_sum(${JSON.stringify(input)}))` };
  // Claude Code names its tools, and has their schemas ready for a search.
  const deferred = /mcp__sums__get-sum/.exec(asked)?.[0];
  if (deferred === undefined) return undefined;
  const query = `select:${deferred}`;
  return asked.includes(query) ? { name: deferred, input } : { name: 'ToolSearch', input: { query } };
}

const sendJson = (response: ServerResponse, body: object) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));

const sendData = (response: ServerResponse, chunks: readonly object[], end = '') =>
  void response
    .writeHead(200, { 'content-type': 'text/event-stream' })
    .end(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('') + end);

const sendEvents = (response: ServerResponse, events: readonly Event[]) =>
  void response
    .writeHead(200, { 'content-type': 'text/event-stream' })
    .end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));

/** https://platform.claude.com/docs/en/build-with-claude/streaming */
function sendMessages(response: ServerResponse, model: string, stream: boolean, reply: Reply): void {
  const usage = { input_tokens: 10, output_tokens: 5 };
  const stop_reason = 'call' in reply ? 'tool_use' : 'end_turn';
  const block =
    'call' in reply
      ? { type: 'tool_use', id: newId('toolu'), name: reply.call.name, input: reply.call.input }
      : { type: 'text', text: reply.text };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model, stop_sequence: null, usage };
  if (!stream) {
    sendJson(response, { ...message, content: [block], stop_reason });
    return;
  }
  const begun = 'call' in reply ? { ...block, input: {} } : { ...block, text: '' };
  const delta =
    'call' in reply
      ? { type: 'input_json_delta', partial_json: JSON.stringify(reply.call.input) }
      : { type: 'text_delta', text: reply.text };
  sendEvents(response, [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } } as Event,
    { type: 'content_block_start', index: 0, content_block: begun } as Event,
    { type: 'content_block_delta', index: 0, delta } as Event,
    { type: 'content_block_stop', index: 0 } as Event,
    { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage } as Event,
    { type: 'message_stop' },
  ]);
}

/** https://platform.openai.com/docs/api-reference/responses-streaming */
function responses(model: string, reply: Reply): readonly Event[] {
  const item = 'call' in reply ? calledItem(reply.call) : messageItem(reply.text);
  const usage = {
    ...{ input_tokens: 10, output_tokens: 5, total_tokens: 15 },
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
  const response = { id: 'resp_1', object: 'response', model, status: 'completed', output: [item], usage };
  return [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } } as Event,
    {
      type: 'response.output_item.added',
      output_index: 0,
      item: { ...item, status: 'in_progress' },
    } as Event,
    ...('text' in reply ? [textDelta(reply.text)] : argumentsOf(item)),
    { type: 'response.output_item.done', output_index: 0, item } as Event,
    { type: 'response.completed', response } as Event,
  ];
}

const textDelta = (delta: string): Event =>
  ({
    type: 'response.output_text.delta',
    item_id: 'msg_1',
    output_index: 0,
    content_index: 0,
    delta,
  }) as Event;

/** Continue reads the arguments here. */
const argumentsOf = ({
  id,
  ...item
}: {
  readonly id: string;
  readonly arguments?: string;
}): readonly Event[] =>
  item.arguments === undefined
    ? []
    : [
        {
          type: 'response.function_call_arguments.delta',
          output_index: 0,
          item_id: id,
          delta: item.arguments,
        } as Event,
        { type: 'response.function_call_arguments.done', output_index: 0, item_id: id, ...item } as Event,
      ];

const messageItem = (text: string) => ({
  ...{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' },
  content: [{ type: 'output_text', text, annotations: [] }],
});

const calledItem = ({ input, ...named }: ToolCall) => ({
  ...{ call_id: newId('call'), status: 'completed', ...named },
  ...(typeof input === 'string'
    ? { type: 'custom_tool_call', id: newId('ctc'), input }
    : { type: 'function_call', id: newId('fc'), arguments: JSON.stringify(input) }),
});

/** https://platform.openai.com/docs/api-reference/chat-streaming */
function sendChat(response: ServerResponse, model: string, stream: boolean, reply: Reply): void {
  const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
  const finish_reason = 'call' in reply ? 'tool_calls' : 'stop';
  const message = 'call' in reply ? { tool_calls: [chatCall(reply.call)] } : { content: reply.text };
  const answer = { id: 'chatcmpl-1', created: 1_700_000_000, model };
  if (!stream) {
    const choice = { index: 0, message: { role: 'assistant', ...message }, finish_reason };
    sendJson(response, { ...answer, object: 'chat.completion', choices: [choice], usage });
    return;
  }
  const chunk = { ...answer, object: 'chat.completion.chunk' };
  const choice = { index: 0, delta: { role: 'assistant', ...message }, finish_reason: null };
  const last = { index: 0, delta: {}, finish_reason };
  const chunks = [{ choices: [choice] }, { choices: [last] }, { choices: [], usage }];
  sendData(
    response,
    chunks.map((each) => ({ ...chunk, ...each })),
    'data: [DONE]\n\n',
  );
}

const chatCall = ({ name, input }: ToolCall) => ({
  ...{ index: 0, id: newId('call'), type: 'function' },
  function: { name, arguments: JSON.stringify(input) },
});

/** https://ai.google.dev/api/generate-content */
const gemini = (reply: Reply) => ({
  candidates: [
    {
      content: {
        role: 'model',
        parts: [
          'call' in reply
            ? { functionCall: { name: reply.call.name, args: reply.call.input } }
            : { text: reply.text },
        ],
      },
      finishReason: 'STOP',
      index: 0,
    },
  ],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
  modelVersion: 'gemini-2.5-flash',
});
