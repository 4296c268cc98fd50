import { OPERATIONS, type Operation } from '../generated/operations.ts';
import type { IssueOptions, Presign } from './methods.ts';
import { failed, PresignError } from './presign-error.ts';
import { type Answered, type Fetch, type Request, sendRequest } from './send-request.ts';
import { type Fields, writeRequest } from './write-request.ts';

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
    return read(request, await sendRequest(settings, request));
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

function read(request: Request, { status, type, requestId, text }: Answered): unknown {
  if (status === 204) return undefined;
  if (type === 'text/csv') return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new PresignError({ ...failed('unexpected_answer', request), status, requestId });
  }
}
