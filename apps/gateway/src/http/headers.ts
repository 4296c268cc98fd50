import type { ServerResponse } from 'node:http';
import { type AnswerHeaders, CREDENTIAL_QUERY_KEYS, HOLDER_CREDENTIAL_HEADERS } from '@presign/providers';
import { type RateLimit, rateLimitHeaders } from '@presign/schema';

/** Names and values in turn, as Node and undici take them. */
export type FlatHeaders = string[];

/**
 * The headers of every answer. A page of any origin may use a URL: the URL itself is the secret, and no cookie is read. `referrer-policy`
 * keeps the URL out of `Referer` headers. `content-security-policy` lets an upstream's page run no script and gives it an opaque origin,
 * because the console may be at the gateway's origin.
 */
export const ANSWER_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'x-presign-request-id, x-presign-code, x-presign-uses-remaining, x-presign-cost, x-presign-cost-remaining, ' +
    'x-presign-max-tokens, x-should-retry, x-request-id, retry-after, ratelimit, ratelimit-policy, mcp-session-id, mcp-protocol-version',
  'content-security-policy': 'sandbox',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** `ANSWER_HEADERS` of a URL whose answers only pages of this origin may read, if it is given. */
export const answerHeaders = (origin: string | undefined): Readonly<Record<string, string>> =>
  origin === undefined
    ? ANSWER_HEADERS
    : { ...ANSWER_HEADERS, 'access-control-allow-origin': origin, vary: 'origin' };

/** The gateway's own headers on every answer that passes: its request id, and the state of rate limits, if any. */
export function ownHeaders(requestId: string, limits: readonly RateLimit[], origin?: string): FlatHeaders {
  const own = origin === undefined ? FLAT_ANSWER_HEADERS : Object.entries(answerHeaders(origin)).flat();
  const ofLimits = limits.length === 0 ? NOTHING : Object.entries(rateLimitHeaders(limits)).flat();
  return [...own, 'x-presign-request-id', requestId, ...ofLimits];
}

const FLAT_ANSWER_HEADERS: readonly string[] = Object.entries(ANSWER_HEADERS).flat();
const NOTHING: readonly string[] = [];

/** RFC 9110 §7.6.1: these headers are per hop, so they are never forwarded. `proxy-connection` is an old variant of `connection`. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

const NOT_FORWARDED = new Set([
  ...HOP_BY_HOP,
  ...HOLDER_CREDENTIAL_HEADERS,
  'host',
  // This server has answered it already.
  'expect',
  'cookie',
  'cookie2',
  // The gateway sends its own traceparent if configured. The holder's trace is not shown to the upstream.
  'traceparent',
  'tracestate',
  'baggage',
  // Azure API Management answers it with a trace of the request, the key included.
  'ocp-apim-trace',
  // These reveal where the holder comes from. Some providers refuse requests with a browser's origin.
  'forwarded',
  'via',
  'origin',
  'referer',
  'true-client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-url',
  'x-rewrite-url',
  'x-real-ip',
  // They make some servers run a different method than the checked one.
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
]);
const NOT_FORWARDED_PREFIX = /^(x-forwarded-|cf-|sec-|x-presign-)/;

/**
 * The holder's headers without those for this hop only and without the holder's own credentials.
 * @param isReplaced whether a header (its name in lower case) is left out because the gateway has its own
 */
export const holdersHeaders = (
  raw: readonly string[],
  isReplaced: (name: string) => boolean = () => false,
): FlatHeaders => keepHeaders(raw, (name) => isForwarded(name) && !isReplaced(name));

/** CGI-like servers read `_` as `-` (RFC 3875 §4.1.18), so `Api_Key` could act as a header that is dropped. */
const isForwarded = (name: string) =>
  !NOT_FORWARDED.has(name) && !NOT_FORWARDED_PREFIX.test(name) && !name.includes('_');

/**
 * The upstream's headers as the holder gets them.
 * @param passes the allow-list for this upstream
 */
export function responseHeaders(
  raw: readonly Buffer[] | readonly string[],
  passes: AnswerHeaders,
): FlatHeaders {
  const text = raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
  return keepHeaders(text, passes);
}

