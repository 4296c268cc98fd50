import { gzipSync } from 'node:zlib';
import { Agent } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { socketsRead } from '../harness/thorough.ts';
import { ask, at, type Heard, ledgerOf, outcomes, post, send, sumOf, toolCall, urlOf } from './holder.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
/** A connection on which no other request waits while the gateway slowly reads a large body that it refused. */
const own = new Agent();

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2 });
});
afterAll(async () => {
  await own.destroy();
  await stack.close();
  await upstream.close();
});
let arrived = 0;
beforeEach(() => {
  upstream.behaves = undefined;
  arrived = upstream.arrived.length;
});
const reached = () => upstream.arrived.slice(arrived);

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });

/** In all that a holder sends and a server has no business to see. */
const MARK = 'h0lders';

test.each([
  ['none', {}, {}],
  [
    'bearer',
    { auth_type: 'bearer', auth_config: { token: 'the-real' } },
    { authorization: 'Bearer the-real' },
  ],
  ['api_key', { auth_type: 'api_key', auth_config: { key: 'the-real' } }, { 'x-api-key': 'the-real' }],
  [
    'api_key of another name',
    { auth_type: 'api_key', auth_config: { key: 'the-real', header: 'X-Their-Key' } },
    { 'x-their-key': 'the-real' },
  ],
  [
    'bearer of another scheme, with a header',
    {
      auth_type: 'bearer',
      auth_config: { scheme: 'Basic', token: 'the-real', headers: { 'X-Their-Key': 'the 2nd' } },
    },
    { authorization: 'Basic the-real', 'x-their-key': 'the 2nd' },
  ],
  [
    'two keys',
    {
      auth_type: 'api_key',
      auth_config: { key: 'the-real', headers: { 'X-Their-Key': 'the-second' } },
    },
    { 'x-api-key': 'the-real', 'x-their-key': 'the-second' },
  ],
])('credentials and origin of the holder reach no server (%s)', async (_what, auth, carried) => {
  const url = urlOf(await issue({}, auth), 'a');
  const theirs = {
    authorization: `Bearer ${MARK}`,
    'proxy-authorization': `Basic ${MARK}`,
    'x-api-key': MARK,
    'api-key': MARK,
    'X-Their_Key': MARK,
    ...('x-their-key' in carried ? { 'x-their-key': MARK } : {}),
    cookie: `session=${MARK}`,
    forwarded: `for=${MARK}`,
    via: `1.1 ${MARK}`,
    'x-forwarded-for': MARK,
    'x-forwarded-host': MARK,
    'x-real-ip': MARK,
    origin: `http://${MARK}.example`,
    referer: `${url}&${MARK}`,
    'x-presign-anything': MARK,
  };
  for (const method of ['POST', 'GET', 'DELETE'] as const) {
    if (method === 'GET') upstream.behaves = (_arrived, response) => response.writeHead(405).end();
    const asked = method === 'POST' ? post(url, toolCall('run'), theirs) : send(url, method, theirs);
    expect((await asked).status).toBe({ POST: 200, GET: 405, DELETE: 204 }[method]);
    upstream.behaves = undefined;
    const seen = upstream.arrived.at(-1);
    expect(seen).toMatchObject({ method, url: '/mcp', headers: carried });
    expect(JSON.stringify(seen)).not.toContain(MARK);
    expect(JSON.stringify(seen)).not.toContain('v4.public');
    expect(seen?.headers.host).toBe(new URL(upstream.url).host);
    const secrets = ['authorization', 'x-api-key', 'x-their-key'].filter((name) => seen?.headers[name]);
    expect(secrets).toEqual(Object.keys(carried));
  }
});

test("an API key is added to the query as the credential says, and the holder's query is dropped", async () => {
  const auth = { auth_type: 'api_key', auth_config: { key: 'a&b=#+', query: 'key' } };
  const url = urlOf(await issue({}, { ...auth, url: `${upstream.url}?tenant=1` }), 'a');
  expect(outcomes(await post(`${url}&key=${MARK}&x=${MARK}`, toolCall('run')))).toEqual(['ran']);
  expect(reached()).toMatchObject([{ url: '/mcp?tenant=1&key=a%26b%3D%23%2B' }]);
});

