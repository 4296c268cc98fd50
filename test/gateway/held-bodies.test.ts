import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { openSocket } from '../harness/raw-http.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

const KIB = 1024;
const BUDGET_BYTES = 1024 * KIB;
/** Nearly all that large bodies may take: passes only if what others held has been given back. */
const ALL = bodyOf(850 * KIB);
/** More than large bodies may take, when nothing else is held. */
const TOO_MUCH = bodyOf(920 * KIB);
const LARGE = bodyOf(100 * KIB);
const SMALL = bodyOf(KIB);
/** Calls of 100 KiB: twice the budget, should each of them keep what it took. */
const MANY = 20;

let providers: Providers;
let stack: Stack;
let url: string;

beforeAll(async () => {
  providers = await startProviders();
  const refusing = { extends: 'openai', base_url: `http://127.0.0.1:${await freePort()}` };
  stack = await startStack({
    providers: { ...providers.file, refusing },
    // The largest body decides the share of a URL: all of the memory here, except in one test.
    gateway: { maxHeldBodyBytes: BUDGET_BYTES, maxBodyBytes: 16 * KIB * KIB },
  });
  url = await issue();
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.answer = OK;
  providers.seen.length = 0;
});

function bodyOf(bytes: number): string {
  return JSON.stringify({ messages: randomBytes(bytes).toString('hex').slice(0, bytes) });
}

const issue = async (ask: object = {}) => {
  const path = '/v1/chat/completions';
  const base = { provider: 'openai', path, client_api_key: 'sk-real', config: { model: 'x' } };
  return (await stack.issue({ ...base, ...ask })).url;
};
type Sent = { to?: string; headers?: Record<string, string> };
async function send(body: string | Buffer, { to = url, headers = {} }: Sent = {}) {
  const json = { 'content-type': 'application/json', ...headers };
  const answer = await request(to, { method: 'POST', body, headers: json });
  const { error } = (await answer.body.json()) as { error?: { code: string } };
  return { is: error?.code ?? answer.statusCode, status: answer.statusCode, headers: answer.headers };
}

/** Sends a call's head and the first part of its body, and nothing more. */
async function stall(bytes: number): Promise<Socket> {
  const socket = await openSocket(new URL(url).origin);
  socket.on('error', () => {});
  socket.write(`POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nContent-Length: ${2 * bytes}\r\n\r\n`);
  socket.write(LARGE.slice(0, bytes));
  return socket;
}
const allIsFree = () =>
  eventually(async () => ((await send(ALL)).is === 200 ? true : undefined)).catch(() => false);

test('beyond the memory for bodies a large body gets 503 overloaded, and a small one passes', async () => {
  const once = await issue({ max_uses: 1 });
  const stalled: Socket[] = [];
  let isFull = false;
  const refused = await eventually(async () => {
    // One after the other: bodies that grow at once may all find no room, and give back what they had.
    if (!isFull) {
      const socket = await stall(72 * KIB);
      socket.once('data', () => {
        isFull = true;
      });
      return void stalled.push(socket);
    }
    const answer = await send(bodyOf(130 * KIB));
    isFull = answer.is !== 200;
    return isFull ? answer : undefined;
  });
  expect(refused).toMatchObject({ is: 'overloaded', status: 503, headers: { 'retry-after': '1' } });
  providers.seen.length = 0;
  expect((await send(ALL, { to: once })).is).toBe('overloaded');
  expect(providers.seen).toHaveLength(0);
  // Small ones take more than is left: they have a part of their own. No use was spent by what was refused.
  const small = await Promise.all([stall(45 * KIB), stall(45 * KIB)]);
  stalled.push(...small);
  expect((await send(bodyOf(60 * KIB), { to: once })).is).toBe(200);
  for (const socket of stalled) socket.destroy();
  expect(await allIsFree()).toBe(true);
});

test('small bodies are bounded too', async () => {
  const stalled = await Promise.all(Array.from({ length: 40 }, () => stall(30 * KIB)));
  const refused = await eventually(async () => {
    const answer = await send(bodyOf(60 * KIB));
    return answer.is === 200 ? undefined : answer.is;
  });
  expect(refused).toBe('overloaded');
  for (const socket of stalled) socket.destroy();
  expect(await allIsFree()).toBe(true);
});

test('a body in chunks of a byte needs little more memory than its bytes', async () => {
  const socket = await openSocket(new URL(url).origin);
  let text = '';
  socket.on('data', (chunk) => {
    text += String(chunk);
  });
  const body = bodyOf(50 * KIB).replace(/./gs, '1\r\n$&\r\n');
  socket.write(`POST ${new URL(url).pathname} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n`);
  socket.write(`${body}0\r\n\r\n`);
  await eventually(async () => text !== '');
  expect(text).toContain('HTTP/1.1 200');
  socket.destroy();
});

