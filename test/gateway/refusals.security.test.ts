import { randomBytes } from 'node:crypto';
import { readSigningKey, signToken } from '@presign/crypto';
import { revokeGrant } from '@presign/limits';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { exchange, openSocket, readAnswers } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
let url: string;
/** A connection on which no other request waits while the gateway slowly reads a large body that it refused. */
const own = new Agent();

/** Texts that may stand in no log line. */
const mark = () => `mark${randomBytes(12).toString('hex')}`;
const REAL_KEY = `sk-${mark()}`;
const SECRETS = {
  key: REAL_KEY,
  pathOfHolder: mark(),
  query: mark(),
  header: mark(),
  body: mark(),
  answer: mark(),
  config: mark(),
};

beforeAll(async () => {
  providers = await startProviders();
  const refusing = { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` };
  stack = await startStack({ providers: { ...providers.file, refusing } });
  url = await urlOf({});
});
afterAll(async () => {
  await own.destroy();
  await stack.close();
  await providers.close();
});

const urlOf = async (change: object) =>
  (
    await stack.issue({
      provider: 'openai',
      path: '/v1/chat/completions',
      client_api_key: REAL_KEY,
      ...change,
    })
  ).url;

const post = (to: string, body: string | Buffer = '{}', headers: Record<string, string> = {}) =>
  request(to, { method: 'POST', body, headers });

async function spent() {
  const one = await urlOf({ max_uses: 1 });
  await (await post(one)).body.dump();
  return post(one);
}

const expired = () => post(expiredUrl());

function expiredUrl(of = url) {
  const claims = JSON.parse(payloadOf(of)) as Record<string, unknown>;
  const token = signToken({ ...claims, exp: '2020-01-01T00:00:00Z' }, readSigningKey(stack.keys.signing));
  return `${new URL(of).origin}/llm/t/${token}${new URL(of).pathname.replace(/^\/llm\/t\/[^/]+/, '')}`;
}

const payloadOf = (issued: string) =>
  Buffer.from(new URL(issued).pathname.split('.')[2] ?? '', 'base64url')
    .subarray(0, -64)
    .toString();

const revoked = async () => post(await revokedUrl());

async function revokedUrl(of = {}) {
  const one = await urlOf(of);
  await (await post(one)).body.dump();
  const { jti, prt, exp } = JSON.parse(payloadOf(one)) as { jti: string; prt: number; exp: string };
  await revokeGrant(stack.redis, { id: jti, partition: prt, expiresAtMs: Date.parse(exp) });
  return one;
}

const invalidUrl = () => url.replace('/v4.public.', '/v4.public.A');

const REFUSALS: [string, number, () => ReturnType<typeof post>][] = [
  ['invalid_json', 400, async () => post(await urlOf({ config: { model: 'x' } }), '{')],
  ['token_invalid', 401, () => post(invalidUrl())],
  ['token_expired', 401, expired],
  ['uses_exhausted', 403, spent],
  ['grant_revoked', 403, revoked],
  ['path_not_allowed', 403, () => post(`${url}/${SECRETS.pathOfHolder}`)],
  ['method_not_allowed', 403, () => request(url, { method: 'PUT', body: '{}' })],
  ['not_found', 404, () => request(`${new URL(url).origin}/nothing/${SECRETS.pathOfHolder}`)],
  [
    'body_too_large',
    413,
    async () => {
      const to = await urlOf({ config: { model: 'x' } });
      return request(to, { method: 'POST', body: Buffer.alloc(16 * 1024 * 1024 + 1), dispatcher: own });
    },
  ],
  ['unsupported_media_type', 415, async () => post(await urlOf({ config: { model: 'x' } }), '[]')],
  ['upstream_unreachable', 502, async () => post(await urlOf({ provider: 'refusing' }))],
];

test("an invalid URL gets 403 on Anthropic's paths, because Claude Code repeats a 401 for minutes", async () => {
  const messages = { provider: 'anthropic', path: '/v1/messages' };
  const live = await urlOf(messages);
  for (const [code, dead] of [
    ['token_invalid', live.replace('/v4.public.', '/v4.public.A')],
    ['token_expired', expiredUrl(live)],
    ['grant_revoked', await revokedUrl(messages)],
  ] as const) {
    const answer = await post(dead);
    expect([answer.statusCode, answer.headers['x-presign-code']]).toEqual([403, code]);
    expect(await answer.body.json()).toMatchObject({
      type: 'error',
      error: { type: 'permission_error', code },
    });
  }
});

test.each(REFUSALS)(
  '%s gets %i in the one error format, with the headers of every refusal',
  async (code, status, refused) => {
    const answer = await refused();
    expect(answer.statusCode).toBe(status);
    const body = (await answer.body.json()) as { error: Record<string, unknown> };
    expect(Object.keys(body)).toEqual(['error']);
    expect(body.error).toMatchObject({
      code,
      message: expect.stringMatching(`^${code}: .`) as string,
      type: expect.any(String) as string,
    });
    expect(body.error).toHaveProperty('param');
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': body.error.request_id,
      'x-presign-code': code,
      'cache-control': 'no-store',
      'content-security-policy': 'sandbox',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'access-control-allow-origin': '*',
    });
    expect(answer.headers['access-control-expose-headers']).toContain('x-request-id');
    expect(JSON.stringify(body)).not.toContain(REAL_KEY);
    expect(JSON.stringify(body)).not.toMatch(/\\n\s+at /);
  },
);

test.each(['PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
  '%s at a read-only address gets 405, and Allow lists the methods that work',
  async (method) => {
    const { origin, pathname } = new URL(url);
    const addresses = ['/healthz', '/readyz', pathname.replace(/(\/llm\/t\/[^/]+).*/, '$1')];
    for (const address of addresses) {
      const answer = await request(`${origin}${address}`, { method });
      expect([answer.statusCode, answer.headers.allow], address).toEqual([405, 'GET, HEAD']);
      expect(await answer.body.json()).toMatchObject({ error: { code: 'method_not_supported' } });
      const read = await request(`${origin}${address}`);
      expect(read.statusCode, address).toBe(200);
      await read.body.dump();
    }
  },
);

test('the refusal of a method lists the method that the URL allows', async () => {
  const answer = await request(url, { method: 'PUT', body: '{}' });
  expect([answer.statusCode, answer.headers.allow]).toEqual([403, 'POST']);
  await answer.body.dump();
});

test.each([
  ['token_invalid', invalidUrl],
  ['token_expired', expiredUrl],
  ['grant_revoked', revokedUrl],
])('%s reaches a holder who is still sending, and then the connection is closed', async (code, dead) => {
  const { origin, pathname } = new URL(await dead());
  const body = Buffer.alloc(1024 * 1024);
  const socket = await openSocket(origin);
  const ended = new Promise((resolve) => socket.once('end', () => resolve('end')).once('error', resolve));
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  socket.write(`POST ${pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: ${body.length}\r\n\r\n`);
  await eventually(async () => text.includes(`"${code}"`) || undefined);
  socket.write(body);
  expect(await ended).toBe('end');
  expect(readAnswers(text)[0]?.headers).toContainEqual(['connection', 'close']);
});

test.each([
  ['an upgrade', 'Connection: upgrade\r\nUpgrade: websocket\r\n', 'Upgrade'],
  ['a transfer coding', 'Transfer-Encoding: gzip, chunked\r\n', 'Transfer-Encoding'],
])('invalid_request names %s', async (_what, lines, param) => {
  const head = `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\n${lines}`;
  const [answer] = readAnswers(await exchange(new URL(url).origin, `${head}\r\n0\r\n\r\n`));
  expect(answer?.status).toBe(400);
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { code: 'invalid_request', param } });
});

test.each([
  ['a malformed Host', `POST /x HTTP/1.1\r\nHost: a/b c\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`],
  [
    'a backslash in the target',
    `POST /llm\\t/x HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
  ],
])('%s is refused in the same error format', async (_what, bytes) => {
  const [answer] = readAnswers(await exchange(new URL(url).origin, bytes));
  expect(answer?.status).toBe(400);
  expect(JSON.parse(answer?.body ?? '')).toMatchObject({ error: { code: 'invalid_request' } });
  expect(answer?.headers).toContainEqual(['cache-control', 'no-store']);
});

test('no refusal looks like an OAuth challenge or sets a cookie', async () => {
  const answer = await post(url.replace('/v4.public.', '/v4.public.A'));
  expect(answer.headers['www-authenticate']).toBeUndefined();
  expect(answer.headers['set-cookie']).toBeUndefined();
});

test('two calls never have the same request id', async () => {
  const ids = await Promise.all(
    Array.from({ length: 50 }, async () => (await post(`${url}/x`)).headers['x-request-id']),
  );
  expect(new Set(ids).size).toBe(50);
});

test('a preflight is answered for any origin without a valid token, and costs no use', async () => {
  const one = await urlOf({ max_uses: 1 });
  const ask = {
    origin: 'https://app.example',
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization, x-stainless-os, content-type',
  };
  for (const target of [one, one, one, one.replace('/v4.public.', '/v4.public.A'), `${one}/elsewhere`]) {
    const answer = await request(target, { method: 'OPTIONS', headers: ask });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers': 'authorization, x-stainless-os, content-type',
    });
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
  }
  const answer = await post(one);
  expect([answer.statusCode, answer.headers['x-presign-uses-remaining']]).toEqual([200, '0']);
});

