import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Dialect } from '@presign/providers';
import { isJsonObject, isModest, type JsonObject, type Refusal } from '@presign/schema';
import { contentCoding, readDecoded, readWhole } from '../http/body.ts';
import { type HeldBytes, SMALL_BODY_BYTES } from '../http/body-memory.ts';
import { ambiguousKey, type NamesRead } from '../http/json.ts';
import type { Body } from '../http/leaving.ts';

/** A body as far as it had to be read. */
export type Content = {
  readonly raw: Body;
  /** What it says, where that had to be known: a JSON object. */
  readonly json: JsonObject | undefined;
};

/** How much must be known of a body. */
export type Need =
  /** A config or a spend limit acts on it, so it must be one JSON object that all readers read alike. */
  | { readonly is: 'must'; readonly names: NamesRead }
  /** Its usage would be good to know: read if it is plain JSON of a modest length. */
  | { readonly is: 'may' }
  | { readonly is: 'none' };

/** Bodies up to this size are read for their model, and for whether the answer will be a stream. */
const METERED_MAX_BYTES = 8 * 1024 * 1024;

/**
 * Reads as much of a body as is needed; a large one of which nothing must be known streams through. A small one is
 * waited for: one write upstream, and no upstream connection for a holder who stalls.
 * @param held takes what is read
 */
export async function readBody(
  request: IncomingMessage,
  need: Need,
  held: HeldBytes,
): Promise<{ content: Content } | { refusal: Refusal }> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (coding === undefined && (length === undefined || Number(length) === 0)) {
    return { content: { raw: null, json: undefined } };
  }
  const knows = need.is === 'must' || (need.is === 'may' && isPlainJson(request));
  const size = coding === undefined ? Number(length) : Number.POSITIVE_INFINITY;
  if (need.is !== 'must' && size > (knows ? METERED_MAX_BYTES : SMALL_BODY_BYTES)) {
    return { content: { raw: detached(request), json: undefined } };
  }
  const whole = need.is === 'must' ? await readDecoded(request, held) : await readWhole(request, held);
  if ('refusal' in whole) return whole;
  const read = knows ? readObject(whole.bytes, need.is === 'must' ? need.names : NO_NAMES) : undefined;
  if (read && 'refusal' in read && need.is === 'must') return read;
  return { content: { raw: whole.bytes, json: read && 'json' in read ? read.json : undefined } };
}

const NO_NAMES: NamesRead = new Set();

const isPlainJson = (request: IncomingMessage) =>
  contentCoding(request) === 'identity' &&
  /^application\/json\b/i.test(request.headers['content-type'] ?? '');

/**
 * A stream of its own: undici destroys the one it is given when a provider answers before it has all, and the
 * holder, who may read only after sending, must not be cut off. The rest is thrown away.
 */
function detached(request: IncomingMessage): Readable {
  async function* chunks() {
    try {
      yield* request.iterator({ destroyOnReturn: false });
    } finally {
      request.resume();
    }
  }
  return Readable.from(chunks(), { objectMode: false });
}

/** What a body says; what is checked here is what is sent. */
function readObject(bytes: Buffer, names: NamesRead): { json: JsonObject } | { refusal: Refusal } {
  if (!isModest(bytes, MODEST)) return { refusal: IMMODEST };
  const text = decode(bytes);
  const value = text === undefined ? undefined : parse(text);
  if (text === undefined || value === undefined) return { refusal: { code: 'invalid_json' } };
  if (!isJsonObject(value)) return { refusal: { code: 'unsupported_media_type' } };
  const key = ambiguousKey(text, names);
  return key === undefined ? { json: value } : { refusal: ambiguous(key) };
}

/**
 * Parsing has no limit of depth, writing has: V8's stack. The parts are more than any call has: embeddings take at
 * most 300,000 tokens, chats a few thousand messages.
 */
const MODEST = { depth: 500, parts: 1_000_000 };

const IMMODEST: Refusal = {
  code: 'invalid_json',
  message: 'The body is nested too deeply, has more than a million parts, or a name of over 16,000 bytes.',
};

/** UTF-8, with a byte order mark refused later by the parser (RFC 8259 §8.1). */
function decode(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** What a config touches in a body, under every name it has there. */
export function namesRead(dialect: Dialect | undefined, config: JsonObject): NamesRead {
  const settings = (dialect?.settings ?? []).flatMap(({ at, names, rivals }) => [
    ...names,
    ...(rivals ?? []),
    ...(at ? [at.join('.')] : []),
  ]);
  return new Set([...settings, ...fieldsWithin(config)]);
}

function fieldsWithin(value: JsonObject): string[] {
  return Object.entries(value).flatMap(([key, inner]) => [
    key,
    ...(isJsonObject(inner) ? fieldsWithin(inner).map((field) => `${key}.${field}`) : []),
  ]);
}

function ambiguous(key: string): Refusal {
  const message = `${key}: readers may differ on what this key says: it stands twice, or in another case than ours.`;
  return { code: 'invalid_request', param: key, message };
}
