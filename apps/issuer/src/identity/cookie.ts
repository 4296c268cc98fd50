import { createHash, randomBytes } from 'node:crypto';
import { RefusedError } from '@presign/schema';
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import type { CookieOptions } from 'hono/utils/cookie';
import type { IssuerEnv } from './caller.ts';

/** How long a session lasts. */
export const SESSION_SECONDS = 12 * 3_600;

/** A page of another origin cannot send this header without a preflight, which the issuer never answers. */
const HEADER = 'x-presign-console';

/** A browser takes a `__Host-` cookie only with `Secure`, from this host alone and for all paths (RFC 6265bis §4.1.3.2). */
const NAMES = { https: '__Host-presign-console', http: 'presign-console' } as const;

const nameOf = (issuerUrl: string) => (issuerUrl.startsWith('https:') ? NAMES.https : NAMES.http);

const attributes = (issuerUrl: string): CookieOptions => ({
  httpOnly: true,
  sameSite: 'Strict',
  path: '/',
  secure: issuerUrl.startsWith('https:'),
});

/** The value of a new session, and its stored form. Only the browser has the value. */
export function newSession(): { readonly value: string; readonly hash: string } {
  const value = randomBytes(32).toString('base64url');
  return { value, hash: hashSession(value) };
}

/** The stored form. 256 random bits cannot be guessed, so a fast hash protects them. */
export const hashSession = (value: string): string => createHash('sha256').update(value).digest('hex');

export const writeSession = (c: Context<IssuerEnv>, issuerUrl: string, value: string): void =>
  setCookie(c, nameOf(issuerUrl), value, { ...attributes(issuerUrl), maxAge: SESSION_SECONDS });

export const eraseSession = (c: Context<IssuerEnv>, issuerUrl: string): void =>
  void deleteCookie(c, nameOf(issuerUrl), attributes(issuerUrl));

/**
 * The value of the console's cookie, if the request has one.
 * @throws RefusedError `unauthenticated` if the request may come from another page than the console
 */
export function readSession(c: Context<IssuerEnv>, issuerUrl: string): string | undefined {
  const value = getCookie(c, nameOf(issuerUrl));
  if (value === undefined) return undefined;
  mustBeConsole(c, issuerUrl);
  return value;
}

/**
 * Checks that a request comes from a page of the issuer's own origin.
 * @throws RefusedError `unauthenticated`
 */
export function mustBeConsole(c: Context<IssuerEnv>, issuerUrl: string): void {
  if (c.req.header(HEADER) === '1' && isSameOrigin(c, issuerUrl)) return;
  throw new RefusedError({ code: 'unauthenticated', message: FOREIGN });
}

/** No page can set either header (Fetch §2.2.2). `Sec-Fetch-Site` is what the browser itself found, whatever name the issuer is opened by. */
function isSameOrigin(c: Context<IssuerEnv>, issuerUrl: string): boolean {
  const site = c.req.header('sec-fetch-site');
  if (site !== undefined) return site === 'same-origin';
  return c.req.header('origin') === new URL(issuerUrl).origin;
}

const FOREIGN =
  'The cookie of the console is accepted only from the console itself. Open it over https, or on localhost. Programs send Authorization: Bearer <API_KEY>.';
