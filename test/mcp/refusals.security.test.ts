import { gzipSync } from 'node:zlib';
import { revokeGrant } from '@presign/limits';
import type { McpPresignAnswer } from '@presign/schema';
import { grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import {
  at,
  grantIn,
  type Heard,
  ledgerOf,
  outcomes,
  post,
  send,
  sumOf,
  tokenIn,
  toolCall,
  urlOf,
} from './holder.ts';
import { type Arrived, type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let stack: Stack;
/** How far the gateways' clock is ahead. */
let aheadMs = 0;

beforeAll(async () => {
  upstream = await startMcpUpstream();
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});
let arrived = 0;
beforeEach(() => {
  aheadMs = 0;
  upstream.behaves = undefined;
  arrived = upstream.arrived.length;
});
const reached = () => upstream.arrived.length - arrived;

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });
const METHODS = ['POST', 'GET', 'DELETE'] as const;
/** The status for a URL that is not valid any more, or never was. */
const DEAD = { POST: 200, GET: 405, DELETE: 405 };
const STREAMABLE = { accept: 'text/event-stream', 'mcp-protocol-version': '2025-06-18' };
const ask = (url: string, method: (typeof METHODS)[number]) =>
  method === 'POST' ? post(url, toolCall('run')) : send(url, method, STREAMABLE);

/** A refusal in JSON-RPC that no client takes for an invitation to log in. */
function refused(heard: Heard, status: number, code: string): void {
  expect([heard.status, ...outcomes(heard)], heard.text).toEqual([status, code]);
  expect(heard.headers['content-type']).toBe('application/json');
  expect(heard.headers['www-authenticate']).toBeUndefined();
  const [message] = heard.messages;
  expect(message).toMatchObject({
    jsonrpc: '2.0',
    error: { code: expect.any(Number), message: expect.any(String) },
  });
}
const withToken = (url: string, token: string) => url.replace(tokenIn(url), token);
const withServer = (url: string, server: string) =>
  url.replace(/url=[^&]*/, `url=${encodeURIComponent(server)}`);

describe.each(METHODS)('%s', (method) => {
  test(`with an expired token gets ${DEAD[method]} and an error`, async () => {
    const url = urlOf(await issue({ expires_in: 60 }), 'a');
    aheadMs = 61_000;
    for (const gateway of [0, 1])
      refused(await ask(at(stack, gateway, url), method), DEAD[method], 'token_expired');
    expect(reached()).toBe(0);
  });

  test(`with a revoked token gets ${DEAD[method]} and an error from every gateway`, async () => {
    const answer = await issue();
    const url = urlOf(answer, 'a');
    expect((await post(url, toolCall('run'))).status).toBe(200);
    await revoke(answer, 'a');
    for (const gateway of [0, 1])
      refused(await ask(at(stack, gateway, url), method), DEAD[method], 'grant_revoked');
    expect(reached()).toBe(1);
  });

  test(`with a token of another kind, server or bundle, or no token, gets ${DEAD[method]} and an error`, async () => {
    const answer = await stack.issueMcp({
      servers: [
        { name: 'a', url: upstream.url, transport: 'http' },
        { name: 'b', url: upstream.sseUrl },
      ],
    });
    const url = urlOf(answer, 'a');
    const llm = await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-x' });
    const token = tokenIn(url);
    const wrong = [
      answer.bundle_token,
      /\/t\/([^/]+)/.exec(llm.url)?.[1] ?? '',
      tokenIn(urlOf(answer, 'b')),
      '',
      'x',
      `${token}.`,
      `${token}A`,
      token.slice(0, -1),
      token.replace('v4.public.', 'v4.local.'),
      token.replace('v4.', 'v3.'),
    ];
    for (const each of wrong) refused(await ask(withToken(url, each), method), DEAD[method], 'token_invalid');
    expect(reached()).toBe(0);
  });

  test(`to an address other than the token's gets ${DEAD[method]} and an error, even at the same server`, async () => {
    const url = urlOf(await issue(), 'a');
    const wrong = [
      `${upstream.url}/`,
      `${upstream.url}?`,
      upstream.url.toUpperCase(),
      upstream.url.replace('127.0.0.1', 'localhost'),
      upstream.url.replace('http:', 'HTTP:'),
      upstream.sseUrl,
      'http://169.254.169.254/',
      '',
    ];
    for (const each of wrong)
      refused(await ask(withServer(url, each), method), DEAD[method], 'token_invalid');
    for (const each of ['?', '?url=x', `?token=${tokenIn(url)}`]) {
      refused(await ask(url.replace(/\?.*/, each), method), DEAD[method], 'token_invalid');
    }
    // Whichever of two a reader takes.
    refused(
      await ask(`${url}&url=${encodeURIComponent(upstream.sseUrl)}`, method),
      DEAD[method],
      'token_invalid',
    );
    refused(await ask(`${url}&token=x`, method), DEAD[method], 'token_invalid');
    expect(reached()).toBe(0);
  });
});

