/**
 * A server, or a proxy on the way to it, refuses the stored credential with these. The holder must not see a 401, which makes clients
 * start a login, nor a 407, which is about the holder's own proxy and makes `fetch` fail without a message (RFC 9110 §15.5.8).
 */
export const refusesCredential = (status: number): boolean =>
  status === 401 || status === 403 || status === 407;

/**
 * Statuses with which a server refuses a request without running it. Others, such as 400, 500 and 504, may come from a
 * proxy or a framework after the request ran.
 */
const REFUSES_WHOLE: ReadonlySet<number> = new Set([
  // A redirect names the place to ask instead. A 303 may name the result.
  ...[301, 302, 307, 308],
  ...[401, 403, 404, 405, 406, 407, 411, 413, 414, 415, 417, 421, 425, 429, 431],
]);

/** Whether this status means that no message of the POST ran. */
export const refusesWhole = (status: number): boolean => REFUSES_WHOLE.has(status);

/**
 * The gateway passes no redirect to the holder, because `Location` may repeat the requested address, which can contain the server's key.
 */
export const redirects = (status: number): boolean => status >= 300 && status < 400;

/** Whether the gateway answers in place of the server. */
export const isKeptBack = (status: number): boolean => refusesCredential(status) || redirects(status);
