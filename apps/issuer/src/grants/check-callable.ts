import {
  checkPathPattern,
  configMatchesPaths,
  type Dead,
  keyProblem,
  leadsOutside,
  type Provider,
  reachesSocket,
  slashedIdsOf,
  strayPath,
  whyDead,
  whyNoSocket,
  whyUncounted,
} from '@presign/providers';
import { briefly, isJsonObject, type PresignRequest, RefusedError } from '@presign/schema';
import type { RouteDeps } from '../middleware/route-deps.ts';

/**
 * Finds the provider that a request names.
 * @throws RefusedError `unknown_provider` for an unknown name, or a provider without an address
 */
export function findProvider(providers: ReadonlyMap<string, Provider>, id: string): Provider {
  const provider = providers.get(id);
  if (provider?.baseUrl !== undefined) return provider;
  const known = [...providers.values()].filter((each) => each.baseUrl !== undefined);
  const message = provider
    ? `provider: ${provider.id} needs a base_url in the operator's PROVIDERS_FILE.`
    : `provider: expected one of ${known.map((each) => each.id).join(', ')}.`;
  throw new RefusedError({ code: 'unknown_provider', param: 'provider', message });
}

/**
 * Refuses a key that no call to the provider could use.
 * @param param the field that has the key. The message does not quote the key.
 * @throws RefusedError `invalid_request`
 */
export function checkKey(provider: Provider, param: string, key: string): void {
  const problem = keyProblem(provider, key);
  if (problem === undefined) return;
  throw new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });
}

/** A validated request, its provider, and the name of each path in errors. */
export type Asked = {
  readonly provider: Provider;
  readonly request: PresignRequest;
  readonly pathNames: readonly string[];
};

type Config = Record<string, unknown> | null;

const OUTSIDE =
  'opens sessions that pass by no gateway, or hands out keys, so no limit of the URL would hold for them.';

const NEEDS_SOCKETS = 'is opened as a socket alone: add "sockets": true.';

/**
 * Refuses paths that no call may have.
 * @param body as the caller wrote it, where a single path may appear without an array
 * @returns each path's name in errors
 */
export function checkPaths(
  provider: Provider,
  body: unknown,
  { path: paths, sockets }: PresignRequest,
): readonly string[] {
  const hasSlashedIds = slashedIdsOf(provider);
  const isArray = isJsonObject(body) && Array.isArray(body.path);
  const names = paths.map((_, i) => (isArray ? `path[${i}]` : 'path'));
  for (const [i, path] of paths.entries()) {
    const callable = i > 0 || !path.includes('*');
    const problem = callable
      ? checkPathPattern(path, hasSlashedIds)
      : 'must not contain *: the URL ends in its first path';
    if (problem !== undefined) throw refused(names[i] ?? 'path', `${problem}.`);
    const isSocket = reachesSocket(provider, path);
    if (leadsOutside(provider, path) && !(sockets && isSocket))
      throw refused(names[i] ?? 'path', isSocket ? NEEDS_SOCKETS : OUTSIDE);
  }
  return names;
}

/** Refuses `sockets` where no path of the URL can be opened as a socket. */
export function checkSockets({ provider, request }: Asked): void {
  if (!request.sockets) return;
  if (request.method !== 'POST')
    throw refused('sockets', 'a socket is matched as a POST, and this URL allows another method.');
  if (!request.path.some((path) => reachesSocket(provider, path)))
    throw refused('sockets', `no path of this URL can be opened as a socket at ${provider.id}.`);
}

/** Refuses a URL that no call could ever match. */
export function checkConfig({ provider, request }: Asked, config: Config): void {
  const matches = config === null || configMatchesPaths(provider, config, request.path);
  if (matches === true) return;
  const param = nameInConfig(request, 'model');
  const where = param === 'virtual_key' ? 'with the model of its config' : 'with this model';
  throw refused(
    param,
    `${where} the path ${matches.path} could never be called; allow the path that has the model in it.`,
  );
}

/** Refuses `sockets` where no socket on any path of the URL could have the config. */
export function checkSocketConfig({ provider, request }: Asked, config: Config): void {
  if (!request.sockets || config === null) return;
  const paths = request.path.filter((path) => reachesSocket(provider, path));
  const reasons = paths.map((path) => whyNoSocket(provider, path, config));
  const [dead] = reasons;
  if (dead === undefined || reasons.includes(undefined)) return;
  const param = nameInConfig(request, dead.field);
  const of = param === 'virtual_key' ? `${dead.field} of its config: ` : '';
  throw refused(param, `${of}${dead.reason}, so no socket on ${paths[0]} could be used.`);
}

