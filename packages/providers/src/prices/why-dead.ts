import { LRUCache } from 'lru-cache';
import { applyConfig } from '../config/apply-config.ts';
import { compileConfig } from '../config/compile-config.ts';
import type { Dialect } from '../dialect.ts';
import { boundedEndpoints, type Endpoint, reachesFree } from '../dialect-of.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { Provider } from '../provider.ts';
import type { ModelFacts, Unbounded } from '../spend.ts';
import { coverageOf, priceUnknown } from './call-prices.ts';
import type { Pricing } from './price.ts';
import { pricedBound } from './priced-bound.ts';
import { hasPrices, type PricesAt, pricedModels, pricingOf } from './prices.ts';

/** The calls that a URL allows under a spend limit. */
export type Allowed = {
  readonly method: string;
  readonly paths: readonly string[];
  readonly config: JsonObject;
};

/** The cause for which no call that costs money can pass: a field of the request, and the reason as the rest of a sentence about it. */
export type Dead = { readonly reason: string } & (
  | { readonly at: 'path'; readonly path: string }
  | { readonly at: 'provider' }
  | { readonly at: 'config'; readonly field: string }
);

/**
 * Why a spend limit would refuse every call on a URL that costs money. Undefined if one may pass, or if all paths are free. The same
 * rules judge a call: the dialects' bounds, the vendor's rules and the prices.
 *
 * It refuses only for values that no holder can change: a path, a model, and a field of the config whose value is not an
 * object. Objects are merged with the holder's.
 */
export const whyDead = (provider: Provider, allowed: Allowed, at: PricesAt): Dead | undefined =>
  remembered(provider, 'dead', { ...allowed, models: null }, at, () => judgeDead(provider, allowed, at));

function judgeDead(provider: Provider, allowed: Allowed, at: PricesAt): Dead | undefined {
  const { method, config, paths } = allowed;
  const reachFree = paths.filter((path) => reachesFree(provider, method, path));
  const judged = paths.flatMap((path) => {
    const isFreeAlone = reachFree.includes(path) && boundedEndpoints(provider, path).length === 0;
    return isFreeAlone ? [] : endpointsOn(provider, path, config, at);
  });
  const payable = judged.flatMap((each) => ('payable' in each ? each.payable : []));
  if (payable.length > 0) return deadByConfig(payable, config);
  const [dead] = judged.flatMap((each) => ('dead' in each ? each.dead : []));
  // A free path is of use without the others, but a model that costs money was set for the others.
  return reachFree.length > 0 && dead?.at !== 'config' ? undefined : dead;
}

/** Why the tokens of no call on a URL have a bound, by its paths. Undefined if a call on one of them may have one. */
export function whyUncounted(
  provider: Provider,
  { method, paths }: Pick<Allowed, 'method' | 'paths'>,
): Dead | undefined {
  if (
    paths.some((path) => reachesFree(provider, method, path) || boundedEndpoints(provider, path).length > 0)
  )
    return undefined;
  const [path = ''] = paths;
  return { at: 'path', path, reason: 'the tokens of this endpoint have no known bound' };
}

/** A model that path and config leave free has no name and no price. */
type Model = { readonly facts: ModelFacts; readonly name?: string; readonly pricing?: Pricing | undefined };

/** An endpoint on which a model can be paid for, and what is known about the model. */
export type Payable = Endpoint & { readonly provider: Provider; readonly model: Model };

/** The endpoints on which a model can be paid for, or why there are none. */
export function endpointsOn(
  provider: Provider,
  path: string,
  config: JsonObject,
  at: PricesAt,
): { readonly payable: readonly Payable[] } | { readonly dead: Dead } {
  const endpoints = boundedEndpoints(provider, path);
  if (endpoints.length === 0)
    return { dead: { at: 'path', path, reason: 'the cost of this endpoint has no known bound' } };
  if (!isUnserved(provider, at) && !hasPrices(provider, at.prices))
    return { dead: { at: 'provider', reason: `no model of ${provider.id} has a price` } };
  const models = endpoints.map((endpoint) => modelOn(provider, endpoint, config, at));
  const payable = endpoints.flatMap((endpoint, i) => {
    const model = models[i];
    return model && 'facts' in model ? [{ ...endpoint, provider, model }] : [];
  });
  if (payable.length > 0) return { payable };
  const [reason = ''] = models.flatMap((model) => ('reason' in model ? model.reason : []));
  const pinned = Object.hasOwn(config, 'model');
  return { dead: pinned ? { at: 'config', field: 'model', reason } : { at: 'path', path, reason } };
}

