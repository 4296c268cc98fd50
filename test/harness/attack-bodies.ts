import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

/** One request that a holder could send without end. */
export type Attack = {
  readonly name: string;
  /** How its URL is issued. */
  readonly ask: object;
  readonly path?: string;
  readonly body: () => string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** `leave`: do not read the answer. `stall`: send all but the last byte, and wait. `bytes`: send a chunk for each byte. */
  readonly holder?: 'leave' | 'stall' | 'bytes';
};

const LIMITED = { cost_limit: 1_000_000_000 };
const chat = (content: unknown, more: object = {}) =>
  JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], ...more });
const GEMINI = { provider: 'google', path: '/v1beta/models/gemini-2.5-flash:generateContent' };
const EMBEDDINGS = { path: '/v1/embeddings' };
const embed = JSON.stringify({ model: 'text-embedding-3-small', input: 'x' });

export const ATTACKS: readonly Attack[] = [
  { name: '104 KB of combining marks', ask: LIMITED, body: () => chat('\u0315\u0316'.repeat(26_000)) },
  {
    name: 'a model name that backtracks',
    ask: LIMITED,
    body: () => chat('x', { model: `claude-sonnet-4-5${'-1234-12-12'.repeat(21)}x` }),
  },
  {
    name: '50,000 names of fields for Gemini',
    ask: { ...GEMINI, ...LIMITED },
    body: () => `{${Array.from({ length: 50_000 }, (_, i) => `"name_${i}":1`).join()}}`,
  },
  {
    name: '60 KB of 20,000 empty messages',
    ask: LIMITED,
    body: () => `{"model":"gpt-4o-mini","messages":[${'{},'.repeat(20_000)}{}]}`,
  },
  {
    name: '5 MB of 150,000 messages',
    ask: LIMITED,
    body: () =>
      chat('x', { messages: Array.from({ length: 150_000 }, () => ({ role: 'user', content: '' })) }),
  },
  { name: '16 MB of text', ask: LIMITED, body: () => chat('x'.repeat(16_000_000)) },
  {
    name: '16 MB of text, uses spent',
    ask: { ...LIMITED, max_uses: 1 },
    body: () => chat('x'.repeat(16_000_000)),
  },
  { name: '16 MB of empty objects', ask: LIMITED, body: () => `{"messages":[${'{},'.repeat(5_300_000)}{}]}` },
  {
    name: '15 MB in 16 KB of gzip',
    ask: LIMITED,
    body: () => gzipSync(chat(' '.repeat(15_000_000))),
    headers: { 'content-encoding': 'gzip' },
  },
  {
    name: '16 MB of br in a few bytes',
    ask: LIMITED,
    body: () => brotliCompressSync(chat('x'.repeat(15_900_000))),
    headers: { 'content-encoding': 'br' },
  },
  {
    name: '200 MB in 200 KB of deflate',
    ask: LIMITED,
    body: () => deflateSync(Buffer.alloc(200_000_000)),
    headers: { 'content-encoding': 'deflate' },
  },
  {
    name: '16 MB of nested arrays',
    ask: LIMITED,
    body: () => `{"messages":${'['.repeat(8_000_000)}${']'.repeat(8_000_000)}}`,
  },
  {
    name: '60 KB in chunks of one byte',
    ask: LIMITED,
    body: () => chat('x'.repeat(60_000)),
    holder: 'bytes',
  },
  {
    name: 'gzip bodies that stall',
    ask: LIMITED,
    body: () => gzipSync(chat('x'.repeat(15_000_000))),
    headers: { 'content-encoding': 'gzip' },
    holder: 'stall',
  },
  { name: 'small bodies that are refused', ask: LIMITED, body: () => '{"model":"none"}' },
  { name: '60 MB of embeddings, holder leaves', ask: EMBEDDINGS, body: () => embed, holder: 'leave' },
  {
    name: '60 MB of empty objects as answer',
    ask: EMBEDDINGS,
    body: () => embed,
    headers: { 'x-answer': 'objects' },
    holder: 'leave',
  },
  ...['blank lines', 'events'].map((kind) => ({
    name: `60 MB of ${kind} as answer`,
    ask: {},
    body: () => chat('x', { stream: true }),
    headers: { 'x-answer': kind },
  })),
];
