import { once } from 'node:events';
import { Readable } from 'node:stream';
import * as zlib from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { OK, type Providers, startProviders } from './providers.ts';

const MIB = 1024 * 1024;
const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const ASK = { model: 'priced', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 };
const TEXT = JSON.stringify(ASK);
/** Newer Nodes have it. */
const { zstdCompressSync }: typeof zlib & { readonly zstdCompressSync?: (text: string) => Buffer } = zlib;

let providers: Providers;
let stack: Stack;
let configured: string;
let limited: string;
let plain: string;

beforeAll(async () => {
  providers = await startProviders();
  const openai = { base_url: providers.url, pricing: { priced: { input: 1_000_000, output: 1_000_000 } } };
  stack = await startStack({ providers: { openai } });
  configured = await urlOf({ config: { temperature: 0 } });
  limited = await urlOf({ cost_limit: 1_000 });
  plain = await urlOf({});
});
afterAll(async () => {
  await stack.close();
  await providers.close();
});
beforeEach(() => {
  providers.answer = OK;
  providers.seen.length = 0;
});

const urlOf = async (more: object) => (await stack.issue({ ...CHAT, ...more })).url;
async function send(url: string, body: string | Buffer | Readable, coding: string) {
  const headers = { 'content-type': 'application/json', 'content-encoding': coding };
  const answer = await request(url, { method: 'POST', body, headers });
  const { error } = (await answer.body.json()) as { error?: Record<string, unknown> };
  return { status: answer.statusCode, error };
}

const codings: [string, (text: string) => Buffer][] = [
  ['gzip', (text) => zlib.gzipSync(text)],
  ['x-gzip', (text) => zlib.gzipSync(text)],
  ['GZip', (text) => zlib.gzipSync(text)],
  ['deflate', (text) => zlib.deflateSync(text)],
  ['br', (text) => zlib.brotliCompressSync(text)],
  ...(zstdCompressSync ? [['zstd', zstdCompressSync] as [string, (text: string) => Buffer]] : []),
];

test.each(codings)(
  '%s is decoded if a body must be read, and the body is sent decoded',
  async (coding, code) => {
    expect((await send(configured, code(TEXT), coding)).status).toBe(200);
    expect((await send(await urlOf({ cost_limit: 1_000_000 }), code(TEXT), coding)).status).toBe(200);
    const [byConfig, byLimit] = providers.seen;
    expect(JSON.parse(String(byConfig?.body))).toMatchObject({ messages: ASK.messages, temperature: 0 });
    expect(JSON.parse(String(byLimit?.body))).toMatchObject({ messages: ASK.messages });
    for (const { headers, body } of [byConfig, byLimit].filter((seen) => seen !== undefined)) {
      expect(headers['content-encoding']).toBeUndefined();
      expect(headers['content-length']).toBe(String(body.length));
      expect(headers['content-type']).toBe('application/json');
    }
  },
);

test.each(codings)('%s passes unchanged if no body must be read', async (coding, code) => {
  expect((await send(plain, code(TEXT), coding)).status).toBe(200);
  expect(providers.seen[0]?.body).toEqual(code(TEXT));
  expect(providers.seen[0]?.headers['content-encoding']).toBe(coding);
});

test.each(codings)('%s makes a call no cheaper: it holds the same as uncompressed', async (coding, code) => {
  const long = JSON.stringify({ ...ASK, messages: [{ role: 'user', content: 'a '.repeat(MIB) }] });
  const { status, error } = await send(limited, long, 'identity');
  expect([status, error?.code]).toEqual([402, 'cost_limit_too_low']);
  const coded = await send(limited, code(long), coding);
  expect([coded.status, coded.error?.needed]).toEqual([402, error?.needed]);
  expect(providers.seen).toHaveLength(0);
});

