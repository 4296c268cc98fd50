import type { IncomingMessage } from 'node:http';
import {
  checkCallPath,
  dialectOf,
  doubledVersionPrefix,
  repeatedEnd,
  slashedIdsOf,
  writeModelInPath,
} from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { LlmGrant, Verified, Verifier } from '../grant/verify.ts';

/** Where a call goes. The path is sent exactly as it was checked. */
export type Target = { readonly path: string; readonly query: string };

/** Checks a call's method and path against its token, before any store is read. */
export function match(
  grant: LlmGrant,
  method: string,
  rawPath: string,
  query: string,
): { target: Target } | { refusal: Refusal } {
  if (method !== grant.method) {
    const message = `This URL allows ${grant.method}, not ${method}.`;
    return { refusal: { code: 'method_not_allowed', message, details: { allowed: [grant.method] } } };
  }
  const hasSlashedIds = slashedIdsOf(grant.provider);
  const odd = checkCallPath(rawPath, hasSlashedIds);
  if (rawPath === '') return { refusal: pathRefusal(grant, 'an address without a path') };
  if (odd !== undefined) return { refusal: { code: 'path_not_allowed', message: `The path ${odd}.` } };
  const path = withModel(grant, rawPath);
  // Some model names make an invalid path, so the path is checked again with the model in it.
  const sendable = path === rawPath || checkCallPath(path, hasSlashedIds) === undefined;
  return sendable && grant.matches(path)
    ? { target: { path, query } }
    : { refusal: pathRefusal(grant, rawPath) };
}

function withModel({ model, provider }: LlmGrant, path: string): string {
  if (model === undefined) return path;
  const place = dialectOf(provider, path)?.modelInPath;
  return place ? writeModelInPath(place, model, path) : path;
}

function pathRefusal(grant: LlmGrant, path: string): Refusal {
  const allowed = grant.paths.join(', ');
  return {
    code: 'path_not_allowed',
    message: `This URL allows ${allowed}, not ${path}.${baseUrlHint(path, grant.paths)}`,
    details: { allowed: grant.paths },
  };
}

/** How to correct the base URL of an SDK, which adds the rest of the path itself. */
function baseUrlHint(path: string, allowed: readonly string[]): string {
  if (doubledVersionPrefix(path, allowed))
    return " The version prefix is doubled: cut it from the SDK's base URL.";
  const end = repeatedEnd(path, allowed);
  return end === undefined ? '' : ` The SDK adds ${end} itself: cut it from the end of its base URL.`;
}

const PREFIX = '/llm';
const WITH_TOKEN = '/llm/t/';

/** Scheme and authority of a request target in absolute form. A server must accept it (RFC 9112 §3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** The parts of a call's URL. `token`: undefined if it belongs in a header. */
export type CallUrl = { readonly token: string | undefined; readonly path: string; readonly query: string };

/** Splits `/llm/t/<token><path>?<query>` or `/llm<path>?<query>` byte for byte. Any other target has no path. */
export function splitUrl(target: string): CallUrl {
  const url = withoutOrigin(target);
  const mark = url.indexOf('?');
  const end = mark < 0 ? url.length : mark;
  const query = url.slice(end + 1);
  if (!url.startsWith(WITH_TOKEN)) {
    const path = url.startsWith(`${PREFIX}/`) ? url.slice(PREFIX.length, end) : '';
    return { token: undefined, path, query };
  }
  const slash = url.indexOf('/', WITH_TOKEN.length);
  const tokenEnd = slash < 0 || slash > end ? end : slash;
  return { token: url.slice(WITH_TOKEN.length, tokenEnd), path: url.slice(tokenEnd, end), query };
}

const withoutOrigin = (target: string): string =>
  target.startsWith('/') ? target : target.replace(ORIGIN, '');

/** Whether the token of a call is in its URL. Otherwise it is in a header. */
export const hasTokenInUrl = (target: string): boolean => withoutOrigin(target).startsWith(WITH_TOKEN);

/** A scheme's case does not matter (RFC 9110 §11.1). */
const BEARER = /^bearer +(\S+)$/i;

/** Verifies the token of a call's URL, or else of its `Authorization: Bearer` (RFC 6750 §2.1). */
export function verifyCall(
  verify: Verifier<LlmGrant>,
  { token }: CallUrl,
  { authorization = '' }: IncomingMessage['headers'],
): Verified<LlmGrant> {
  const presented = token ?? BEARER.exec(authorization)?.[1];
  return presented === undefined ? { refusal: NO_TOKEN } : verify(presented);
}

const NO_TOKEN: Refusal = {
  code: 'token_invalid',
  reason: 'incomplete_url',
  message:
    'This address has no token. Use the URL exactly as it was issued, or send its token as "Authorization: Bearer <token>".',
};
