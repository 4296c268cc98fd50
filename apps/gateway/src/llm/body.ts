import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import {
  briefly,
  isJsonObject,
  type JsonObject,
  type LeftOutParts,
  type LongText,
  type Member,
  type Modesty,
  type Refusal,
  readJson,
  type Scan,
  scanJson,
} from '@presign/schema';
import {
  type Body,
  contentCoding,
  mayBeLarge,
  readDecoded,
  readWhole,
  statedSize,
  tooLarge,
} from '../http/body.ts';
import { type NameTree, namesJudge } from '../json/names.ts';
import { bodyOf, forgetBody } from '../share/arrival.ts';
import { type Reservation, SMALL_BODY_BYTES } from '../share/body-memory.ts';

/** A body, read only as far as necessary. */
export type Content = {
  readonly raw: Body;
  /** The body as JSON, if it was read. */
  readonly json: JsonObject | undefined;
  /** The result of scanning the bytes of that JSON. */
  readonly scan?: Scan;
  /** The long texts that its JSON has no strings for. */
  readonly leftOut?: readonly LongText[];
};

/** A body as it arrived. */
export type Arrived = {
  readonly raw: Body;
  /** Whether its JSON must also be parsed. */
  readonly isJson: boolean;
  /** The gateway has removed its content coding. */
  readonly isDecoded?: boolean;
};

/**
 * How much of a body must be read.
 * - `must`: a config or a limit acts on it. It must be one JSON object that all parsers read in the same way.
 * - `may`: only its usage is metered. It is read if it is plain JSON of limited length.
 * - `whole`: the provider requires a signature, so it is read whole. Its JSON is read as under `may`.
 */
export type Need = 'must' | 'may' | 'whole' | 'none';

/** Bodies up to this size are read for their model and for whether they ask for a stream. */
const METERED_MAX_BYTES = 8 * 1024 * 1024;

/** Whether the body is read, and it is large or of unknown size. */
export function readsMuch(request: IncomingMessage, need: Need): boolean {
  if (!mayBeLarge(request) || need === 'none') return false;
  return need !== 'may' || (statedSize(request) <= METERED_MAX_BYTES && isPlainJson(request));
}

/**
 * Reads as much of a body as the call needs. A large body that need not be read is streamed. A small body is read
 * first, so that it takes one write upstream, and a slow holder occupies no upstream connection.
 * @param mostBytes of the body, both as sent and decoded. A body of unknown size is read whole.
 */