/** Lets what was sent arrive, then leaves. */
const leave = (socket: Socket) =>
  new Promise<void>((resolve) =>
    socket
      .resume()
      .once('close', () => resolve())
      .end(),
  );

const ends: [string, () => Promise<unknown>, unknown][] = [
  ['whose body is no JSON', async () => (await send(`${LARGE}}`)).is, 'invalid_json'],
  [
    'whose body has a key twice',
    async () => (await send(`${LARGE.slice(0, -1)},"a":1,"a":2}`)).is,
    'invalid_request',
  ],
  ['whose body is too large for what is held', async () => (await send(ALL.repeat(2))).is, 'overloaded'],
  [
    'whose body decodes to too much',
    async () => (await send(gzipSync(Buffer.alloc(8e6)), { headers: { 'content-encoding': 'gzip' } })).is,
    'overloaded',
  ],
  [
    'whose body cannot be decoded to its end',
    async () => (await send(gzipSync(LARGE).subarray(0, -9), { headers: { 'content-encoding': 'gzip' } })).is,
    'invalid_request',
  ],
  ['without a use left', async () => (await send(LARGE, { to: await spent() })).is, 'uses_exhausted'],
  ['that is served', async () => (await send(LARGE)).is, 200],
  [
    'that is served without a config',
    async () => (await send(SMALL.repeat(40), { to: await plain() })).is,
    200,
  ],
  [
    'that the provider refuses',
    async () => {
      providers.answer = (_seen, response) => void response.writeHead(429).end('{}');
      return (await send(LARGE)).status;
    },
    429,
  ],
  [
    'that the provider cuts',
    async () => {
      providers.answer = (_seen, response) => void response.destroy();
      return (await send(LARGE)).is;
    },
    'upstream_unreachable',
  ],
  [
    'that never leaves',
    async () => (await send(LARGE, { to: await unreachable() })).is,
    'upstream_unreachable',
  ],
  ['whose holder leaves amid the body', async () => leave(await stall(100 * KIB)), undefined],
  [
    'whose holder leaves before the answer',
    async () => {
      const open: ServerResponse[] = [];
      providers.answer = (_seen, response) => void open.push(response);
      const leaving = new AbortController();
      const calling = request(url, { method: 'POST', body: LARGE, signal: leaving.signal });
      const left = calling.catch((error: Error) => error.name);
      await eventually(async () => (open.length > 0 ? true : undefined));
      leaving.abort();
      open[0]?.end('{}');
      return left;
    },
    'AbortError',
  ],
];
const remembered = new Map<string, Promise<string>>();
function rememberedUrl(name: string, make: () => Promise<string>) {
  const known = remembered.get(name) ?? make();
  remembered.set(name, known);
  return known;
}
const plain = () => rememberedUrl('plain', () => issue({ config: undefined }));
const unreachable = () => rememberedUrl('unreachable', () => issue({ provider: 'refusing' }));
const spent = () =>
  rememberedUrl('spent', async () => {
    const once = await issue({ max_uses: 1 });
    await send(SMALL, { to: once });
    return once;
  });

test.each(ends)('a call %s releases the memory that it reserved, and no more', async (_what, end, is) => {
  for (let i = 0; i < MANY; i++) expect(await end()).toBe(is);
  providers.answer = OK;
  expect(await allIsFree()).toBe(true);
  expect((await send(TOO_MUCH)).is).toBe('overloaded');
});

test('a large body that was sent makes room for others, although its answer continues', async () => {
  const open: ServerResponse[] = [];
  providers.answer = (_seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 0\n\n');
    open.push(response);
  };
  const answers: Awaited<ReturnType<typeof request>>[] = [];
  for (let i = 0; i < 5; i++) {
    const answer = await request(url, { method: 'POST', body: ALL });
    expect(answer.statusCode).toBe(200);
    answers.push(answer);
  }
  expect(open.filter((response) => !response.writableEnded)).toHaveLength(5);
  for (const response of open) response.end('data: 1\n\n');
  for (const answer of answers) expect(await answer.body.text()).toBe('data: 0\n\ndata: 1\n\n');
  const arrived = providers.seen.map(({ body }) => JSON.parse(String(body)) as object);
  expect(arrived).toEqual(Array.from({ length: 5 }, () => ({ ...(JSON.parse(ALL) as object), model: 'x' })));
});