test.each(['GET', 'PUT', 'DELETE', 'PATCH'])('a preflight echoes the method %s', async (method) => {
  const headers = { origin: 'null', 'access-control-request-method': method };
  const answer = await request(url, { method: 'OPTIONS', headers });
  expect(answer.headers['access-control-allow-methods']).toBe(method);
});

test('an OPTIONS request that is not a preflight is judged like any call', async () => {
  expect((await request(url, { method: 'OPTIONS' })).statusCode).toBe(403);
});

test("browsers of any origin can read the provider's answers, good or bad", async () => {
  for (const status of [200, 429, 500]) {
    providers.answer = (_seen, response) => {
      response.writeHead(status, { 'access-control-allow-origin': 'https://provider.example' }).end('{}');
    };
    const { headers } = await post(url, '{}', { origin: 'https://app.example' });
    expect(headers['access-control-allow-origin']).toBe('*');
    const exposed = String(headers['access-control-expose-headers']).split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining(['x-request-id', 'retry-after', 'mcp-session-id', 'mcp-protocol-version']),
    );
    const ours = Object.keys(headers).filter((name) => name.startsWith('x-presign-'));
    expect(exposed).toEqual(expect.arrayContaining(ours));
    expect(headers).toMatchObject({ 'referrer-policy': 'no-referrer', 'x-content-type-options': 'nosniff' });
    expect(headers['x-presign-request-id']).toMatch(/^[0-9a-f-]{36}$/);
  }
  providers.answer = OK;
});