test('protocol headers pass, and the body passes byte for byte', async () => {
  const url = urlOf(await issue(), 'a');
  const body =
    '{ "jsonrpc":"2.0", "id":1e0,\n"method":"tools/call","params":{"name":"run","arguments":{"a":1,"A":"\\u00e9"}} }';
  const headers = {
    accept: 'application/json, text/event-stream;q=0.5',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'run',
    'user-agent': 'client/1',
  };
  expect((await post(url, body, headers)).status).toBe(200);
  expect(reached()).toMatchObject([{ body, headers }]);
  expect(reached()[0]?.headers['content-length']).toBe(String(body.length));
  await post(url, gzipSync(body), { 'content-encoding': 'gzip' });
  expect(reached()[1]).toMatchObject({ body });
  expect(reached()[1]?.headers['content-encoding']).toBeUndefined();
});

test('a header of revision 2026-07-28 that disagrees with the body is refused', async () => {
  const url = urlOf(await issue(), 'a');
  for (const headers of [{ 'mcp-method': 'tools/list' }, { 'mcp-name': 'other' }]) {
    const heard = await post(url, toolCall('run'), headers);
    expect([heard.status, heard.messages[0]?.error?.code]).toEqual([400, -32020]);
  }
  expect(reached()).toEqual([]);
});

test('a server that repeats its session id in every answer has one session for the client', async () => {
  const servers = ['a', 'b'].map((name) => ({ name, url: upstream.url, transport: 'http' }));
  const answer = await stack.issueMcp({ servers });
  const url = urlOf(answer, 'a');
  const sessionIn = async (asked: Promise<Heard>) => (await asked).headers['mcp-session-id'];
  const session = String(await sessionIn(post(url, ask('initialize'))));
  // The server of these tests has one session, whoever asks.
  for (const gateway of [0, 1]) {
    expect(await sessionIn(post(at(stack, gateway, url), ask('initialize')))).toBe(session);
    const headers = { 'mcp-session-id': session };
    expect(await sessionIn(post(at(stack, gateway, url), ask('tools/list'), headers))).toBe(session);
  }
  expect(await sessionIn(post(urlOf(answer, 'b'), ask('initialize')))).not.toBe(session);
});

test("a session id unseals at every gateway, only for its own grant, and hides the server's own id", async () => {
  const servers = ['a', 'b'].map((name) => ({ name, url: upstream.url, transport: 'http' }));
  const answer = await stack.issueMcp({ servers });
  const url = urlOf(answer, 'a');
  const begun = await post(url, ask('initialize'));
  const session = String(begun.headers['mcp-session-id']);
  expect(JSON.stringify(begun)).not.toContain('session-of-the-server');
  expect(Buffer.from(session.split('.')[1] ?? '', 'base64url').toString()).not.toContain('session');
  for (const gateway of [0, 1]) {
    expect((await post(at(stack, gateway, url), toolCall('run'), { 'mcp-session-id': session })).status).toBe(
      200,
    );
    expect(upstream.arrived.at(-1)?.headers['mcp-session-id']).toBe('session-of-the-server');
  }
  expect((await send(url, 'DELETE', { 'mcp-session-id': session })).status).toBe(204);
  expect(upstream.arrived.at(-1)?.headers['mcp-session-id']).toBe('session-of-the-server');

  const before = upstream.arrived.length;
  const flipped = session.slice(0, -2) + (session.at(-2) === 'A' ? 'B' : 'A') + session.slice(-1);
  const wrong = ['session-of-the-server', '', 'x', flipped, `${session}A`, `${session}, ${session}`];
  for (const each of wrong) {
    // 404 makes a client begin a new session (Streamable HTTP, "Session Management").
    const heard = await post(url, toolCall('run'), { 'mcp-session-id': each });
    expect([each, heard.status, heard.messages[0]?.error?.code]).toEqual([each, 404, -32001]);
  }
  expect((await post(urlOf(answer, 'b'), toolCall('run'), { 'mcp-session-id': session })).status).toBe(404);
  expect(upstream.arrived).toHaveLength(before);
  expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 2, cost: 2_000 });
});

