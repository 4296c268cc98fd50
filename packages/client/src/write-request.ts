import type { Operation } from '../generated/operations.ts';
import type { IssueOptions } from './methods.ts';
import type { Request } from './send-request.ts';

/** All fields of an operation by name, those of its path, query and body. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The request that asks for an operation.
 * @param mayRepeat whether it is to be made safe to send again, where the operation can be
 * @throws TypeError when a field of the path is missing, or the `Idempotency-Key` is none or not taken
 */
export function writeRequest(
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
