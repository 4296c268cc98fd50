/**
 * The id of a JSON-RPC request, as JSON: a string in its quotes, or a whole number. Numbers beyond 2^53 keep their digits, which a
 * JavaScript number would lose. All other numbers have one spelling.
 */
export type RpcId = string;

const MOST_CHARS = 1_024;
/** Answers to lists have longer ids (`list-ids.ts`). */
export const MOST_ANSWERED_CHARS = MOST_CHARS + 16;

/**
 * Undefined for an id that some servers do not repeat exactly. `1e400` and `-1e400` are both read as infinite, and a lone surrogate may
 * return as U+FFFD.
 * @param value the id, parsed
 * @param written gives its text
 */
export function rpcId(value: unknown, written: () => string, most = MOST_CHARS): RpcId | undefined {
  if (typeof value === 'string')
    return value.length <= most && value.isWellFormed() ? JSON.stringify(value) : undefined;
  if (typeof value !== 'number') return undefined;
  if (Number.isSafeInteger(value)) return JSON.stringify(value);
  const digits = written();
  return digits.length <= MOST_CHARS && /^-?\d+$/.test(digits) ? digits : undefined;
}

/** A common text for all ids that are equal to a server with inexact numbers. */
export const inexact = (id: RpcId): string => (id.startsWith('"') ? id : String(Number(id)));
