import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, post, toolCall, urlOf } from './holder.ts';
import { listen, openSession } from './listen.ts';
import { listId, type McpUpstream, startMcpUpstream } from './upstream.ts';

let stack: Stack;
let upstream: McpUpstream;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2 });
  upstream = await startMcpUpstream();
});
afterAll(async () => {
  await stack?.close();
  await upstream?.close();
});
beforeEach(() => {
  upstream.behaves = undefined;
});

const issue = (url: string, transport: string) =>
  stack.issueMcp({ servers: [{ name: 'a', url, transport, tools: ['add', 'other'] }] });

const TOOLS = ['delete', 'add', 'drop', 'other'].map((name) => ({ name, inputSchema: { type: 'object' } }));
const ALLOWED = TOOLS.filter(({ name }) => name === 'add' || name === 'other');
const listed = (tools: readonly object[]) => JSON.stringify({ jsonrpc: '2.0', id: 7, result: { tools } });

const MB_5 = 5 * 1024 * 1024;
/** Results of calls, as their server writes them. */
const RESULTS = {
  'with a list of tools': JSON.stringify({ tools: TOOLS }),
  'of 5 MB with escapes': `{"content":[{"type":"text","text":"${'\\u002B'.repeat(MB_5 / 6)}"}]}`,
  'of 5 MB with a key "tools"': JSON.stringify({
    structuredContent: { tools: TOOLS },
    text: 'x'.repeat(MB_5),
  }),
  'of 5 MB with methods': JSON.stringify({ '"method"': 'endpoint '.repeat(MB_5 / 9), tools: TOOLS }),
  'of very many parts': JSON.stringify({ tools: TOOLS, parts: Array(60_000).fill(1) }),
};
const called = (result: string, id: number) => `{"jsonrpc":"2.0","result":${result},"id":${id}}`;

describe.each(Object.entries(RESULTS))('a result %s', (_what, result) => {
  const batch = (tools: readonly object[]) =>
    `[${called(result, 5)} , ${listed(tools)},{"jsonrpc":"2.0","method":"notifications/message"},${called('{}', 8)}]`;
  const [sent, shown] = [batch(TOOLS), batch(ALLOWED)];

  /** Opens requests on a stream of the older transport, then lets its server write this event. */
  async function hear(data: string) {
    const issued = urlOf(await issue(upstream.sseUrl, 'sse'), 'a');
    const { stream, endpoint } = await openSession(stack, issued);
    upstream.behaves = ({ method }, response) => method === 'POST' && response.writeHead(202).end() && true;
    await post(at(stack, 0, endpoint), toolCall('add', 5));
    await post(at(stack, 1, endpoint), [ask('tools/list', 7), toolCall('add', 8)]);
    const written = data.replace('"id":7', `"id":${listId(upstream)}`);
    for (const each of upstream.streams) each.write(`event: message\ndata: ${written}\n\n`);
    const end = `event: message\ndata: ${called('{"is":"over"}', 8)}\n\n`;
    for (const each of upstream.streams) each.write(end);
    await eventually(async () => stream.text().endsWith(end) || (await Promise.race([stream.over, false])));
    stream.leave();
    return stream.text().split('\n\n');
  }

  test('passes with its id over HTTP+SSE', async () => {
    expect((await hear(called(result, 5)))[1] === `event: message\ndata: ${called(result, 5)}`).toBe(true);
  });

  test('passes with its id in a batch with a list over HTTP+SSE, and the list has the allowed tools', async () => {
    expect((await hear(sent))[1] === `event: message\ndata: ${shown}`).toBe(true);
  });

  test('passes with its id in a batch without a list over HTTP+SSE', async () => {
    const data = `[${called(result, 5)},${called('{}', 8)}]`;
    expect((await hear(data))[1] === `event: message\ndata: ${data}`).toBe(true);
  });

  /** Resumes the stream of a POST after its first event, at another gateway. */
  async function resumed(message: object, data: string) {
    const first = 'id: 1\ndata: \n\n';
    upstream.behaves = ({ method }, response) =>
      response
        .writeHead(200, { 'content-type': 'text/event-stream' })
        .end(
          method === 'POST'
            ? first
            : `event: message\ndata: ${data.replace('"id":7', `"id":${listId(upstream)}`)}\n\n`,
        );
    const issued = urlOf(await issue(upstream.url, 'http'), 'a');
    const [, id = ''] = /^id: (.*)$/m.exec((await post(issued, message)).text) ?? [];
    const stream = await listen(at(stack, 1, issued), { 'last-event-id': id });
    await stream.over;
    return stream.text();
  }

  test('passes with its id on a resumed stream', async () => {
    const data = called(result, 5);
    const shownThere = await resumed(toolCall('add', 5), data);
    expect(shownThere === `event: message\ndata: ${data}\n\n`).toBe(true);
  });

  test('passes with its id on a resumed stream in a batch with a list, and the list has the allowed tools', async () => {
    const all = [toolCall('add', 5), ask('tools/list', 7), toolCall('add', 8)];
    expect((await resumed(all, sent)) === `event: message\ndata: ${shown}\n\n`).toBe(true);
  });

  test.each([
    ['JSON', 'application/json', (data: string) => data],
    ['a stream', 'text/event-stream', (data: string) => `event: message\ndata: ${data}\n\n`],
  ])('passes with its id in a batch of %s over Streamable HTTP', async (_form, type, write) => {
    upstream.behaves = (_arrived, response) =>
      response
        .writeHead(200, { 'content-type': type })
        .end(write(sent.replace('"id":7', `"id":${listId(upstream)}`))) && true;
    const issued = urlOf(await issue(upstream.url, 'http'), 'a');
    const heard = await post(issued, [toolCall('add', 5), ask('tools/list', 7), toolCall('add', 8)]);
    expect(heard.status).toBe(200);
    expect(heard.text === write(shown)).toBe(true);
  });
});