export async function readBody(
  request: IncomingMessage,
  need: Need,
  memory: Reservation,
  mostBytes = Number.POSITIVE_INFINITY,
): Promise<{ arrived: Arrived } | { refusal: Refusal }> {
  const size = statedSize(request);
  if (size === 0) return { arrived: { raw: null, isJson: false } };
  const isBounded = mostBytes !== Number.POSITIVE_INFINITY;
  if (isBounded && Number.isFinite(size) && size > mostBytes)
    return { refusal: tooLarge({ maxBodyBytes: mostBytes }) };
  if (need === 'must' && /^multipart\//i.test(request.headers['content-type'] ?? ''))
    return { refusal: MULTIPART };
  const isJson = need === 'must' || (need !== 'none' && isPlainJson(request));
  const isCoded = contentCoding(request) !== 'identity';
  const mustMeasure = isBounded && (isCoded || !Number.isFinite(size));
  const isLarge = size > (isJson ? METERED_MAX_BYTES : SMALL_BODY_BYTES);
  if (['may', 'none'].includes(need) && isLarge && !mustMeasure)
    return { arrived: { raw: detached(request), isJson: false } };
  const isDecoded = isCoded && (need === 'must' || mustMeasure);
  const room = isBounded ? { ...memory, maxBodyBytes: Math.min(memory.maxBodyBytes, mostBytes) } : memory;
  const whole = isDecoded ? await readDecoded(request, room) : await readWhole(request, room);
  return 'refusal' in whole ? whole : { arrived: { raw: whole.bytes, isJson, isDecoded } };
}

/** The refusal of a body of which nothing is read. */
export const MULTIPART: Refusal = {
  code: 'unsupported_media_type',
  param: 'Content-Type',
  message:
    'Content-Type: a config, a limit or a condition of this URL can act on JSON only. Send a JSON object, or use a URL without them for multipart forms.',
};

/**
 * Scans the bytes of a body before it is parsed.
 * @param names whose other spellings are refused in a `must` body
 * @param leftOut parts that a `must` body may be read without
 */
export const scanBody = (raw: Buffer, need: Need, names: NameTree, most: Modesty, leftOut?: LeftOutParts) => {
  const isMust = need === 'must';
  return scanJson(raw, most, namesJudge(isMust ? names : undefined), isMust ? leftOut : undefined);
};

/** Parses the JSON of a body that was scanned. Only a `must` body can be refused. */
export function readContent(
  raw: Buffer,
  need: Need,
  scan: ReturnType<typeof scanBody>,
): { content: Content } | { refusal: Refusal } {
  if ('excess' in scan)
    return need === 'must' ? { refusal: IMMODEST } : { content: { raw, json: undefined } };
  const read = need === 'must' || raw.length < TOP_MIN_BYTES ? readObject(raw, scan) : readTop(raw, scan);
  if ('json' in read) return { content: { raw, json: read.json, scan } };
  return need === 'must' ? read : { content: { raw, json: undefined } };
}

const isPlainJson = (request: IncomingMessage) =>
  contentCoding(request) === 'identity' &&
  /^application\/json\b/i.test(request.headers['content-type'] ?? '');

/**
 * A stream that undici may destroy. undici destroys it when a provider answers before it has read everything. The
 * holder's connection must survive, because some holders read only after sending. The rest of the request is discarded.
 */
function detached(request: IncomingMessage): Readable {
  async function* chunks() {
    try {
      yield* bodyOf(request).iterator({ destroyOnReturn: false });
    } finally {
      forgetBody(request);
    }
  }
  return Readable.from(chunks(), { objectMode: false });
}

/** The JSON object in a body. It is checked so that the provider reads the same values as the gateway. */
function readObject(
  bytes: Buffer,
  { ambiguous: key }: Pick<Scan, 'ambiguous'>,
): { json: JsonObject } | { refusal: Refusal } {
  const read = readJson(bytes);
  if (!read) return { refusal: { code: 'invalid_json' } };
  if (!isJsonObject(read.value)) return { refusal: { code: 'unsupported_media_type' } };
  return key === undefined ? { json: read.value } : { refusal: ambiguous(key) };
}

/**
 * Reads only the short top-level members, such as the model and `stream`, because metering needs no others. The rest is sent unchanged and
 * not parsed.
 */
function readTop(
  bytes: Buffer,
  { members, ambiguous: key }: Scan,
): { json: JsonObject } | { refusal: Refusal } {
  if (key !== undefined || !isOneObject(bytes, members)) return readObject(bytes, { ambiguous: key });
  const entries: [string, unknown][] = [];
  for (const { name, valueAt, end } of members) {
    const read = end - valueAt > SHORT_BYTES ? UNREAD : readJson(bytes.subarray(valueAt, end));
    if (!read) return { refusal: { code: 'invalid_json' } };
    entries.push([name, read.value]);
  }
  // A member may be called `__proto__`.
  return { json: Object.fromEntries(entries) };
}

/** Whether a text is an object of exactly these members. */
function isOneObject(bytes: Buffer, members: readonly Member[]): boolean {
  const isOnly = (sign: string, from: number, to: number) =>
    bytes.toString('latin1', from, to).trim() === sign;
  let from = 0;
  for (const { at, end } of members) {
    if (!isOnly(from === 0 ? '{' : ',', from, at)) return false;
    from = end;
  }
  return from > 0 && isOnly('}', from, bytes.length);
}

/** A smaller body is parsed as fast as its members one by one. */
const TOP_MIN_BYTES = 16 * 1024;
const SHORT_BYTES = 1024;
/** The placeholder of a member that is not read. */
const UNREAD = { value: Object.freeze({}) };

/**
 * V8 can parse JSON that is nested too deeply for `JSON.stringify`. One million parts exceed every real call:
 * embeddings take at most 300,000 tokens, chats a few thousand messages. An object has a few members, a `logit_bias`
 * some hundreds.
 */
export const MODEST: Modesty = { depth: 500, parts: 1_000_000, members: 10_000 };

const IMMODEST: Refusal = {
  code: 'invalid_json',
  message:
    'The body is nested too deeply, has more than a million parts, an object of more than 10,000 members, or a name of over 16,000 bytes.',
};

/** The refusal of a key that readers may understand differently. */
export function ambiguous(found: string): Refusal {
  const key = briefly(found);
  const message = `${key}: this key is repeated, or differs from a known name only in case, so readers may understand it differently.`;
  return { code: 'invalid_request', param: key, message };
}

/** Refuses headers that HTTP allows and the gateway does not support. */
export function unservableHeader({ headers }: IncomingMessage): Refusal | undefined {
  if (headers.upgrade !== undefined) {
    return {
      code: 'invalid_request',
      param: 'Upgrade',
      message: 'This URL opens no WebSocket. Send the call without the header Upgrade.',
    };
  }
  // RFC 9112 §6.1: a server must remove every other coding itself. The gateway supports none.
  if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    const message = 'Transfer-Encoding: only chunked is understood.';
    return { code: 'invalid_request', param: 'Transfer-Encoding', message };
  }
  return undefined;
}