/** The model that path or config fix, or why no call of it can pass. */
function modelOn(
  provider: Provider,
  endpoint: Endpoint,
  config: JsonObject,
  at: PricesAt,
): Model | { readonly reason: string } {
  const fixed = modelIn(config);
  const name = modelWith(endpoint, fixed);
  if (name === undefined && 'model' in fixed) return { reason: 'is not the name of a model' };
  // The path is a pattern, and a star stands for the model.
  if (name !== undefined && !name.includes('*')) return modelNamed(provider, endpoint, fixed, name, at);
  if (isUnserved(provider, at) || anyPays(provider, endpoint, at)) return { facts: ANY_MODEL };
  return { reason: `no model of ${provider.id} has a price for what this endpoint costs` };
}

/** A model by its name, or why no call of it can pass. */
export function modelNamed(
  provider: Provider,
  endpoint: Endpoint,
  fixed: JsonObject,
  name: string,
  at: PricesAt,
): Model | { readonly reason: string } {
  const { pricing, facts } = coverageOf(provider, name, at);
  if (!pricing && !isUnserved(provider, at)) return { reason: priceUnknown(provider, name) };
  const listed = pricing ? undefined : ANY_MODEL.contextWindow;
  const model = { name, pricing, facts: { ...facts, contextWindow: facts.contextWindow ?? listed } };
  const refused = leastUnbounded({ ...endpoint, provider, model }, fixed);
  // Nothing but the model is in this call, so no other call of the model would pass.
  return refused?.param === 'model' ? { reason: refused.reason } : model;
}

/** URLs of a provider that are remembered, and how long what is asked of one may be, in characters. */
const REMEMBERED = 100;
const ASKED_MAX = 4_096;
const JUDGED = new WeakMap<Provider, LRUCache<string, { readonly found: unknown }>>();

/** A backend issues the same form of URL again and again, so it is judged once an hour and after each new list. */
export function remembered<T>(
  provider: Provider,
  what: string,
  { method, paths, config, models }: Allowed & { readonly models: readonly string[] | null },
  { prices, now }: PricesAt,
  judge: () => T,
): T {
  const key = JSON.stringify([what, prices.id, Math.floor(now / HOUR_MS), method, paths, config, models]);
  if (key.length > ASKED_MAX) return judge();
  const known = JUDGED.get(provider) ?? new LRUCache({ max: REMEMBERED });
  JUDGED.set(provider, known);
  const before = known.get(key);
  if (before) return before.found as T;
  const found = judge();
  known.set(key, { found });
  return found;
}

export const HOUR_MS = 3_600_000;
const PAYING = new WeakMap<Provider, Map<Dialect, { readonly key: string; readonly any: boolean }>>();

/**
 * Whether any model may be paid for on an endpoint. Models are looked up once an hour and after each new list. A list may name
 * a model otherwise than calls do (Fireworks': `accounts/fireworks/models/…`), so one without a price by its name may have one.
 */
function anyPays(provider: Provider, endpoint: Endpoint, at: PricesAt): boolean {
  const known = PAYING.get(provider) ?? new Map();
  PAYING.set(provider, known);
  const key = `${at.prices.id} ${Math.floor(at.now / HOUR_MS)}`;
  const latest = known.get(endpoint.dialect);
  if (latest?.key === key) return latest.any;
  const any = pricedModels(provider, at.prices).some(
    (model) =>
      !pricingOf(provider, model, at) || 'facts' in modelNamed(provider, endpoint, { model }, model, at),
  );
  known.set(endpoint.dialect, { key, any });
  return any;
}

/** The provider's prices are in lists, and this service has no list. Gateways may have one. */
export const isUnserved = ({ priceList }: Provider, { prices }: PricesAt): boolean =>
  priceList !== undefined && prices.layers.length === 0;

/** The facts of an unknown model. Its window is large, so that no call is refused for it. */
const ANY_MODEL: ModelFacts = { contextWindow: 1_000_000, maxOutput: undefined, reasoning: true };

