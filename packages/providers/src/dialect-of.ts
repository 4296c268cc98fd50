import type { Dialect } from './dialect.ts';
import { compilePaths, decoded, type PathMatcher } from './path.ts';
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
  !/[;%]/.test(path) && compiled(provider).free.some((call) => call.method === method && call.matches(path));

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
  return compiled(provider).routes.find(({ matches }) => matches(lenient))?.route;
}

type Compiled = {
  readonly routes: readonly { readonly route: Route; readonly matches: PathMatcher }[];
  readonly free: readonly { readonly method: string; readonly matches: PathMatcher }[];
};

const COMPILED = new WeakMap<Provider, Compiled>();

/** A provider's paths, compiled when they are first asked for. */
function compiled(provider: Provider): Compiled {
  const known = COMPILED.get(provider);
  if (known) return known;
  const { routes, free = [] } = provider;
  const made = {
    routes: routes.map((route) => ({ route, matches: compilePaths([route.path.toLowerCase()]) })),
    free: free.map(({ method, path }) => ({ method, matches: compilePaths([path]) })),
  };
  COMPILED.set(provider, made);
  return made;
}