describe.each(['expired', 'revoked', 'unreadable'] as const)('to an %s URL', (how) => {
  const code = { expired: 'token_expired', revoked: 'grant_revoked', unreadable: 'token_invalid' }[how];
  async function deadUrl(server: object = {}): Promise<string> {
    const answer = await issue({ expires_in: 60 }, server);
    const url = urlOf(answer, 'a');
    if (how === 'expired') aheadMs = 61_000;
    if (how === 'revoked') await revoke(answer, 'a');
    return how === 'unreadable' ? withToken(url, `${tokenIn(url)}x`) : url;
  }
  const error = { error: { code: -32010, data: { code } } };

  test.each(['initialize', 'server/discover', 'tools/list', 'tools/call'])(
    '%s gets 200, its own id and an error, and no session id',
    async (method) => {
      const heard = await post(await deadUrl(), { ...toolCall('run', 'my-id'), method });
      expect([heard.status, heard.messages]).toMatchObject([200, [{ id: 'my-id', ...error }]]);
      expect(heard.headers['mcp-session-id']).toBeUndefined();
      expect(heard.headers['www-authenticate']).toBeUndefined();
    },
  );

  test('each request of a batch gets an error, and its other messages get nothing', async () => {
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const batch = [toolCall('run', 1), notification, toolCall('run', 'b')];
    const heard = await post(await deadUrl(), batch);
    expect([heard.status, heard.messages]).toMatchObject([
      200,
      [
        { id: 1, ...error },
        { id: 'b', ...error },
      ],
    ]);
    expect(heard.messages).toHaveLength(2);
  });

  test('a body with only notifications or answers is accepted', async () => {
    const url = await deadUrl();
    const notification = { jsonrpc: '2.0', method: 'notifications/initialized' };
    for (const body of [notification, [notification], { jsonrpc: '2.0', id: 1, result: {} }]) {
      const heard = await post(url, body);
      expect([heard.status, heard.text]).toEqual([202, '']);
    }
  });

  // It is read slowly, so one kind of URL stands for all in `pnpm test`.
  const chars = thorough || how === 'expired' ? 3_000_000 : 300_000;
  test(`a request of ${chars} characters, plain or compressed, gets an answer with its id`, async () => {
    const url = await deadUrl();
    const large = JSON.stringify({ ...toolCall('run', 'at the end', { text: 'x'.repeat(chars) }) });
    const { id, ...rest } = JSON.parse(large) as { id: string };
    const last = JSON.stringify({ ...rest, id });
    const coded = { 'content-encoding': 'gzip' };
    for (const heard of [await post(url, last), await post(url, gzipSync(last), coded)])
      expect([heard.status, heard.messages]).toMatchObject([200, [{ id: 'at the end', ...error }]]);
  });

  // A revocation is looked up only for a body that can be read.
  const status = how === 'revoked' ? 400 : 403;
  test(`a body without a message is refused with ${status}`, async () => {
    const url = await deadUrl();
    for (const body of ['', 'no JSON', '5', '[]', '{"id":1}'])
      expect([body, (await post(url, body)).status]).toEqual([body, status]);
  });

  test('the GET and DELETE of a session get 405, so that clients do not retry', async () => {
    const url = await deadUrl();
    for (const method of ['GET', 'DELETE'] as const) {
      const heard = await send(url, method, STREAMABLE);
      expect([heard.status, heard.headers.allow]).toEqual([405, 'POST']);
    }
  });

  test('a client of the older transport gets 403 when it connects, and 404 for a message without a stream', async () => {
    const url = await deadUrl({ transport: 'sse', url: upstream.sseUrl });
    expect((await send(url, 'GET', { accept: 'text/event-stream' })).status).toBe(403);
    const named = url.replace('/mcp/mcp', '/mcp/sse');
    // Some clients send the version of the protocol on either transport.
    for (const headers of [{}, { 'mcp-protocol-version': '2025-11-25' }])
      expect((await send(named, 'GET', headers)).status).toBe(403);
    expect((await post(`${url}&ep=x`, toolCall('run'))).status).toBe(404);
  });
});

/** As the issuer does: Postgres first, then the tombstone. */
async function revoke(answer: McpPresignAnswer, name?: string): Promise<void> {
  const grant = grantIn(name === undefined ? answer.bundle_token : tokenIn(urlOf(answer, name)));
  await stack.db.update(grants).set({ revokedAt: new Date() }).where(eq(grants.id, grant.id));
  await revokeGrant(stack.redis, grant);
}

test('a token with any single bit flipped is refused', async () => {
  const url = urlOf(await issue(), 'a');
  const token = tokenIn(url);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  for (let i = 0; i < token.length; i++) {
    const flipped = String.fromCharCode(token.charCodeAt(i) ^ (1 << (i % 7)));
    const changed = encodeURIComponent(token.slice(0, i) + flipped + token.slice(i + 1));
    refused(await post(withToken(url, changed), toolCall('run')), 200, 'token_invalid');
  }
  expect(reached()).toBe(1);
});

