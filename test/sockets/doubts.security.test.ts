import { connect } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { askVirtualKeys, createVirtualKey } from '../issuer/virtual-keys.ts';
import { urlOf as toolsOf } from '../mcp/holder.ts';
import { CREATE, codeOf, type HolderSocket, openSocket, statusOf } from './holder.ts';
import {
  eventsOf,
  type Json,
  type ProviderSocket,
  type ResponsesProvider,
  startResponsesProvider,
} from './responses-provider.ts';

let provider: ResponsesProvider;
let mcp: Upstream;
let stack: Stack;
let serve: ResponsesProvider['serve'];
beforeAll(async () => {
  provider = await startResponsesProvider();
  serve = provider.serve;
  mcp = await startUpstream((_seen, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":1,"result":{}}');
  });
  stack = await startStack({ providers: { openai: { base_url: provider.url } } });
});
afterAll(async () => {
  await stack.close();
  await mcp.close();
  await provider.close();
});
beforeEach(() => {
  provider.sockets.length = 0;
  provider.serve = serve;
});

const ASK = { provider: 'openai', path: '/v1/responses', client_api_key: 'sk-real', sockets: true };
const urlOf = async (more: object = {}) =>
  (await stack.issue({ ...ASK, cost_limit: 1_000_000, ...more })).url;
const settled = (url: string) =>
  eventually(async () => {
    const status = await statusOf(url);
    return status.held === 0 ? status : undefined;
  });

/** Sends turns of these lanes, of which the provider answers none yet. */
async function underWay(holder: HolderSocket, lanes: readonly string[]): Promise<ProviderSocket> {
  provider.serve = () => {};
  for (const lane of lanes) holder.send(lane === '' ? CREATE : { ...CREATE, stream_id: lane });
  await eventually(async () => provider.frames().length === lanes.length);
  return provider.sockets[0] as ProviderSocket;
}

const tell = ({ socket }: ProviderSocket, events: readonly Json[]) => {
  for (const event of events) socket.send(JSON.stringify(event));
};
const REFUSED = { type: 'error', status: 400, error: { code: 'invalid_value', message: 'no' } };

describe('an error without a stream', () => {
  test('frees no hold while several turns run, and ends the socket', async () => {
    const url = await urlOf();
    const holder = await openSocket(url);
    const of = await underWay(holder, ['', 'x']);
    const { held } = await statusOf(url);
    tell(of, [REFUSED]);
    tell(of, eventsOf(CREATE));
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect(await settled(url)).toMatchObject({ used: 2, spent: held });
  });

  test('frees no hold of a turn that has run next to another turn', async () => {
    const url = await urlOf();
    const holder = await openSocket(url);
    const of = await underWay(holder, ['', 'x']);
    const { held } = await statusOf(url);
    const [last] = eventsOf({ ...CREATE, stream_id: 'x' }).slice(-1);
    tell(of, [...eventsOf({ ...CREATE, stream_id: 'x' }).slice(0, 2)]);
    tell(of, [{ ...last, response: { ...(of.frames[0] as Json), id: 'other' } } as Json, REFUSED]);
    await holder.closed;
    expect((await settled(url)).spent).toBe(held);
  });

  test('refuses the only turn if there is exactly one', async () => {
    for (const lane of ['', 'a']) {
      provider.sockets.length = 0;
      const url = await urlOf();
      const holder = await openSocket(url);
      const of = await underWay(holder, [lane]);
      tell(of, [REFUSED]);
      expect(await holder.next('error')).toMatchObject({ error: { code: 'invalid_value' } });
      expect((await settled(url)).spent).toBe(0);
      provider.serve = serve;
      expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
      holder.socket.close();
    }
  });

  test('refuses no running turn either, among turns with streams: their holds are charged', async () => {
    const url = await urlOf();
    const holder = await openSocket(url);
    const of = await underWay(holder, ['a', 'b']);
    const { held } = await statusOf(url);
    tell(of, [REFUSED]);
    expect(await holder.closed).toMatchObject({ code: 1011 });
    expect((await settled(url)).spent).toBe(held);
  });
});

test('an error that names a stream without a turn leaves the turns of others alone', async () => {
  const url = await urlOf();
  const holder = await openSocket(url);
  const of = await underWay(holder, ['a', 'b']);
  tell(of, eventsOf({ ...CREATE, stream_id: 'a' }));
  await holder.next('response.completed');
  tell(of, [{ ...REFUSED, stream_id: 'a' }]);
  await holder.next('error');
  tell(of, eventsOf({ ...CREATE, stream_id: 'b' }));
  expect(await holder.next('response.completed')).toMatchObject({ stream_id: 'b' });
  expect(await settled(url)).toMatchObject({ used: 2, spent: 24 });
  holder.socket.close();
});

