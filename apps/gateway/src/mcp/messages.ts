import { isJsonObject, isModest, type Refusal } from '@presign/schema';
import { ambiguousKey } from '../http/json.ts';

/** One JSON-RPC message, as far as the gateway reads it. */
export type Message = {
  /** Undefined: no answer is wanted. */
  readonly id: string | number | undefined;
  /** Undefined: it is a response. */
  readonly method: string | undefined;
  /** `params.name` of a tool or prompt, `params.uri` of a resource, `params.taskId` of a task. */
  readonly name: string | undefined;
};

/** What one POST carries. */
export type Messages = { readonly all: readonly Message[]; readonly isBatch: boolean };

/** JSON-RPC 2.0 §5.1. */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;

/** A batch may hold so many messages: each is charged for, and could be answered with an error. */
const BATCH_MAX = 100;
/** What is parsed at most, of either side. */
export const MODEST = { depth: 200, parts: 1_000_000 };

/** Reads the body of a POST; what is read here is what the server will read. */
export function readMessages(bytes: Buffer): { messages: Messages } | { refusal: Refusal } {
  if (!isModest(bytes, MODEST))
    return invalid('nested too deeply, more than a million parts, or a name of over 16,000 bytes');
  const text = decode(bytes);
  const value = text === undefined ? undefined : parse(text);
  if (text === undefined || value === undefined) {
    return { refusal: { code: 'invalid_json', message: 'Parse error: the body is not JSON in UTF-8.' } };
  }
  const isBatch = Array.isArray(value);
  const each: unknown[] = isBatch ? value : [value];
  if (each.length === 0 || each.length > BATCH_MAX)
    return invalid(`a batch holds 1 to ${BATCH_MAX} messages`);
  const within = isBatch ? each.map((_, i) => `[${i}].`) : [''];
  const key = ambiguousKey(text, new Set(within.flatMap((at) => READ.map((name) => at + name))));
  if (key !== undefined) return invalid(`${key} stands twice, or in another case than ours`);
  const all = each.map(readMessage);
  const odd = all.find((message) => typeof message === 'string');
  return odd === undefined ? { messages: { all: all as Message[], isBatch } } : invalid(odd);
}

/** What is read from a message: no other spelling of these may stand beside them. */
const READ = ['id', 'method', 'params.name', 'params.uri', 'params.taskId', 'result', 'error'];

const invalid = (why: string): { refusal: Refusal } => ({
  refusal: { code: 'invalid_request', message: `Invalid Request: ${why}.` },
});

/** A message, or why it is none. */
function readMessage(value: unknown): Message | string {
  if (!isJsonObject(value)) return 'a message is an object';
  const { id, method, params } = value;
  if (id !== undefined && id !== null && typeof id !== 'string' && typeof id !== 'number')
    return 'id is a string or a number';
  if (method === undefined) {
    if (!('result' in value) && !('error' in value)) return 'a message has a method, a result or an error';
    return { id: undefined, method: undefined, name: undefined };
  }
  if (typeof method !== 'string') return 'method is a string';
  return { id: id ?? undefined, method, name: nameIn(method, params) };
}

/** What `Mcp-Name` repeats (Streamable HTTP, "Standard Request Headers"; of tasks: SEP-2663). */
const NAMED_BY: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

function nameIn(method: string, params: unknown): string | undefined {
  if (!isJsonObject(params)) return undefined;
  const name = params[NAMED_BY.get(method) ?? 'name'];
  return typeof name === 'string' ? name : undefined;
}

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
