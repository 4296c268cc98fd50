import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { eachOf, statusOf } from '../spend/many-calls.ts';
import { OK, type Providers, startProviders } from './providers.ts';

let providers: Providers;
let stack: Stack;
let impatient: string;
/** The action of a provider of bytes on a connection once it has heard something. */
let rude: (socket: Socket) => void = (socket) => socket.destroy();
const rudeServer = createServer((socket) => {
  socket.on('error', () => {});
  socket.once('data', () => rude(socket));
});

beforeAll(async () => {
  providers = await startProviders();
  await new Promise<void>((resolve) => rudeServer.listen(0, '127.0.0.1', resolve));
  const extra = {
    refusing: { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` },
    nowhere: { extends: 'openai', base_url: 'http://name.that.cannot.be.invalid' },
    plain: { extends: 'openai', base_url: providers.url.replace('http:', 'https:') },
    rude: { extends: 'openai', base_url: `http://127.0.0.1:${(rudeServer.address() as AddressInfo).port}` },
  };
  stack = await startStack({ providers: { ...providers.file, ...extra } });
  impatient = await stack.addGateway({ upstreamTimeoutMs: 1_500 });
});
afterAll(async () => {
  await stack.close();
  await providers.close();
  rudeServer.close();
});
beforeEach(() => {
  providers.answer = OK;
  providers.seen.length = 0;
});

const issue = async (maxUses: number, provider = 'openai') =>
  (
    await stack.issue({
      provider,
      path: '/v1/chat/completions',
      client_api_key: 'sk-real',
      max_uses: maxUses,
    })
  ).url;

async function call(url: string) {
  const answer = await request(url, { method: 'POST', body: '{}' });
  const text = await answer.body.text().catch(() => 'broken');
  const code = text.startsWith('{"error":{"code"')
    ? (JSON.parse(text) as { error: { code: string } }).error.code
    : undefined;
  return { status: answer.statusCode, code, left: answer.headers['x-presign-uses-remaining'] };
}

/** The ledger's rows of a URL, once all is settled and drained. */
async function rows(url: string, count: number) {
  const token = new URL(url).pathname.split('/')[3] ?? '';
  const payload = Buffer.from(token.split('.')[2] ?? '', 'base64url').subarray(0, -64);
  const { jti } = JSON.parse(payload.toString()) as { jti: string };
  return eventually(async () => {
    await stack.issuer.ledger.drainAll();
    const found = await stack.db.select().from(ledger).where(eq(ledger.grantId, jti));
    return found.length >= count ? found : undefined;
  });
}

/** The same URL at a gateway that soon gives up a provider, for those that never end. */
const soon = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', impatient);

const answering = (status: number) => {
  providers.answer = (_seen, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end('{"from":"provider"}');
  };
};

test.each([401, 429, 503, 529])('%i of the provider returns the use at once', async (status) => {
  const url = await issue(1);
  answering(status);
  for (let i = 0; i < 5; i++) expect(await call(url)).toMatchObject({ status, left: '1' });
  answering(200);
  expect(await call(url)).toMatchObject({ status: 200, left: '0' });
  expect(await call(url)).toMatchObject({ status: 403, code: 'uses_exhausted' });
  const settled = await rows(url, 6);
  expect(settled.map((row) => [row.status, row.uses]).sort()).toEqual(
    [[200, 1], ...Array.from({ length: 5 }, () => [status, 0])].sort(),
  );
});

test('a provider that refuses every call gets exactly 21 calls under max_uses 1, however many are made at once', async () => {
  const url = await issue(1);
  answering(429);
  const atOnce = (calls: number) => Promise.all(Array.from({ length: calls }, () => call(url)));
  // While one call has the use, the others are refused. So it takes more rounds than calls.
  for (let round = 0; round < 500 && providers.seen.length < 21; round++) await atOnce(8);
  await atOnce(40);
  expect(providers.seen).toHaveLength(21);
  answering(200);
  expect(await call(url)).toMatchObject({ status: 403, code: 'uses_exhausted' });
  const settled = await rows(url, 21);
  expect(settled.map((row) => row.uses).sort()).toEqual([...Array.from({ length: 20 }, () => 0), 1]);
});

test('the last use that a refused call can consume is not reported as left', async () => {
  const url = await issue(1);
  answering(429);
  for (let i = 0; i < 20; i++) expect(await call(url)).toMatchObject({ status: 429, left: '1' });
  expect(await call(url)).toMatchObject({ status: 429, left: '0' });
  expect(await call(url)).toMatchObject({ status: 403, code: 'uses_exhausted' });
});

test.each([200, 201, 204, 302, 400, 402, 403, 404, 408, 409, 413, 422, 500, 501, 502, 504, 599])(
  '%i of the provider keeps the use',
  async (status) => {
    const url = await issue(1);
    answering(status);
    expect(await call(url)).toMatchObject({ status, left: '0' });
    expect(await call(url)).toMatchObject({ status: 403, code: 'uses_exhausted' });
    expect(await rows(url, 1)).toMatchObject([{ status, uses: 1, outcome: 'settled' }]);
  },
);

test.each([
  ['a provider that refuses the connection', 'refusing'],
  ['a provider whose name does not resolve', 'nowhere'],
  ['a provider that speaks no TLS', 'plain'],
])('%s certainly got nothing: the use is returned', async (_what, provider) => {
  const url = await issue(1, provider);
  expect(await call(url)).toMatchObject({ status: 502, code: 'upstream_unreachable' });
  expect((await rows(url, 1)).map((row) => [row.status, row.uses])).toEqual([[null, 0]]);
  // Its next calls wait, and are tried again.
  await eventually(async () => ((await call(url)).status === 502 ? true : undefined));
  expect((await rows(url, 2)).map((row) => row.uses)).toEqual([0, 0]);
});

test.each<[string, (socket: Socket) => void, number, string | undefined]>([
  ['hangs up without an answer', (socket) => socket.destroy(), 502, 'upstream_unreachable'],
  ['resets the connection', (socket) => socket.resetAndDestroy(), 502, 'upstream_unreachable'],
  ['answers what is no HTTP', (socket) => socket.end('nonsense\r\n\r\n'), 502, 'upstream_unreachable'],
  ['never answers', () => {}, 504, 'upstream_timeout'],
  ['breaks off its headers', (socket) => socket.end('HTTP/1.1 200 OK\r\nX-A'), 502, 'upstream_unreachable'],
])('a provider that %s may have worked: the use is kept', async (_what, behave, status, code) => {
  rude = behave;
  const url = await issue(1, 'rude');
  expect(await call(code === 'upstream_timeout' ? soon(url) : url)).toMatchObject({ status, code });
  expect(await call(url)).toMatchObject({ status: 403, code: 'uses_exhausted' });
  expect(await rows(url, 1)).toMatchObject([{ status: null, uses: 1 }]);
});

test.each<[string, string, boolean]>([
  ['a body with a length', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf', true],
  ['a chunked stream', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n', true],
  ['a chunked stream left open', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n', false],
  ['a 503 without its end', 'HTTP/1.1 503 No\r\nContent-Length: 100\r\n\r\nhalf', true],
])('%s that breaks off looks broken to the holder and keeps the use', async (_what, bytes, closes) => {
  rude = (socket) => (closes ? socket.end(bytes) : socket.write(bytes));
  const url = await issue(1, 'rude');
  const answer = await request(closes ? url : soon(url), { method: 'POST', body: '{}' });
  await expect(answer.body.text()).rejects.toThrow();
  expect(await call(url)).toMatchObject({ code: 'uses_exhausted' });
  expect(await rows(url, 1)).toMatchObject([{ uses: 1, status: bytes.includes('503') ? 503 : 200 }]);
});

test('x-presign-uses-remaining counts down, and is absent without a limit of uses', async () => {
  const url = await issue(3);
  expect([(await call(url)).left, (await call(url)).left, (await call(url)).left]).toEqual(['2', '1', '0']);
  expect((await call(await issue(-1))).left).toBeUndefined();
});

test.each([
  ['path', (url: string) => request(`${url}/more`, { method: 'POST' })],
  ['method', (url: string) => request(url, { method: 'GET' })],
  ['token', (url: string) => request(url.replace('/v4.public.', '/v4.public.A'), { method: 'POST' })],
  ['upgrade', (url: string) => request(url, { method: 'POST', upgrade: 'websocket' }).catch(() => undefined)],
])('a call refused for its %s costs no use', async (_what, refused) => {
  const url = await issue(1);
  for (let i = 0; i < 3; i++) await (await refused(url))?.body.dump();
  expect(await call(url)).toMatchObject({ status: 200, left: '0' });
});

/** A stream of 20 events, which notes how much of it the gateway took. */
function streamed() {
  const taken = { events: 0, ended: false };
  providers.answer = async (_seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (; taken.events < 20; taken.events++) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (response.destroyed) return;
      response.write(
        `data: ${JSON.stringify({ choices: [{ delta: { content: String(taken.events) } }] })}\n\n`,
      );
    }
    taken.ended = true;
    response.end();
  };
  return taken;
}

async function holderLeaves(url: string, when: (socket: Socket) => Promise<unknown>) {
  const socket = await openSocket(new URL(url).origin);
  const body = '{"model":"gpt-5","messages":[],"stream":true}';
  const head = `POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  socket.write(head + body);
  await when(socket);
  socket.destroy();
}

test.each<[string, (socket: Socket) => Promise<unknown>]>([
  ['before the answer begins', () => eventually(async () => (providers.seen.length > 0 ? true : undefined))],
  ['in the middle of the answer', (socket) => new Promise((resolve) => socket.once('data', resolve))],
])('a holder who leaves %s keeps no use back, and the provider is read to its end', async (_what, when) => {
  const taken = streamed();
  const url = await issue(1);
  await holderLeaves(url, when);
  expect(await rows(url, 1)).toMatchObject([{ uses: 1, status: 200, outcome: 'settled' }]);
  expect(taken).toEqual({ events: 20, ended: true });
  expect(await call(url)).toMatchObject({ code: 'uses_exhausted' });
  expect(await rows(url, 1)).toHaveLength(1);
});

test('a holder who disconnects while sending the body has used the URL once', async () => {
  const url = await issue(1);
  const socket = await openSocket(new URL(url).origin);
  socket.write(`POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n{"half":`);
  await eventually(async () => ((await statusOf(url)).used === 1 ? true : undefined));
  socket.destroy();
  expect(await rows(url, 1)).toMatchObject([{ uses: 1, status: null, outcome: 'settled' }]);
  expect(providers.seen).toHaveLength(0);
});

test('a holder who disconnects after the answer changes nothing', async () => {
  const url = await issue(2);
  await holderLeaves(url, (socket) => new Promise((resolve) => socket.once('data', resolve)));
  expect(await call(url)).toMatchObject({ status: 200, left: '0' });
  expect((await rows(url, 2)).map((row) => row.uses)).toEqual([1, 1]);
});

test('each of many calls has one row', async () => {
  const calls = thorough ? 1_000 : 200;
  const url = await issue(-1);
  // A listening socket queues 511 connections; of more, some are reset on a busy machine.
  await eachOf(
    Array.from({ length: calls }, (_, i) => i),
    50,
    async () => void (await call(url)),
  );
  const settled = await rows(url, calls);
  expect(settled).toHaveLength(calls);
  expect(new Set(settled.map((row) => row.holdId)).size).toBe(calls);
});