test.each(['compress', 'x', 'gzip, gzip', 'gzip, identity', 'identity, gzip', 'aes128gcm', 'gzip;q=1'])(
  'a body coded as "%s" that must be read is refused: 415',
  async (coding) => {
    const { status, error } = await send(configured, zlib.gzipSync(zlib.gzipSync(TEXT)), coding);
    expect([status, error?.code, error?.param]).toEqual([415, 'unsupported_media_type', 'Content-Encoding']);
    expect(error?.message).toContain('gzip, x-gzip, deflate, br');
    expect(providers.seen).toHaveLength(0);
  },
);

const gzipped = zlib.gzipSync(TEXT);
test.each<[string, string, Buffer]>([
  ['no gzip', 'gzip', Buffer.from(TEXT)],
  ['no zlib', 'deflate', zlib.deflateRawSync(TEXT)],
  ['no brotli', 'br', Buffer.from(TEXT)],
  ['another coding', 'br', gzipped],
  ['cut short', 'gzip', gzipped.subarray(0, -1)],
  ['brotli cut short', 'br', zlib.brotliCompressSync(TEXT).subarray(0, -1)],
  ['of a wrong checksum', 'gzip', Buffer.concat([gzipped.subarray(0, -8), Buffer.alloc(8)])],
])('a body that is %s is refused: 400', async (_what, coding, body) => {
  const { status, error } = await send(configured, body, coding);
  expect([status, error?.code, error?.param]).toEqual([400, 'invalid_request', 'Content-Encoding']);
  expect(providers.seen).toHaveLength(0);
});

test('a decoded body is judged like any other', async () => {
  const twice = TEXT.replace('{', '{"model":"dear",');
  expect((await send(configured, zlib.gzipSync(twice), 'gzip')).error?.param).toBe('model');
  expect((await send(configured, zlib.gzipSync('['), 'gzip')).error?.code).toBe('invalid_json');
  expect((await send(configured, zlib.gzipSync(gzipped), 'gzip')).error?.code).toBe('invalid_json');
  expect(providers.seen).toHaveLength(0);
});

test('a body of several gzip members is decoded to all of them', async () => {
  const parts = [TEXT.slice(0, 9), TEXT.slice(9)].map((part) => zlib.gzipSync(part));
  expect((await send(configured, Buffer.concat(parts), 'gzip')).status).toBe(200);
  expect(JSON.parse(String(providers.seen[0]?.body))).toMatchObject({ messages: ASK.messages });
});

/** 384 MiB of spaces, as a stream coded them. */
async function bomb(coder: zlib.Gzip | zlib.BrotliCompress | zlib.Deflate): Promise<Buffer> {
  const coded: Buffer[] = [];
  coder.on('data', (chunk: Buffer) => coded.push(chunk));
  Readable.from(Array.from({ length: 96 }, () => Buffer.alloc(4 * MIB, ' '))).pipe(coder);
  await once(coder, 'end');
  return Buffer.concat(coded);
}

test.each<[string, () => zlib.Gzip | zlib.BrotliCompress | zlib.Deflate]>([
  ['gzip', () => zlib.createGzip({ level: 1 })],
  ['deflate', () => zlib.createDeflate({ level: 1 })],
  ['br', () => zlib.createBrotliCompress({ params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
])('a bomb of %s is answered 413 and never unpacked', async (coding, coder) => {
  const body = await bomb(coder());
  let most = 0;
  const before = process.memoryUsage().arrayBuffers;
  const looking = setInterval(() => {
    most = Math.max(most, process.memoryUsage().arrayBuffers - before);
  }, 5);
  const { status, error } = await send(configured, body, coding);
  clearInterval(looking);
  expect([status, error?.code]).toEqual([413, 'body_too_large']);
  expect(most).toBeLessThan(256 * MIB);
  expect(providers.seen).toHaveLength(0);
});

test('an endless body that decodes to nothing gets 413', async () => {
  const empty = Buffer.concat(Array.from({ length: 4_096 }, () => zlib.gzipSync('')));
  const endless = Readable.from(
    (function* () {
      for (let sent = 0; sent < 80 * MIB; sent += empty.length) yield empty;
    })(),
  );
  const { status, error } = await send(configured, endless, 'gzip');
  expect([status, error?.code]).toEqual([413, 'body_too_large']);
});
