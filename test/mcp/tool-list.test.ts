import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Server2026, startServer2026 } from './clients-2026-server.ts';
import { drive, type Generation } from './clients-drive.ts';
import { openRoad } from './clients-road.ts';
import { type Everything, startEverything } from './everything.ts';
import { ask, at, outcomes, post, sumOf, toolCall, urlOf } from './holder.ts';
import { listen, openSession } from './listen.ts';
import { listId, type McpUpstream, startMcpUpstream } from './upstream.ts';

let stack: Stack;
let upstream: McpUpstream;
/** The bytes that a gateway may hold of answers that are not whole. */
const HELD_BYTES = 4 * 1024 * 1024;

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2, gateway: { maxHeldBodyBytes: HELD_BYTES } });
  upstream = await startMcpUpstream();
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.behaves = undefined;
});

const issue = (server: object = {}, policy: object = {}) =>
  stack.issueMcp({
    servers: [{ name: 'a', url: upstream.url, transport: 'http', tools: ['add', 'other'], ...server }],
    ...policy,
  });
const TOOLS = ['delete', 'add', 'drop', 'other'].map((name) => ({ name, inputSchema: { maximum: 1e21 } }));
const ALLOWED = TOOLS.filter(({ name }) => name === 'add' || name === 'other');
const pageOf = (id: unknown, tools: readonly object[] = TOOLS) => ({
  ...{ jsonrpc: '2.0', id },
  result: { tools, nextCursor: 'page 2', _meta: { 'x/y': [1] } },
});
const shownPage = (id: unknown) => pageOf(id, ALLOWED);

/** The server answers each POST with this. */
const answers = (body: string | Buffer, headers: Record<string, string> = {}, status = 200) => {
  upstream.behaves = ({ method }, response) => {
    if (method !== 'POST') return false;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    return response.end(body) && true;
  };
};
/** The server's answer to the last list that it was asked for. */
const listed = () => `event: message\ndata: ${JSON.stringify(pageOf(JSON.parse(listId(upstream))))}\n\n`;
const STREAM = { 'content-type': 'text/event-stream' };

describe.each(['v1', 'v2'] as const)('the official %s client', (generation: Generation) => {
  let servers: Record<'http' | 'sse', Everything>;
  beforeAll(async () => {
    const [http, sse] = await Promise.all([startEverything('http'), startEverything('sse')]);
    servers = { http, sse };
  });
  afterAll(() => Promise.all(Object.values(servers).map((server) => server.close())));

  test.each(['http', 'sse'] as const)(
    'over %s lists only the allowed tools of the reference server',
    async (transport) => {
      const { url } = servers[transport];
      const listed = async (tools: string[] | undefined) => {
        const answer = await stack.issueMcp({
          servers: [{ name: 'all', url, transport, tools }],
          max_uses: 1,
        });
        const road = openRoad(stack.gatewayUrls);
        const driven = await drive({ generation, transport, url: urlOf(answer, 'all'), road });
        const { tools: found } = await driven.client.listTools();
        const prompts = await driven.client.listPrompts();
        await driven.close();
        expect(prompts.prompts.length).toBeGreaterThan(0);
        return found;
      };
      const all = await listed(undefined);
      expect(all.length).toBeGreaterThan(3);
      const some = all.filter(({ name }) => name === 'echo' || name === 'get-sum');
      expect(await listed(['get-sum', 'no-such-tool', 'echo'])).toEqual(some);
      expect(await listed([])).toEqual([]);
    },
  );
});

test('a client of revision 2026-07-28 lists only the allowed tools', async () => {
  const server: Server2026 = await startServer2026();
  const answer = await stack.issueMcp({
    servers: [{ name: 'a', url: server.url, transport: 'http', tools: ['where'] }],
  });
  const options = { generation: 'v2', transport: 'http', negotiate: { pin: '2026-07-28' } } as const;
  const driven = await drive({ ...options, url: urlOf(answer, 'a'), road: openRoad(stack.gatewayUrls) });
  const { tools } = await driven.client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['where']);
  await driven.close();
  await server.close();
});