/** Each dialect judges the config once: a URL may have many paths of one dialect. */
function deadByConfig(payable: readonly Payable[], config: JsonObject): Dead | undefined {
  const ofDialects = [...new Map(payable.map((endpoint) => [endpoint.dialect, endpoint])).values()];
  const refused = ofDialects.flatMap((endpoint) => fixedRefusal(endpoint, config) ?? []);
  const [endpoint] = ofDialects;
  const [first] = refused;
  if (!endpoint || !first || refused.length < ofDialects.length) return undefined;
  const field = fieldAtFault(config, (part) => fixedRefusal(endpoint, part) !== undefined);
  // A name of the dialect's own says where the value went.
  const where = first.param.includes('.') ? `${first.param} ` : '';
  return { at: 'config', field, reason: where + first.reason };
}

/**
 * A field of a config that is refused with the model and the fields behind it, which pass without it. It halves what is left each
 * time, so that a long config is judged a few times only.
 */
function fieldAtFault(config: JsonObject, isRefused: (part: JsonObject) => boolean): string {
  const { model: _, ...others } = config;
  const fields = Object.entries(others);
  const from = (at: number) => ({ ...modelIn(config), ...Object.fromEntries(fields.slice(at)) });
  if (isRefused(from(fields.length))) return 'model';
  let [refused, passes] = [0, fields.length];
  while (passes - refused > 1) {
    const middle = Math.floor((passes + refused) / 2);
    if (isRefused(from(middle))) refused = middle;
    else passes = middle;
  }
  return fields[refused]?.[0] ?? 'model';
}

/** Why an endpoint refuses a config, if it is for a value that no holder can change. */
function fixedRefusal(endpoint: Payable, config: JsonObject): Unbounded | undefined {
  const unbounded = leastUnbounded(endpoint, config);
  return unbounded && isFixed(bodyWith(endpoint, config).body, unbounded.param) ? unbounded : undefined;
}

export const modelIn = (config: JsonObject): JsonObject =>
  Object.hasOwn(config, 'model') ? { model: config.model } : {};

/** The call of a holder who adds nothing to a config, or no more than these fields. */
function bodyWith({ path, dialect, spend }: Endpoint, config: JsonObject, added: JsonObject = {}) {
  const laid = applyConfig(compileConfig(dialect, config), { path, body: added });
  return { path: laid.path, body: spend.atStandardPrice?.(laid.body) ?? laid.body };
}

export function modelWith(endpoint: Endpoint, config: JsonObject): string | undefined {
  const { path, body } = bodyWith(endpoint, config);
  return endpoint.spend.model(body, path);
}

/** Why the least call with a config has no bound, or none that the model's price covers. */
function leastUnbounded(endpoint: Payable, config: JsonObject): Unbounded | undefined {
  const least = leastCall(endpoint, config);
  return 'unbounded' in least ? least.unbounded : undefined;
}

/** The cheapest call of a URL: its model, and the least that it holds, in microdollars. */
export type Cheapest = { readonly model: string; readonly microusd: number };

/** The least that the least call with a config holds, or why it has no bound. Nothing is known of a model that has no price here. */
export function leastCall(
  endpoint: Payable,
  config: JsonObject,
): { readonly unbounded: Unbounded } | { readonly cheapest: Cheapest | undefined } {
  const { provider, spend, model } = endpoint;
  const { path, body } = bodyWith(endpoint, config, spend.least);
  const bytes = Buffer.byteLength(JSON.stringify(body));
  const bounded = spend.bound(body, { path, bytes, facts: model.facts });
  if ('unbounded' in bounded) return bounded;
  if (model.name === undefined || model.pricing === undefined) return { cheapest: undefined };
  const cost = pricedBound(provider, model.name, model.pricing, bounded.bound);
  if ('unbounded' in cost) return cost;
  const { least = 0, times = 0 } = bounded.bound.output ?? {};
  const microusd = Math.ceil(cost.fixedMicrousd + (cost.outputRate * least * times) / 1e6);
  return { cheapest: { model: model.name, microusd } };
}

/**
 * Whether a place that a dialect names (`generationConfig.candidateCount`) has a value that no holder can change: they add
 * only to objects. A dialect may judge an element of a list by other fields, so those count as changeable.
 */
function isFixed(body: JsonObject, place: string): boolean {
  const value = place
    .split('.')
    .reduce<unknown>((held, name) => (isJsonObject(held) ? held[name] : undefined), body);
  return value !== undefined && value !== null && !isJsonObject(value);
}