test('no log line contains a token, a key, a query, a header, a body or an answer', async () => {
  providers.answer = (_seen, response) => {
    response.writeHead(200, { 'x-trace-id': SECRETS.answer }).end(SECRETS.answer);
  };
  const configured = await urlOf({ config: { model: SECRETS.config }, max_uses: 1 });
  const headers = {
    authorization: `Bearer ${SECRETS.header}`,
    'x-custom': SECRETS.header,
    'x-request-id': `v4.public.${SECRETS.header}.${'x'.repeat(80)}`,
  };
  const body = JSON.stringify({ messages: [SECRETS.body] });
  const issued = [url, configured];
  for (const target of issued) {
    for (const form of [
      target,
      `${target}?key=${SECRETS.query}&a=${SECRETS.query}`,
      `${target}/${SECRETS.pathOfHolder}`,
    ]) {
      await (await post(form, body, headers)).body.dump();
    }
    await (await post(target, `{"${SECRETS.body}":1,"${SECRETS.body}":2}`, headers)).body.dump();
    await (await post(target, SECRETS.body, headers)).body.dump();
  }
  await callsSettled(stack);
  const tokens = issued.map((each) => new URL(each).pathname.split('/')[3] ?? '');
  const text = stack.logs.join('');
  expect(stack.logs.some((line) => line.includes('"msg":"call"'))).toBe(true);
  for (const secret of [
    ...Object.values(SECRETS),
    ...tokens,
    ...tokens.flatMap((token) => token.split('.').slice(2)),
  ]) {
    expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(secret).toString('base64url'));
  }
  for (const name of ['signing', 'encryption'] as const) expect(text).not.toContain(stack.keys[name]);
  expect(text).not.toContain(stack.apiKey);
  expect(text).not.toContain('v4.public.');
});

test("the holder's request id is logged if it looks like an id", async () => {
  await (await post(url, '{}', { 'x-request-id': 'mine-1.2_3' })).body.dump();
  expect(stack.logs.some((line) => line.includes('"holder_request_id":"mine-1.2_3"'))).toBe(true);
});