test.each([
  [
    'a method twice',
    '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"run"}}',
    -32600,
  ],
  ['a method in two cases', '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call"}', -32600],
  ['a name twice', '{"id":1,"method":"tools/call","params":{"name":"run","name":"dear"}}', -32600],
  ['params twice', '{"id":1,"method":"tools/call","params":{"name":"run"},"params":{"name":"dear"}}', -32600],
  [
    'an escaped name twice',
    '{"id":1,"method":"tools/call","params":{"name":"run","n\\u0061me":"dear"}}',
    -32600,
  ],
  ['an id twice', '{"id":1,"id":2,"method":"tools/call","params":{"name":"run"}}', -32600],
  ['a method twice in a batch', '[{"id":1,"method":"ping","method":"tools/call"}]', -32600],
  ['no JSON', '{"jsonrpc":', -32700],
  ['nothing', '', -32700],
  ['two messages in a row', '{"id":1,"method":"ping"}{"id":2,"method":"tools/call"}', -32700],
  ['a byte order mark', '\ufeff{"id":1,"method":"ping"}', -32700],
  ['UTF-16', Buffer.from('{"id":1,"method":"ping"}', 'utf16le'), -32700],
  ['a batch of nothing', '[]', -32600],
  ['101 messages', `[${Array(101).fill('{"id":1,"method":"ping"}').join()}]`, -32600],
  ['a deep nest', `${'['.repeat(5_000)}${']'.repeat(5_000)}`, -32600],
  ['a body that is not what its coding says', '{}', -32600, { 'content-encoding': 'gzip' }],
])(
  '%s is refused in JSON-RPC and reaches no server',
  async (_what, body, code, headers: Record<string, string> = {}) => {
    const answer = await issue();
    const heard = await post(urlOf(answer, 'a'), body, headers);
    expect([heard.status, heard.messages[0]?.id, heard.messages[0]?.error?.code]).toEqual([400, null, code]);
    expect(heard.headers['content-type']).toBe('application/json');
    expect(reached()).toEqual([]);
    expect(await ledgerOf(stack, answer)).toEqual([]);
  },
);

const MIB = 1024 * 1024;
/** A call of exactly so many bytes. */
function callOf(bytes: number): Buffer {
  const [head = '', tail = ''] = JSON.stringify(toolCall('run', 1, { text: '#' })).split('#');
  return Buffer.from(head + 'x'.repeat(bytes - head.length - tail.length) + tail);
}

test('a body of 16 MiB passes, and one byte more is refused, with or without a stated length', async () => {
  const answer = await issue();
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, callOf(16 * MIB)))).toEqual(['ran']);
  expect(reached()[0]?.body).toHaveLength(16 * MIB);
  const tooLarge = callOf(16 * MIB + 1);
  const told = await post(url, tooLarge, {}, own);
  const untold = await fetch(url, {
    method: 'POST',
    body: new Blob([tooLarge]).stream(),
    duplex: 'half',
  } as RequestInit);
  const zipped = await post(url, gzipSync(tooLarge), { 'content-encoding': 'gzip' });
  expect([told.status, untold.status, zipped.status]).toEqual([413, 413, 413]);
  expect(outcomes(told)).toEqual(['body_too_large']);
  expect(reached()).toHaveLength(1);
  expect((await sumOf(stack, answer)).uses).toBe(1);
});

test('an incomplete body reaches no server and costs nothing, and a slow body is waited for', async () => {
  const answer = await issue();
  const { origin, pathname, search } = new URL(urlOf(answer, 'a'));
  const body = JSON.stringify(toolCall('run'));
  const head = `POST ${pathname}${search} HTTP/1.1\r\nHost: g\r\nContent-Length: ${body.length}\r\n\r\n`;
  const broken = await openSocket(origin);
  broken.write(head + body.slice(0, -1));
  await fetch(`${origin}/healthz`);
  await socketsRead();
  broken.destroy();
  const slow = await openSocket(origin);
  let text = '';
  slow.on('data', (chunk) => {
    text += chunk.toString();
  });
  slow.write(head);
  for (const byte of body) {
    slow.write(byte);
    await socketsRead();
  }
  await eventually(async () => (text.includes('done') ? true : undefined));
  slow.destroy();
  expect(reached()).toHaveLength(1);
  expect((await sumOf(stack, answer)).uses).toBe(1);
});
