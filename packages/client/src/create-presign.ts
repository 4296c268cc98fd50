import { OPERATIONS, type Operation } from '../generated/operations.ts';
import type { PresignAnswer } from '../generated/types.ts';
import { type Dollars, microdollars } from './dollars.ts';
import type { CallOptions, ChangeOptions, IssueOptions, Presign } from './methods.ts';
import { failed } from './presign-error.ts';
import { keepRequestId } from './request-ids.ts';
import { withClients } from './sdk-clients.ts';
import { type Answered, type Attempt, type Fetch, type Request, sendRequest } from './send-request.ts';

export type PresignOptions = {
  /** Address of the issuer. It may have a path prefix. */
  readonly url: string;
  /** Sent to this address only. Nothing that a program could print contains it. */
  readonly apiKey: string;
  /** Used instead of the platform's `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** How often a failed request is repeated, if that is safe. Default 2. */
  readonly maxRetries?: number | undefined;
  /** Milliseconds that each attempt may take. Default 30,000. */
  readonly timeoutMs?: number | undefined;
  /** Called after each attempt of a request, for logs and metrics. An error that it throws is ignored. */
  readonly onAttempt?: ((attempt: Attempt) => void) | undefined;
};

/**
 * A client of the issuer with one method for each operation of its OpenAPI document, under the operation's name. A method
 * takes the fields of path, query and body as one object, and resolves with the answer.
 * @throws TypeError when an option is malformed; methods reject with `PresignError`
 */
export function createPresign(options: PresignOptions): Presign {
  const base = readUrl(options.url);
  const apiKey = readApiKey(options.apiKey);
  const settings = {
    apiKey,
    // Looked up for each request, and called without `this`, as browsers require.
    fetch: options.fetch ?? ((url, init) => globalThis.fetch(url, init)),
    onAttempt: options.onAttempt,
    ...readPatience(options, { maxRetries: 2, timeoutMs: 30_000 }),
  };
  const method =
    (operation: Operation) =>
    async (fields: Fields, own: IssueOptions & ChangeOptions = {}) => {
      const patience = readPatience(own, settings);
      const request = writeRequest(base, operation, fields ?? {}, own, patience.maxRetries > 0);
      return readAnswer(request, await sendRequest({ ...settings, ...patience }, request));
    };
  const methods = Object.entries(OPERATIONS).map(([id, operation]) => [id, method(operation)]);
  const issue = method(OPERATIONS.presign);
  const presign: typeof issue = async (...args) => withClients((await issue(...args)) as PresignAnswer);
  return Object.freeze({ ...Object.fromEntries(methods), presign }) as Presign;
}

type Patience = Pick<PresignOptions, 'maxRetries' | 'timeoutMs'>;

const readPatience = (own: Patience, usual: Required<Patience>) => ({
  maxRetries: atLeast(0, 'maxRetries', own.maxRetries ?? usual.maxRetries ?? 0),
  timeoutMs: atLeast(1, 'timeoutMs', own.timeoutMs ?? usual.timeoutMs ?? 1),
});

function readUrl(url: string): string {
  const read = URL.canParse(url) ? new URL(url) : undefined;
  if (read && /^https?:$/.test(read.protocol)) return read.origin + read.pathname.replace(/\/+$/, '');
  throw new TypeError('url: expected an http or https URL.');
}

/** Refuses a key that cannot be a header here, because the platform's error would quote the key. */
function readApiKey(apiKey: string): string {
  if (typeof apiKey === 'string' && /^[\x21-\x7e]+$/.test(apiKey)) return apiKey;
  throw new TypeError('apiKey: expected visible ASCII characters without spaces or line breaks.');
}

function atLeast(least: number, name: string, value: number): number {
  if (Number.isInteger(value) && value >= least) return value;
  throw new TypeError(`${name}: expected a whole number of at least ${least}.`);
}

function readAnswer(request: Request, { status, type, requestId, text }: Answered): unknown {
  if (status === 204) return undefined;
  if (type === 'text/csv' || type === 'application/x-ndjson') return text;
  try {
    return keepRequestId(JSON.parse(text) as unknown, requestId);
  } catch {
    throw failed('unexpected_answer', request, undefined, { status, requestId });
  }
}

/** All fields of an operation by name, those of its path, query and body. */
type Fields = Readonly<Record<string, unknown>>;