/** The query without the keys that providers read credentials from, and without `dropped`. The rest is unchanged byte for byte. */
export function cleanQuery(query: string, dropped: ReadonlySet<string> = NO_KEYS): string {
  if (query === '') return '';
  const kept = query.split('&').filter((part) => {
    const key = queryKey(part);
    return !CREDENTIAL_QUERY_KEYS.has(key) && !dropped.has(key);
  });
  return kept.length > 0 ? `?${kept.join('&')}` : '';
}

const NO_KEYS: ReadonlySet<string> = new Set();

function queryKey(part: string): string {
  const key = (part.split('=', 1)[0] ?? '').replaceAll('+', ' ');
  try {
    return decodeURIComponent(key).trim().toLowerCase();
  } catch {
    return key.toLowerCase();
  }
}

function keepHeaders(raw: readonly string[], wanted: (name: string) => boolean): FlatHeaders {
  const nominated = connectionOptions(raw);
  const kept: FlatHeaders = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const lower = name.toLowerCase();
    if (wanted(lower) && !nominated?.has(lower)) kept.push(name, raw[i + 1] ?? '');
  }
  return kept;
}

/** The headers that `Connection` names, in lower case. They are per hop, too (RFC 9110 §7.6.1). */
function connectionOptions(raw: readonly string[]): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    if (!isNamed(raw[i], 'connection')) continue;
    names ??= new Set();
    for (const name of (raw[i + 1] ?? '').split(',')) names.add(name.trim().toLowerCase());
  }
  return names;
}

/** Whether a header has this name (in lower case). Lengths are compared first, because that is cheapest. */
const isNamed = (header: string | undefined, name: string): boolean =>
  header?.length === name.length && header.toLowerCase() === name;

/** The first value of a header. `name` is in lower case; the header's own case does not matter. */
export function headerOf(headers: FlatHeaders, name: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    if (isNamed(headers[i], name)) return headers[i + 1];
  }
  return undefined;
}

/** The headers without those of these names (in lower case). */
export function withoutHeaders(headers: FlatHeaders, names: readonly string[]): FlatHeaders {
  const kept: FlatHeaders = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (!names.includes(headers[i]?.toLowerCase() ?? '')) kept.push(headers[i] ?? '', headers[i + 1] ?? '');
  }
  return kept;
}

/**
 * Sends the head of a stream before its first chunk. Node's `flushHeaders` would write it as UTF-8, and each non-ASCII header byte would
 * become two bytes.
 */
export const sendHead = (response: ServerResponse): void => void response.write('', 'latin1');

/** Node writes strings up to this size without allocating a buffer. */
const IN_ONE_PIECE_BYTES = 8 * 1024;

/** Ends an answer with these bytes. Node writes a string in one piece with the head, which costs less than two buffers. */
export function endWith(response: ServerResponse, last: Buffer): void {
  if (last.length <= IN_ONE_PIECE_BYTES) response.end(last.toString('latin1'), 'latin1');
  else response.end(last);
}

/**
 * Writes the next part of an answer whose head is sent. It frames the chunks of a chunked answer (RFC 9112 §7.1) itself, because Node
 * writes one in four pieces. One string costs less, see ADR 4. While the socket is open, Node gets no bytes of such an answer before its
 * end: Node 26 delays a chunk until the next tick, and later parts would overtake it.
 * @returns false when no more may be written before `whenDrained` calls back
 */
export function writePart(response: ServerResponse, part: Buffer): boolean {
  const { socket } = response;
  const isOpen = socket?.writable === true && !response.writableEnded;
  if (!isOpen || !response.chunkedEncoding || part.length === 0) return response.write(part);
  if (socket.writableCorked === 0) {
    // Writes all parts of one read together. A promise reaction is cheaper than a Node tick.
    socket.cork();
    void DONE.then(() => socket.uncork());
  }
  const size = part.length.toString(16);
  if (part.length <= IN_ONE_PIECE_BYTES)
    return socket.write(`${size}\r\n${part.toString('latin1')}\r\n`, 'latin1');
  socket.write(`${size}\r\n`, 'latin1');
  socket.write(part);
  return socket.write('\r\n', 'latin1');
}

const DONE = Promise.resolve();

/** Calls back when the next part may be written, or at once if nothing has to wait. */
export function whenDrained(response: ServerResponse, callback: () => void): void {
  const full = [response, response.socket].find((stream) => stream?.writableNeedDrain);
  if (full) full.once('drain', callback);
  else callback();
}

/** The parts in one piece. A single one is not copied. */
export const joined = (parts: readonly Buffer[]): Buffer =>
  parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
