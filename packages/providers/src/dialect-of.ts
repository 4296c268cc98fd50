import type { Dialect } from './dialect.ts';
import { decoded, matchPath } from './path.ts';
import type { Credential, Provider, Route } from './provider.ts';

/** The API spoken on a path of a provider; undefined where we do not know it. */
export const dialectOf = (provider: Provider, path: string): Dialect | undefined =>
  routeOf(provider, path)?.dialect;

/** Where a call on a path takes its key: some providers have endpoints that differ from the rest. */
export const credentialOf = (provider: Provider, path: string): Credential =>
  routeOf(provider, path)?.credential ?? provider.credential;

/**
 * Whether the provider charges nothing for a call: one of its `free` calls, to the byte. A path with parameters
 * or encoded characters is none: a lenient server might read `/v1/chat/completions/;x` as a call that costs.
 */
export const costsNothing = (provider: Provider, method: string, path: string): boolean =>
  !/[;%]/.test(path) &&
  (provider.free ?? []).some((call) => call.method === method && matchPath([call.path], path));

/**
 * Found as a lenient server would route it: decoded, whatever the case (Azure ignores it), without path
 * parameters (`;a=b`, RFC 3986 §3.3) and a last slash. Otherwise a holder whose grant has wildcards could
 * pick a spelling that escapes `config`.
 */
function routeOf(provider: Provider, path: string): Route | undefined {
  const lenient = (decoded(path) ?? path)
    .toLowerCase()
    .replace(/;[^/]*/g, '')
    .replace(/(?<=.)\/$/, '');
  return provider.routes.find((route) => matchPath([route.path.toLowerCase()], lenient));
}