test('a token for an MCP server is refused by the LLM route and as a bundle', async () => {
  const answer = await issue();
  const token = tokenIn(urlOf(answer, 'a'));
  const gateway = stack.gatewayUrls[0];
  expect((await send(`${gateway}/llm/t/${token}/v1/chat/completions`, 'POST')).status).toBe(401);
  for (const each of [token, `${answer.bundle_token}x`, answer.bundle_token.slice(1)]) {
    const heard = await send(`${gateway}/mcp/bundle/${each}`, 'GET');
    expect([heard.status, heard.headers['www-authenticate']]).toEqual([403, undefined]);
    expect(heard.text).not.toContain('mcpServers');
  }
  expect(reached()).toBe(0);
});

test.each([401, 403, 407, 301, 302, 307, 308])(
  "a server's %i becomes 502, contains no address of the server, and costs nothing",
  async (status) => {
    const key = { auth_type: 'api_key', auth_config: { key: 'k-secret', query: 'key' } };
    const answer = await issue({ max_uses: 2 }, key);
    const url = urlOf(answer, 'a');
    upstream.behaves = (request, response) =>
      response
        .writeHead(status, {
          'www-authenticate': 'Bearer resource_metadata="https://mcp.example/.well-known/x"',
          'proxy-authenticate': 'Basic realm="theirs"',
          location: `http://elsewhere.example${request.url}`,
        })
        .end('{"their":"words"}');
    for (const method of METHODS) {
      const heard = await ask(url, method);
      refused(heard, 502, status < 400 ? 'upstream_unreachable' : 'upstream_auth_failed');
      expect(JSON.stringify(heard)).not.toMatch(/k-secret|resource_metadata|their/);
      expect(heard.headers.location).toBeUndefined();
    }
    expect(reached()).toBe(3);
    upstream.behaves = undefined;
    expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
    expect(await sumOf(stack, answer)).toEqual({ rows: 3, uses: 1, cost: 1_000 });
  },
);

test.each([307, 308])(
  "a server's %i to the same origin is followed once, with method, body and credential",
  async (status) => {
    const key = { auth_type: 'api_key', auth_config: { key: 'k-secret', query: 'key' } };
    const answer = await issue({ max_uses: 3 }, key);
    const url = urlOf(answer, 'a');
    // Frameworks redirect so to a path with a final slash.
    const moved = ({ url: at }: Arrived) => at.replace('/mcp', '/mcp/');
    upstream.behaves = (request, response) =>
      !request.url.startsWith('/mcp/') && response.writeHead(status, { location: moved(request) }).end();
    expect(outcomes(await post(url, toolCall('run', 'x', { a: 'ü' })))).toEqual(['ran']);
    const [first, second] = upstream.arrived.slice(-2);
    expect([first?.url, second?.url]).toEqual(['/mcp?key=k-secret', '/mcp/?key=k-secret']);
    expect([second?.method, second?.body]).toEqual([first?.method, first?.body]);
    upstream.behaves = (request, response) =>
      !request.url.startsWith('/mcp/') && response.writeHead(status, { location: '/mcp/' }).end();
    expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
    expect(upstream.arrived.at(-1)?.url).toBe('/mcp/?key=k-secret');
    const before = upstream.arrived.length;
    upstream.behaves = (_request, response) => response.writeHead(status, { location: '/mcp/' }).end();
    refused(await post(url, toolCall('run')), 502, 'upstream_unreachable');
    expect(upstream.arrived).toHaveLength(before + 2);
    expect((await sumOf(stack, answer)).uses).toBe(2);
  },
);

test("a server's challenge never reaches the client, whatever its status", async () => {
  const url = urlOf(await issue(), 'a');
  upstream.behaves = (_request, response) =>
    response.writeHead(200, { 'www-authenticate': 'Bearer', 'content-type': 'application/json' }).end('{}');
  for (const method of METHODS) expect((await ask(url, method)).headers['www-authenticate']).toBeUndefined();
});

test('a client finds no authorization server at the gateway', async () => {
  const gateway = stack.gatewayUrls[0] ?? '';
  const names = ['oauth-authorization-server', 'oauth-protected-resource', 'openid-configuration'];
  const paths = names.flatMap((name) => [
    `/.well-known/${name}`,
    `/.well-known/${name}/mcp/mcp`,
    `/mcp/mcp/.well-known/${name}`,
  ]);
  for (const path of [...paths, '/.well-known/', '/register', '/authorize', '/token']) {
    const [got, posted] = await Promise.all([send(gateway + path, 'GET'), send(gateway + path, 'POST')]);
    expect([path, got.status, posted.status, got.headers['www-authenticate']]).toEqual([
      path,
      404,
      404,
      undefined,
    ]);
  }
});

test.each(['PUT', 'HEAD', 'OPTIONS'] as const)('%s is refused and reaches no server', async (method) => {
  const answer = await issue();
  const heard = await send(urlOf(answer, 'a'), method);
  expect([heard.status, heard.headers['www-authenticate'], reached()]).toEqual([405, undefined, 0]);
  expect(heard.headers.allow).toBe('GET, POST, DELETE');
  expect(await ledgerOf(stack, answer)).toEqual([]);
});