/**
 * The request of an operation.
 * @param mayRepeat whether to make it safe to repeat, if the operation takes an `Idempotency-Key`
 * @throws TypeError when a field of the path is missing, or the `Idempotency-Key` is malformed or not accepted
 */
function writeRequest(
  base: string,
  { method, path, fields: rest, idempotencyKey: takesKey }: Operation,
  fields: Fields,
  { idempotencyKey, ifRevision, signal }: IssueOptions & ChangeOptions,
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
    headers: {
      ...(key === undefined ? {} : { 'idempotency-key': key }),
      ...(ifRevision === undefined ? {} : { 'if-match': `"${ifRevision}"` }),
    },
    // Written once, because the issuer refuses the same key with other bytes.
    body: rest === 'body' ? JSON.stringify(withMicrodollars(Object.fromEntries(others))) : undefined,
    // RFC 9110 §9.2.2: the others are idempotent. A second PATCH with the revision of the first would fail though the first is stored.
    repeatable: method === 'POST' ? key !== undefined : method !== 'PATCH',
    signal,
  };
}

/** @throws TypeError when an amount would be rounded, or is given twice */
function withMicrodollars({ cost_limit_usd: dollars, ...fields }: Fields): Fields {
  if (dollars === undefined) return fields;
  if (fields.cost_limit !== undefined)
    throw new TypeError('cost_limit_usd: cost_limit is given too. Give one of them.');
  return { ...fields, cost_limit: microdollarsOf(dollars as Dollars) };
}

function microdollarsOf(dollars: Dollars): number {
  try {
    return microdollars(dollars);
  } catch (error) {
    throw new TypeError(`cost_limit_usd: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Refuses an empty text and dots, which would make another address. */
function segment(name: string, value: unknown): string {
  if (typeof value === 'string' && !/^\.{0,2}$/.test(value)) return encodeURIComponent(value);
  throw new TypeError(`${name}: expected an id.`);
}

/** Refuses a key that would have no effect, and one that cannot be a header. */
function readKey(takesKey: boolean, key: string | undefined): string | undefined {
  if (key === undefined || (takesKey && /^[\x21-\x7e]{1,255}$/.test(key))) return key;
  const expected = takesKey
    ? 'expected 1 to 255 visible ASCII characters.'
    : 'this operation accepts no key.';
  throw new TypeError(`idempotencyKey: ${expected}`);
}

function queryOf(fields: readonly (readonly [string, unknown])[]): string {
  const given = fields.filter(([, value]) => value !== undefined && value !== null);
  const query = new URLSearchParams(given.flatMap(([name, value]) => parametersOf(name, value)));
  return query.size === 0 ? '' : `?${query}`;
}

/** An object is one parameter for each of its keys (OpenAPI: style deepObject). */
function parametersOf(name: string, value: unknown): [string, string][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || value instanceof Date)
    return [[name, textOf(value)]];
  return Object.entries(value).map(([key, each]) => [`${name}[${key}]`, textOf(each)]);
}

/** A list is one value with commas (OpenAPI: style form, explode false). */
const textOf = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value));

// Any input fits `never`. The type of the fields is read from the method.
type List = (fields: never, options?: CallOptions) => Promise<Page>;
type Page = { readonly data: readonly unknown[]; readonly next_cursor: string | null };

type FieldsOf<Of extends List> = NonNullable<Parameters<Of>[0]>;
type Rest<Fields> = object extends Fields
  ? [fields?: Fields, options?: CallOptions]
  : [fields: Fields, options?: CallOptions];
type ItemOf<Of extends List> = Awaited<ReturnType<Of>>['data'][number];

/**
 * All entries of a list, over all its pages: `for await (const session of each(presign.listSessions))`. It requests a page
 * when the entries of the page before are used up.
 * @param list a method of the client whose answer has `data` and `next_cursor`
 * @param fields those of the method; `limit` is the length of a page, and not of the whole list
 */
export async function* each<Of extends List>(
  list: Of,
  ...[fields, options]: Rest<Omit<FieldsOf<Of>, 'cursor'>>
): AsyncGenerator<ItemOf<Of>, void, undefined> {
  const { format = 'json' } = (fields ?? {}) as { format?: unknown };
  if (format !== 'json')
    throw new TypeError('format: rows are read from JSON. The method of one page returns text.');
  let cursor: string | undefined;
  do {
    const page = await list({ ...fields, cursor } as never, options);
    yield* page.data as ItemOf<Of>[];
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
