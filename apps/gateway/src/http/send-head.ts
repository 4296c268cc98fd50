import type { ServerResponse } from 'node:http';

/**
 * A stream's head must not wait for its first chunk. Node's `flushHeaders` would write it as UTF-8: a byte of a header
 * that is not ASCII would become two.
 */
export const sendHead = (response: ServerResponse): void => void response.write('', 'latin1');
