import { OPERATIONS, type Operation } from '../generated/operations.ts';
import type { IssueOptions, Presign } from './methods.ts';
import { failed, PresignError } from './presign-error.ts';
import { type Answered, type Fetch, type Request, sendRequest } from './send-request.ts';

export type PresignOptions = {
  /** Address of the issuer; it may have a path, below which the issuer is. */
  readonly url: string;
  /** Is sent to this address alone, and is in nothing that a program could print. */
  readonly apiKey: string;
  /** In place of the platform's own. */
  readonly fetch?: Fetch | undefined;
  /** How often a request is sent again that failed, where that is safe. Default 2. */
  readonly maxRetries?: number | undefined;
  /** Milliseconds that each attempt may take. Default 30,000. */
  readonly timeoutMs?: number | undefined;
};

/**
 * A client of the issuer: one method for each operation of its OpenAPI document, by the name it has there.
 * A method takes the fields of path, query and body as one object, and resolves with the answer.
 * @throws TypeError when an option is not what it must be; methods reject with `PresignError`
 */
export function createPresign(options: PresignOptions): Presign {
  const base = readUrl(options.url);
  const apiKey = readApiKey(options.apiKey);
  const settings = {
    apiKey,
    // The platform's own is looked up for each request, and called by itself: browsers want no `this`.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    maxRetries: atLeast(0, 'maxRetries', options.maxRetries ?? 2),
    timeoutMs: atLeast(1, 'timeoutMs', options.timeoutMs ?? 30_000),
  };
  const method = (operation: Operation) => async (fields: Fields, own: IssueOptions) => {
    const request = writeRequest(base, operation, fields ?? {}, own ?? {}, settings.maxRetries > 0);
    return readAnswer(request, await sendRequest(settings, request));
  };
  const methods = Object.entries(OPERATIONS).map(([id, operation]) => [id, method(operation)]);
  return Object.freeze(Object.fromEntries(methods)) as Presign;
}

function readUrl(url: string): string {
  const read = URL.canParse(url) ? new URL(url) : undefined;
  if (read && /^https?:$/.test(read.protocol)) return read.origin + read.pathname.replace(/\/+$/, '');
  throw new TypeError('url: expected an address by http or https.');
}

/** What makes no header is told here: the platform's own error would quote it. */
function readApiKey(apiKey: string): string {
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey;
  throw new TypeError('apiKey: expected visible ASCII characters, and no space or line break at either end.');
}

function atLeast(least: number, name: string, value: number): number {
  if (Number.isInteger(value) && value >= least) return value;
  throw new TypeError(`${name}: expected a whole number of at least ${least}.`);
}

function readAnswer(request: Request, { status, type, requestId, text }: Answered): unknown {
  if (status === 204) return undefined;
  if (type === 'text/csv') return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new PresignError({ ...failed('unexpected_answer', request), status, requestId });
  }
}

/** All fields of an operation by name, those of its path, query and body. */
type Fields = Readonly<Record<string, unknown>>;

/**
 * The request that asks for an operation.
 * @param mayRepeat whether it is to be made safe to send again, where the operation can be
 * @throws TypeError when a field of the path is missing, or the `Idempotency-Key` is none or not taken
 */
function writeRequest(
  base: string,
  { method, path, fields: rest, idempotencyKey: takesKey }: Operation,
  fields: Fields,
  { idempotencyKey, signal }: IssueOptions,
  mayRepeat: boolean,
): Request {
  const inPath = new Set<string>();
  const written = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    inPath.add(name);
    return segment(name, fields[name]);
  });
  const others = Object.entries(fields).filter(([name]) => !inPath.has(name));
  const key = readKey(takesKey, idempotencyKey) ?? (takesKey && mayRepeat ? crypto.randomUUID() : undefined);
  return {
    method,
    url: base + written + (rest === 'query' ? queryOf(others) : ''),
    what: `${method} ${path}`,
    headers: key === undefined ? {} : { 'idempotency-key': key },
    // Written once: the same key with other bytes would be refused.
    body: rest === 'body' ? JSON.stringify(Object.fromEntries(others)) : undefined,
    // RFC 9110 §9.2.2: what these ask for is the same whether they come once or twice.
    repeatable: method !== 'POST' || key !== undefined,
    signal,
  };
}

/** Of an empty text, or of dots, an address would lead to something else than was meant. */
function segment(name: string, value: unknown): string {
  if (typeof value === 'string' && !/^\.{0,2}$/.test(value)) return encodeURIComponent(value);
  throw new TypeError(`${name}: expected an id.`);
}

/** One that is dropped would be relied on, and one that makes no header would look like an outage. */
function readKey(takesKey: boolean, key: string | undefined): string | undefined {
  if (key === undefined || (takesKey && /^[\x21-\x7e]{1,255}$/.test(key))) return key;
  const expected = takesKey ? 'expected 1 to 255 visible ASCII characters.' : 'this operation takes none.';
  throw new TypeError(`idempotencyKey: ${expected}`);
}

function queryOf(fields: readonly (readonly [string, unknown])[]): string {
  const given = fields.filter(([, value]) => value !== undefined && value !== null);
  const query = new URLSearchParams(given.map(([name, value]): [string, string] => [name, textOf(value)]));
  return query.size === 0 ? '' : `?${query}`;
}

/** A list has its entries in one value, with commas between them (OpenAPI: style form, explode false). */
const textOf = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value));
