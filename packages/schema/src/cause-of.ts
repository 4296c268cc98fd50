/** Why something failed, in words for the log. */
export type Cause = { readonly error: string; readonly code?: string; readonly message: string };

/**
 * The innermost cause of an error. Of its message only what comes before a quotation or a second line: what is
 * quoted may be what was sent.
 */
export function causeOf(error: unknown): Cause {
  const cause = innermost(error);
  if (!(cause instanceof Error)) return { error: 'unknown', message: '' };
  const [said = ''] = cause.message.split(/\n|(?:^|[\s:(=])["'`]/, 1);
  const code = 'code' in cause && typeof cause.code === 'string' ? { code: cause.code } : {};
  return { error: cause.name, ...code, message: said.slice(0, LONGEST_MESSAGE) };
}

const LONGEST_MESSAGE = 200;

/** A name with several addresses fails with one error for each, and no message of its own (Node, `net.connect`). */
function innermost(error: unknown): unknown {
  if (error instanceof AggregateError && error.message === '') return innermost(error.errors[0]);
  return error instanceof Error && error.cause instanceof Error ? innermost(error.cause) : error;
}