/** Refuses a URL with a path on which no call could use one of its models. */
export function checkModels({ provider, request, pathNames }: Asked, config: Config): void {
  const { models, method } = request;
  if (models === undefined) return;
  for (const [i, path] of request.path.entries()) {
    const stray = strayPath(provider, { method, path, config: config ?? {} }, models);
    if (stray === undefined) continue;
    const inConfig = Object.hasOwn(config ?? {}, stray.param);
    const param = inConfig ? nameInConfig(request, stray.param) : (pathNames[i] ?? 'path');
    const subject = inConfig ? '' : `${stray.param === 'path' ? 'it' : stray.param} `;
    const message = `${subject}${stray.reason}, so no call could use only the models ${briefly(models.join(', '))}.`;
    throw refused(param, message);
  }
}

/** The calls that a URL allows, whether it is asked for or was issued. */
export type Allowed = {
  readonly provider: Provider;
  readonly method: string;
  readonly paths: readonly string[];
  readonly config: Config;
};

type PriceDeps = Pick<RouteDeps, 'prices' | 'now'>;

/** Why no call on a URL could pass under a spend limit. Undefined: one may. */
const deadByCost = ({ prices, now }: PriceDeps, { provider, config, ...allowed }: Allowed) =>
  whyDead(provider, { ...allowed, config: config ?? {} }, { prices: prices.current(), now: now() });

/** The same under `tokens_per_minute`, or a shared budget of tokens. */
const deadByTokens = ({ provider, ...allowed }: Allowed) => whyUncounted(provider, allowed);

/**
 * Refuses the first limit of an issued URL as it is refused when one is issued. The URL is not part of the request, so the refusal
 * names the limit.
 * @param param the limit in the request
 * @throws RefusedError `invalid_request`
 */
export function checkFirstLimit(deps: PriceDeps, of: 'cost' | 'tokens', param: string, url: Allowed): void {
  const dead = of === 'cost' ? deadByCost(deps, url) : deadByTokens(url);
  if (dead === undefined) return;
  const place =
    dead.at === 'path' ? `${briefly(dead.path)}: ` : dead.at === 'config' ? `config.${dead.field}: ` : '';
  throw refused(param, `${place}${dead.reason}, so no call could pass.`);
}

/** Whether a limit of money or tokens would end all calls of a URL. */
export function couldDie(deps: PriceDeps, { provider, request }: Asked, config: Config): boolean {
  const url = { provider, method: request.method, paths: request.path, config };
  return deadByCost(deps, url) !== undefined || deadByTokens(url) !== undefined;
}

/** Refuses a URL on which no call could pass under its spend limit. */
export function checkSpending(
  deps: PriceDeps,
  { provider, request, pathNames }: Asked,
  config: Config,
): void {
  const { method, path: paths } = request;
  const dead = deadByCost(deps, { provider, method, paths, config });
  if (dead === undefined) return;
  const param = nameOf(dead, request, pathNames);
  const of = dead.at === 'config' && param === 'virtual_key' ? `${dead.field} of its config: ` : '';
  const fix = dead.at === 'provider' ? ' Set prices in PROVIDERS_FILE, or omit the spend limit.' : '';
  throw refused(param, `${of}${dead.reason}; under a spend limit no call could pass.${fix}`);
}

/**
 * Refuses a URL on which no call could pass under its tokens_per_minute, or a shared budget of tokens.
 * @param isLimited whether it has such a budget
 */
export function checkTokens({ provider, request, pathNames }: Asked, isLimited: boolean): void {
  const ofUrl = request.tokens_per_minute !== undefined;
  if (!ofUrl && !isLimited) return;
  const { method, path: paths, config = null } = request;
  const dead = deadByTokens({ provider, method, paths, config });
  if (dead === undefined) return;
  throw refused(
    nameOf(dead, request, pathNames),
    `${dead.reason}; under ${ofUrl ? 'tokens_per_minute' : 'a budget of tokens'} no call could pass.`,
  );
}

function nameOf(dead: Dead, request: PresignRequest, pathNames: readonly string[]): string {
  switch (dead.at) {
    case 'path':
      return pathNames[request.path.indexOf(dead.path)] ?? 'path';
    case 'provider':
      return 'provider';
    case 'config':
      return nameInConfig(request, dead.field);
  }
}

/** A field of the request's config, or the virtual key that has it. */
const nameInConfig = ({ config = {} }: PresignRequest, field: string): string =>
  Object.hasOwn(config, field) ? `config.${field}` : 'virtual_key';

const refused = (param: string, message: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${message}` });