describe('an answer to tools/list', () => {
  test('as JSON has the allowed tools, and everything else unchanged', async () => {
    const url = urlOf(await issue({}, { max_uses: 1 }), 'a');
    for (const more of [{}, { 'content-length': '1' }])
      for (const headers of [{}, { 'content-encoding': 'gzip' }]) {
        const text = JSON.stringify(pageOf(7)).replace('1e+21', '1000000000000000000001');
        const body = 'content-encoding' in headers ? gzipSync(text) : Buffer.from(text);
        answers(body, {
          ...headers,
          ...('content-length' in more && { 'content-length': String(body.length) }),
        });
        const heard = await post(url, ask('tools/list', 7));
        expect([heard.status, heard.text]).toEqual([
          200,
          JSON.stringify({ ...pageOf(7), result: { ...pageOf(7).result, tools: '#' } }).replace(
            '"#"',
            text
              .slice(text.indexOf('['), text.indexOf('],') + 1)
              .replace(/\{"name":"(delete|drop)".*?\}\},?/g, ''),
          ),
        ]);
      }
  });

  test('in a batch with calls, the calls run and are charged', async () => {
    const answer = await issue({}, { max_uses: 2 });
    const called = { jsonrpc: '2.0', id: 2, result: { content: [] } };
    answers(JSON.stringify([pageOf(1), called]));
    const heard = await post(urlOf(answer, 'a'), [ask('tools/list', 1), toolCall('add', 2)]);
    expect(heard.messages).toEqual([shownPage(1), called]);
    expect((await sumOf(stack, answer)).uses).toBe(1);
  });

  test('as a stream of events has the allowed tools, wherever its chunks end', async () => {
    const url = urlOf(await issue(), 'a');
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { tools: TOOLS } };
    const text = `event: message\ndata: ${JSON.stringify(progress)}\n\nevent: message\ndata: ${JSON.stringify(pageOf(7))}\n\n`;
    for (const end of ['', 'data: {"result":{"tools":[{"name":"delete"}]}}\n']) {
      upstream.behaves = (_arrived, response) => {
        response.writeHead(200, STREAM);
        for (let from = 0; from < text.length; from += 50) response.write(text.slice(from, from + 50));
        return response.end(end) && true;
      };
      const heard = await post(url, ask('tools/list', 7));
      expect(heard.messages.slice(0, 2)).toEqual([progress, shownPage(7)]);
      expect(heard.text.replace(JSON.stringify(progress), '')).not.toContain('delete');
    }
  });

  test.each([
    ['no JSON', '{"result":{"tools":[{"name":"delete","default":NaN}]}}', {}],
    ['JSON that breaks off', '{"result":{"tools":[{"name":"delete"}', {}],
    ['larger than the memory for it', JSON.stringify(pageOf('x'.repeat(HELD_BYTES))), {}],
    ['no stream of JSON', 'data: {"result":{"tools":[{"name":"delete"},]}}\n\n', STREAM],
    [
      'no JSON in an event of an empty name',
      'event:\ndata: {"result":{"tools":[{"name":"delete"},]}}\n\n',
      STREAM,
    ],
    [
      'an event larger than the memory for it',
      `data: ${JSON.stringify(pageOf('x'.repeat(HELD_BYTES)))}\n\n`,
      STREAM,
    ],
    [
      'a coded stream',
      gzipSync(`data: ${JSON.stringify(pageOf(7))}\n\n`),
      { ...STREAM, 'content-encoding': 'gzip' },
    ],
  ])('that is %s is refused', async (_what, body, headers) => {
    answers(body, headers);
    const heard = await post(urlOf(await issue(), 'a'), ask('tools/list', 7));
    expect(outcomes(heard)).toEqual(['upstream_unreachable']);
    expect(heard.messages).toMatchObject([
      { id: 7, error: { message: expect.stringContaining('cannot be filtered') } },
    ]);
    expect(heard.text).not.toContain('delete');
    expect(heard.status).toBe('content-type' in headers ? 200 : 502);
  });

  test.each([
    ['an answer', {}, 502],
    ['an event', STREAM, 200],
  ])(
    'that never ends is refused once it is too large to filter, and its connection ends: %s',
    async (_what, headers, status) => {
      const closed = new Promise<void>((resolve) => {
        upstream.behaves = (_arrived, response) => {
          response.on('close', resolve).writeHead(200, { 'content-type': 'application/json', ...headers });
          const more = () => response.write('data: '.padEnd(64 * 1024, ' ')) && setImmediate(more);
          response.on('drain', more);
          return more() !== undefined;
        };
      });
      const heard = await post(urlOf(await issue(), 'a'), ask('tools/list', 7));
      expect([heard.status, outcomes(heard)]).toEqual([status, ['upstream_unreachable']]);
      await closed;
    },
  );

  test('of a URL that allows all tools passes byte for byte, as do other answers', async () => {
    const odd = '{"result":{"tools":[{"name":"delete","default":NaN}]}}';
    answers(odd);
    expect((await post(urlOf(await issue({ tools: undefined }), 'a'), ask('tools/list'))).text).toBe(odd);
    const limited = urlOf(await issue(), 'a');
    for (const message of [toolCall('add'), ask('prompts/list'), ask('ping')])
      expect((await post(limited, message)).text).toBe(odd);
    answers('no', {}, 500);
    expect(await post(limited, ask('tools/list'))).toMatchObject({ status: 500, text: 'no' });
    answers('', {}, 202);
    expect(await post(limited, ask('tools/list'))).toMatchObject({ status: 202, text: '' });
  });
});