test.each([
  ['stated no id', ({ response: _, ...created }: Json) => [created]],
  ['began with its text', (_created: Json, text: Json) => [text]],
])('an error after a response that %s is no refusal, so the hold is charged', async (_what, begin) => {
  const url = await urlOf();
  const holder = await openSocket(url);
  const of = await underWay(holder, ['']);
  const { held } = await statusOf(url);
  const [created = {}, text = {}] = eventsOf(CREATE) as Json[];
  tell(of, [...begin(created, text), REFUSED]);
  expect(await holder.closed).toMatchObject({ code: 1011 });
  expect(await settled(url)).toMatchObject({ used: 1, spent: held });
});

test('a key that the head of a handshake quotes is masked', async () => {
  provider.headers = ({ headers }) => [`openai-quoted: ${headers.authorization}`];
  const holder = await openSocket(await urlOf());
  provider.headers = undefined;
  expect(holder.headers['openai-quoted']).toBe('Bearer *******');
  holder.socket.close();
});

test.each(['a b', 'ä', '', 'x'.repeat(129), '"'])('a stream_id such as %j is refused', async (lane) => {
  const url = await urlOf();
  const holder = await openSocket(url);
  holder.send({ ...CREATE, stream_id: lane });
  expect(codeOf(await holder.next('error'))).toBe('invalid_request');
  expect(provider.frames()).toEqual([]);
  holder.socket.close();
});

test('usage with a duplicate name in one event is unknown, so the hold is charged', async () => {
  const url = await urlOf();
  const holder = await openSocket(url);
  let held = 0;
  provider.serve = async (event, { socket }) => {
    held = (await statusOf(url)).held;
    const [created, , last] = eventsOf(event).map((each) => JSON.stringify(each));
    socket.send(created ?? '');
    socket.send(
      (last ?? '').replace(
        '"usage":',
        '"usage":{"input_tokens":900,"output_tokens":900,"total_tokens":1800},"usage":',
      ),
    );
  };
  await holder.turn();
  expect(await settled(url)).toMatchObject({ used: 1, spent: held });
  holder.socket.close();
});

test.each([
  ['very many parts', `{"type":"response.create","input":[${'{},'.repeat(300_000)}{}]}`],
  ['depth', `{"type":"response.create","input":${'['.repeat(300)}${']'.repeat(300)}}`],
])('an event with %s is refused after it is parsed once', async (_what, event) => {
  const url = await urlOf();
  const holder = await openSocket(url);
  holder.send(event);
  expect(codeOf(await holder.next('error'))).toBe('invalid_json');
  expect(await statusOf(url)).toMatchObject({ used: 0, spent: 0, held: 0 });
  expect(await holder.turn()).toMatchObject({ type: 'response.completed' });
  holder.socket.close();
});

test('a key rotation ends the socket before its next turn, which costs nothing', async () => {
  const key = await createVirtualKey(stack);
  const { client_api_key: _, ...ask } = ASK;
  const { url } = await stack.issue({ ...ask, virtual_key: key.id, cost_limit: 1_000_000 });
  const holder = await openSocket(url);
  await holder.turn();
  const before = await settled(url);
  await askVirtualKeys(stack, 'POST', `/${key.id}/rotate`, { key: 'sk-new' });
  holder.send(CREATE);
  expect(codeOf(await holder.next('error'))).toBe('overloaded');
  expect(await holder.closed).toMatchObject({ code: 1001 });
  expect(await settled(url)).toMatchObject({ used: before.used, spent: before.spent });
  const other = await openSocket(url);
  await other.turn();
  expect(provider.sockets.at(-1)?.request.headers.authorization).toBe('Bearer sk-new');
  other.socket.close();
});

test.each(['type', 'stream_id', 'generate'])(
  'a config that sets %s is refused with sockets',
  async (name) => {
    await expect(urlOf({ config: { [name]: 'x' } })).rejects.toThrow(`config.${name}`);
  },
);

test("an MCP call that requests an upgrade, as Java's client does, is served without the upgrade", async () => {
  const server = { name: 'a', url: mcp.url, transport: 'http', auth_type: 'none' };
  const bundle = toolsOf(await stack.issueMcp({ servers: [server] }), 'a');
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  const { hostname, port, pathname, search } = new URL(bundle);
  const lines = [
    `POST ${pathname}${search} HTTP/1.1`,
    'Host: g',
    'Connection: Upgrade, HTTP2-Settings, close',
    'Upgrade: h2c',
    'HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA',
    'Content-Type: application/json',
    'Accept: application/json, text/event-stream',
    `Content-Length: ${body.length}`,
  ];
  const socket = connect(Number(port), hostname);
  let got = '';
  socket.on('data', (chunk) => {
    got += String(chunk);
  });
  const [head, first, rest] = [`${lines.join('\r\n')}\r\n\r\n`, body.slice(0, 10), body.slice(10)];
  socket.write(head + first);
  await eventually(async () => socket.bytesWritten > 0);
  socket.write(rest);
  await new Promise((resolve) => socket.once('close', resolve));
  expect(got).toMatch(/^HTTP\/1\.1 200 /);
  expect(mcp.seen.at(-1)?.body.toString()).toBe(body);
  expect(mcp.seen.at(-1)?.headers).not.toHaveProperty('upgrade');
});
