import type { Dialect } from './dialect.ts';
import { compilePaths, decoded, type PathMatcher, patternsMeet, type SlashedIds } from './path.ts';
import type { Credential, Provider, Route } from './provider.ts';
import type { Spend } from './spend.ts';
import { underRules } from './vendor-rules.ts';

/** The dialect on a path of a provider. Undefined if it is not known. */
export const dialectOf = (provider: Provider, path: string): Dialect | undefined =>
  routeOf(provider, path)?.route.dialect;

/** The bounds and the metering of calls on a path, under the vendor's rules. Undefined if no call there has a bound. */
export const spendOf = (provider: Provider, path: string): Spend | undefined =>
  routeOf(provider, path)?.spend;

/** The header in which a path takes the key. Some endpoints differ from the rest of their provider. */
export const credentialOf = (provider: Provider, path: string): Credential =>
  routeOf(provider, path)?.route.credential ?? provider.credential;

/** The protocol of a path over a WebSocket. Undefined: it has none. */
export const socketOf = (provider: Provider, path: string): Route['socket'] =>
  routeOf(provider, path)?.route.socket;

/** Whether a call on a path would open a session that bypasses the gateway, or return a key. */
export const leadsOutside = (provider: Provider, path: string): boolean => onPath(provider, path).isOutside;

/** The paths with a socket that a grant's path or pattern can reach. Under a pattern they are those of the provider's routes. */
export const socketsOn = ({ routes }: Provider, pattern: string): readonly string[] =>
  routes
    .filter(({ socket, path }) => socket !== undefined && patternsMeet(asRead(pattern), path.toLowerCase()))
    .map(({ path }) => (pattern.includes('*') ? path : pattern));

/** Whether a grant's path or pattern can reach an endpoint that has a socket. */
export const reachesSocket = (provider: Provider, pattern: string): boolean =>
  socketsOn(provider, pattern).length > 0;

/**
 * Whether a call is free: it must match one of the provider's `free` calls byte for byte. A path with parameters or
 * encoded characters never matches, because a lenient server might read `/v1/chat/completions/;x` as a call that is
 * billed.
 */
export const costsNothing = (provider: Provider, method: string, path: string): boolean =>
  onPath(provider, path).freeMethods.includes(method);

/** An endpoint whose calls may have a bound. */
export type Endpoint = { readonly path: string; readonly dialect: Dialect; readonly spend: Spend };

/**
 * The endpoints with a bound that a grant's path or pattern can reach. Under a pattern their paths are those of the
 * provider's routes, in which a `*` may be left.
 */
export function boundedEndpoints(provider: Provider, pattern: string): readonly Endpoint[] {
  const wanted = asRead(pattern);
  const reached = pattern.includes('*')
    ? compiled(provider).routes.filter(({ route }) => patternsMeet(wanted, route.path.toLowerCase()))
    : [routeOf(provider, pattern) ?? []].flat();
  return reached.flatMap(({ route, spend }) =>
    spend ? [{ path: pattern.includes('*') ? route.path : pattern, dialect: route.dialect, spend }] : [],
  );
}

/**
 * Whether a path may have encoded slashes. They may be only within an id, at a provider whose ids have them (`Provider.slashedIds`),
 * and only if a server that decodes them finds no other endpoint.
 */
export const slashedIdsOf =
  (provider: Provider): SlashedIds =>
  (path) => {
    const { slashedIds } = compiled(provider);
    const other = path.replace(/%2f/gi, '/');
    const isOther = routeOf(provider, other) !== undefined || onPath(provider, other).freeMethods.length > 0;
    return slashedIds.some((matches) => matches(path)) && !isOther;
  };

/** Whether a grant's path or pattern can reach a call that is free. */
export const reachesFree = ({ free = [] }: Provider, method: string, pattern: string): boolean =>
  free.some((call) => call.method === method && patternsMeet(call.path, pattern));

/**
 * The route that a lenient server would find: it decodes the path, ignores its case (as Azure does), and removes path
 * parameters (`;a=b`, RFC 3986 §3.3) and a last slash. Otherwise a holder of a grant with wildcards could choose a
 * spelling that escapes `config`.
 */
const routeOf = (provider: Provider, path: string): CompiledRoute | undefined => onPath(provider, path).route;

/** Finds the route and the free methods of a path. Each call needs this several times, so most paths are cached. */
function onPath(provider: Provider, path: string): OnPath {
  const { routes, free, outside, slashedIds, known } = compiled(provider);
  const before = known.get(path);
  if (before) return before;
  const lenient = asRead(path);
  const route = routes.find(({ matches }) => matches(lenient));
  const isPlain =
    !/;|%(?!2f)/i.test(path) && (!path.includes('%') || slashedIds.some((matches) => matches(path)));
  const freeMethods = isPlain ? free.flatMap((call) => (call.matches(path) ? call.method : [])) : [];
  const found = { route, freeMethods, isOutside: outside(lenient) };
  if (path.length > LONGEST_KNOWN) return found;
  // A holder whose URL has a wildcard chooses paths, so there may be any number of them.
  if (known.size === MOST_KNOWN) known.clear();
  // A copy, because V8 keeps a whole text alive for a substring, here the URL with its token.
  known.set(Buffer.from(path).toString(), found);
  return found;
}

/** A provider's routes have fewer paths, unless they name a model. */
const MOST_KNOWN = 500;
const LONGEST_KNOWN = 200;

type OnPath = {
  readonly route: CompiledRoute | undefined;
  readonly freeMethods: readonly string[];
  readonly isOutside: boolean;
};

const asRead = (path: string): string =>
  (decoded(path.replace(/%2f/gi, '%252f')) ?? path)
    .toLowerCase()
    .replace(/;[^/]*/g, '')
    .replace(/(?<=.)\/$/, '');

type CompiledRoute = {
  readonly route: Route;
  readonly matches: PathMatcher;
  readonly spend: Spend | undefined;
};

type Compiled = {
  readonly routes: readonly CompiledRoute[];
  readonly free: readonly { readonly method: string; readonly matches: PathMatcher }[];
  readonly outside: PathMatcher;
  readonly slashedIds: readonly PathMatcher[];
  readonly known: Map<string, OnPath>;
};

const COMPILED = new WeakMap<Provider, Compiled>();

/** A provider's routes, compiled at first use. */
function compiled(provider: Provider): Compiled {
  const known = COMPILED.get(provider);
  if (known) return known;
  const { routes, rules, free = [], outside = [], slashedIds = [] } = provider;
  const made = {
    routes: routes.map((route) => ({
      route,
      matches: compilePaths([route.path.toLowerCase()]),
      spend: route.dialect.spend && underRules(route.dialect.spend, rules),
    })),
    free: free.map(({ method, path }) => ({ method, matches: compilePaths([path]) })),
    outside: compilePaths(outside.map((path) => path.toLowerCase())),
    slashedIds: slashedIds.map((path) => onlyInStars(path)),
    known: new Map<string, OnPath>(),
  };
  COMPILED.set(provider, made);
  return made;
}

/** Matches a path whose encoded slashes are all at wildcards of the pattern. Everything else is compared byte for byte. */
function onlyInStars(pattern: string): PathMatcher {
  const segments = pattern.split('/');
  return (path) => {
    const given = path.split('/');
    return (
      given.length === segments.length &&
      segments.every((segment, i) => segment === '*' || segment === given[i])
    );
  };
}
