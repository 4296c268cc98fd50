import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';

/** One request that a holder could send without end. */
export type Attack = {
  readonly name: string;
  /** How its URL is issued. */
  readonly ask: object;
  /** How many URLs attack. */
  readonly urls?: number;
  readonly body?: () => string | Buffer;
  /** The whole request after its first two lines, in place of a body. */
  readonly raw?: (begun: string) => string;
  readonly headers?: Readonly<Record<string, string>>;
  /** How many requests are written to a connection at once. */
  readonly times?: number;
  /** `leave`: do not read the answer. `stall`: send all but the last byte, and wait. `bytes`: send a chunk for each byte. */
  readonly holder?: 'leave' | 'stall' | 'bytes';
};

const LIMITED = { cost_limit: 1_000_000_000 };
const chat = (content: unknown, more: object = {}) =>
  JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }], ...more });
const GEMINI = { provider: 'google', path: '/v1beta/models/gemini-2.5-flash:generateContent' };
const EMBEDDINGS = { path: '/v1/embeddings' };
/** A URL of an MCP server. */
const MCP = { servers: [{ name: 'attacked', transport: 'http' }] };
const MCP_HEADERS = { accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-06-18' };
const toolCall = (more: object = {}) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'run', arguments: {}, ...more },
});
/** Lists the tools of a server, some of which the URL does not allow. */
const LISTS = {
  ask: { servers: [{ name: 'attacked', transport: 'http', tools: ['run'] }] },
  body: () => JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
};
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
  ...Object.entries({ gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }).map(
    ([coding, encode]) => ({
      name: `${coding} bodies that stall`,
      ask: LIMITED,
      body: () => encode(chat('x'.repeat(15_000_000))),
      headers: { 'content-encoding': coding },
      holder: 'stall' as const,
    }),
  ),
  { name: '500 calls at once on a connection', ask: LIMITED, body: () => chat('x'), times: 500 },
  {
    name: '5,000 refusals at once on a connection',
    ask: LIMITED,
    body: () => '{"model":"none"}',
    times: 5_000,
  },
  {
    name: '16 KB of 3,000 headers',
    ask: LIMITED,
    raw: (begun) => `${begun}${'a:b\r\n'.repeat(3_000)}Connection: close\r\nContent-Length: 2\r\n\r\n{}`,
  },
  {
    name: 'headers in 3,000 folded lines',
    ask: LIMITED,
    raw: (begun) =>
      `${begun}X: a\r\n${' b\r\n'.repeat(3_000)}Connection: close\r\nContent-Length: 2\r\n\r\n{}`,
  },
  {
    name: '3,000 trailers',
    ask: LIMITED,
    raw: (begun) =>
      `${begun}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${'a:b\r\n'.repeat(3_000)}\r\n`,
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
  ...['gzip', 'br', 'zstd'].map((coding) => ({
    name: `60 MB of embeddings in ${coding} as answer`,
    ask: EMBEDDINGS,
    body: () => embed,
    headers: { 'x-coding': coding },
  })),
  {
    name: '60 MB of events in gzip as answer',
    ask: {},
    body: () => chat('x', { stream: true }),
    headers: { 'x-answer': 'events', 'x-coding': 'gzip' },
  },
  {
    name: '16 MB of arguments for an MCP tool',
    ask: MCP,
    body: () => JSON.stringify(toolCall({ arguments: { text: 'x'.repeat(15_900_000) } })),
    headers: MCP_HEADERS,
  },
  {
    name: '5 MB of 40,000 MCP messages',
    ask: MCP,
    body: () => JSON.stringify(Array.from({ length: 40_000 }, () => toolCall())),
    headers: MCP_HEADERS,
  },
  {
    name: '60 MB of events as MCP answer',
    ask: MCP,
    body: () => JSON.stringify(toolCall()),
    headers: { ...MCP_HEADERS, 'x-answer': 'messages' },
  },
  {
    name: '60 MB of one event as MCP answer',
    ask: MCP,
    body: () => JSON.stringify(toolCall()),
    headers: { ...MCP_HEADERS, 'x-answer': 'one event' },
  },
  {
    name: '60 MB of tools as one list',
    ...LISTS,
    headers: { ...MCP_HEADERS, 'x-answer': 'tools' },
  },
  {
    name: '60 MB of lists of tools as events',
    ...LISTS,
    headers: { ...MCP_HEADERS, 'x-answer': 'lists' },
  },
  {
    name: '5 MB of 150,000 messages from eight URLs',
    ask: LIMITED,
    urls: 8,
    body: () =>
      chat('x', { messages: Array.from({ length: 150_000 }, () => ({ role: 'user', content: '' })) }),
  },
  {
    name: '16 MB of text from eight URLs',
    ask: LIMITED,
    urls: 8,
    body: () => chat('x'.repeat(16_000_000)),
  },
];