describe('a stream with answers to other POSTs', () => {
  test('of the older transport has the allowed tools, whichever gateway received the POST', async () => {
    const answer = await issue({ url: upstream.sseUrl, transport: 'sse' });
    const { stream, endpoint } = await openSession(stack, urlOf(answer, 'a'));
    for (const gateway of [0, 1]) await post(at(stack, gateway, endpoint), ask('tools/list', gateway));
    await stream.reached(2);
    await post(endpoint, ask('tools/list', 7));
    await stream.reached(3);
    for (const each of upstream.streams) each.write(listed());
    expect((await stream.reached(4))[3]).toEqual(shownPage(7));
    for (const each of upstream.streams) each.write('event: message\ndata: {"result":{"tools":[}}\n\n');
    expect(await stream.over).toBe('ended');
    expect(stream.text()).not.toContain('delete');
  });

  const LARGE = [
    ['a large result with escapes', { content: [{ type: 'text', text: '\\u002B'.repeat(400_000) }] }],
    ['a large result with tools', { structuredContent: { tools: TOOLS }, text: 'x'.repeat(2_500_000) }],
    ['a large result with methods', { '"method"': 'endpoint '.repeat(280_000), tools: 'none' }],
    ['a small result with a list of tools', { tools: TOOLS }],
    ['a result of very many parts', { tools: TOOLS, parts: Array(60_000).fill(1) }],
  ] as const;
  test.each(LARGE)('of the older transport passes %s of another call, by its id', async (_what, result) => {
    const answer = await issue({ url: upstream.sseUrl, transport: 'sse' });
    const { stream, endpoint } = await openSession(stack, urlOf(answer, 'a'));
    upstream.behaves = ({ method }, response) => method === 'POST' && response.writeHead(202).end() && true;
    const write = (event: string) => {
      for (const each of upstream.streams) each.write(event);
    };
    await post(at(stack, 0, endpoint), toolCall('add', 5));
    await post(at(stack, 1, endpoint), toolCall('add', '6'));
    await post(at(stack, 1, endpoint), {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: '6' },
    });
    await post(at(stack, 1, endpoint), ask('tools/list', 7));
    const texts = [
      JSON.stringify({ jsonrpc: '2.0', id: 5, result }).replaceAll('\\\\u', '\\u'),
      JSON.stringify({ result, jsonrpc: '2.0', id: '6' }).replaceAll('\\\\u', '\\u'),
    ];
    for (const text of texts) write(`event: message\ndata: ${text}\n\n`);
    write(listed());
    const messages = await stream.reached(3);
    expect(stream.text()).toContain(texts[0]);
    expect(stream.text()).toContain(texts[1]);
    expect(messages[2]).toEqual(shownPage(7));
    stream.leave();
  });

  test('of the older transport filters an answer whose id was earlier that of a list', async () => {
    const answer = await issue({ url: upstream.sseUrl, transport: 'sse' });
    const { stream, endpoint } = await openSession(stack, urlOf(answer, 'a'));
    upstream.behaves = ({ method }, response) => method === 'POST' && response.writeHead(202).end() && true;
    await post(endpoint, ask('tools/list', 7));
    await post(endpoint, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } });
    await post(endpoint, toolCall('add', 7));
    for (const each of upstream.streams) each.write(listed());
    expect(await stream.reached(1)).toEqual([shownPage(7)]);
    stream.leave();
  });

  test('that is resumed over Streamable HTTP has the allowed tools', async () => {
    upstream.behaves = ({ method }, response) => {
      const page = `id: 2\n${listed()}`;
      return response.writeHead(200, STREAM).end(method === 'GET' ? page : 'id: 1\ndata: \n\n');
    };
    const issued = urlOf(await issue(), 'a');
    const [, begun = ''] = /^id: (.*)$/m.exec((await post(issued, ask('tools/list', 7))).text) ?? [];
    const stream = await listen(issued, { 'last-event-id': begun });
    expect(await stream.over).toBe('ended');
    expect(stream.text().replace(/^id: .*\n/, '')).toBe(
      `event: message\ndata: ${JSON.stringify(shownPage(7))}\n\n`,
    );
  });
});
