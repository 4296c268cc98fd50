import { createPresign, PresignError } from '@presign/client';

/** The issuer's address, without a trailing slash. The console is one folder below it. */
export const ISSUER = new URL('..', location.href).href.replace(/\/$/, '');

const SESSION = `${ISSUER}/console/session`;

/** Marks a request as one of the console. The issuer accepts the cookie only with this header. */
const FROM_CONSOLE = { 'x-presign-console': '1' };

/** The window event that is fired when an answer says that there is no session or that it has ended. */
export const SIGNED_OUT = 'presign-signed-out';

/** The client requires a key. The cookie replaces it, and this text is never sent. */
const NO_KEY = '[no-key-in-the-browser]';

/** How far the issuer's clock is ahead of the browser's. */
let aheadMs = 0;

/**
 * `Date` (RFC 9110 §6.6.1) has whole seconds, so a difference of less than two seconds counts as none. A larger difference is rounded up to
 * the end of that second, so that reports include its calls.
 */
function aheadOf(answer: Response): number {
  const ms = Date.parse(answer.headers.get('date') ?? '') + 1_000 - Date.now();
  return Math.abs(ms) < 2_000 || Number.isNaN(ms) ? 0 : ms;
}

/** The issuer's time in Unix seconds. A browser's clock may be hours off, and its reports would then omit calls. */
export const issuerTime = (): number => (Date.now() + aheadMs) / 1000;

/** The issuer's API, with the cookie of the session. */
export const presign = createPresign({
  url: ISSUER,
  apiKey: NO_KEY,
  fetch: async (url, { headers, ...init }) => {
    const { authorization: _none, ...rest } = headers as Record<string, string>;
    const answer = await fetch(url, {
      ...init,
      headers: { ...rest, ...FROM_CONSOLE },
      credentials: 'same-origin',
    });
    aheadMs = aheadOf(answer);
    if (answer.status === 401) dispatchEvent(new Event(SIGNED_OUT));
    return answer;
  },
});

/** @throws Error with the issuer's message */
export async function signIn(apiKey: string): Promise<void> {
  const answer = await fetch(SESSION, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...FROM_CONSOLE },
    body: JSON.stringify({ api_key: apiKey }),
  });
  if (answer.ok) return;
  const body = (await answer.json().catch(() => undefined)) as { error?: { message?: string } } | undefined;
  throw new Error(
    answer.status === 401
      ? 'This API key is unknown, revoked or expired.'
      : (body?.error?.message ?? `The issuer answered ${answer.status}.`),
  );
}

export const signOut = (): Promise<unknown> =>
  fetch(SESSION, { method: 'DELETE', headers: FROM_CONSOLE, credentials: 'same-origin' });

/** Whether an error says that there is no session or that it has ended. */
export const isSignedOut = (error: unknown): boolean => error instanceof PresignError && error.status === 401;

export const isGone = (error: unknown): boolean => error instanceof PresignError && error.status === 404;

/** Whether the issuer could not read its database in time. */
export const isUnavailable = (error: unknown): boolean =>
  error instanceof PresignError && error.status === 503;
