import { setImmediate as nextTurn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { ModelInfo } from '@pydantic/genai-prices';
import { LRUCache } from 'lru-cache';
import type { CacheWrites, ModelPrice } from '../facts/rates.ts';
import { isJsonObject } from '../json.ts';
import { NAME_MAX_CHARS } from '../model-names.ts';
import type { Provider } from '../provider.ts';
import { withCacheWrites } from './cache-writes.ts';
import { entryOf, listedPricing, listedRates, type Sought } from './listed-price.ts';
import { dearerOf, exact, fixedPricing, type PriceOrigin, type Pricing } from './price.ts';
import { BUNDLED_LIST, BUNDLED_LITE_LLM, type PriceList } from './price-list.ts';

/**
 * The lists in use, in layers. A model has the price of the first layer that prices it. If two lists of that layer price it,
 * the dearer price counts. Prices by the hour count if the other list has no other price than the one of their peak.
 */
export type Prices = {
  /** Changes with the lists. */
  readonly id: string;
  readonly layers: readonly (readonly PriceList[])[];
};

/** The prices of a service whose operator names no list. */
export const BUNDLED_PRICES: Prices = {
  id: `${BUNDLED_LIST.id}+${BUNDLED_LITE_LLM.id}`,
  layers: [[BUNDLED_LIST, BUNDLED_LITE_LLM]],
};

/** The prices of a call, and its time in Unix milliseconds. */
export type PricesAt = { readonly prices: Prices; readonly now: number };

/**
 * The price of a provider's model, or of a deployment whose model is named: the operator's own of `PROVIDERS_FILE`, else the one of the lists, else the one that the
 * vendor publishes for images or characters.
 * @returns undefined when no price is known. Such a call must not pass under a spend limit.
 */
export function pricingOf(
  provider: Provider,
  called: string,
  { prices, now }: PricesAt,
): Pricing | undefined {
  const model = provider.deployments?.get(called) ?? called;
  const own = provider.pricing?.get(called) ?? provider.pricing?.get(model);
  const writes = provider.cacheWrites?.(model);
  if (own) return ownPricing(own, writes);
  // No model has a longer name, and longer ones must not fill the memory.
  if (model.length > NAME_MAX_CHARS) return undefined;
  const { priceList: vendor, mediaAsWhole } = provider;
  if (vendor === undefined || provider.listedModels?.test(model) === false) return undefined;
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const key = `${prices.id} ${vendor} ${model} ${hour}`;
  let found = remembered.get(key);
  if (!found) {
    const sought = { vendor, model, writes, published: provider.publishedRates?.(model), mediaAsWhole };
    found = { pricing: ofLayers(prices.layers, sought, hour) };
    remembered.set(key, found);
  }
  const unitPrice = provider.unitPrices?.get(model);
  return found.pricing ?? (unitPrice && exact(fixedPricing(unitPrice, OF_THE_VENDOR)));
}

/** The price of an operator's rates, made once: each call asks several times. */
function ownPricing(own: ModelPrice, writes: CacheWrites | undefined): Pricing {
  const known = ownPrices.get(own);
  if (known && known.writes?.short === writes?.short && known.writes?.hour === writes?.hour)
    return known.pricing;
  const pricing = exact(fixedPricing(withCacheWrites(own, writes), OF_THE_OPERATOR));
  ownPrices.set(own, { writes, pricing });
  return pricing;
}

const ownPrices = new WeakMap<ModelPrice, { writes: CacheWrites | undefined; pricing: Pricing }>();

/**
 * The dearest rates of all models of a provider's lists that a filter takes, on any day. It does not look up each model, which takes
 * half a second for a long list.
 */
export function dearestListed(
  { priceList = '' }: Provider,
  { layers }: Prices,
  takes: (name: string, rates: ModelPrice) => boolean,
): Pricing | undefined {
  const models = layers.flat().flatMap(({ providers }) => providers.get(priceList)?.models ?? []);
  const dearest = new Map<string, number>();
  for (const { id, prices } of models) {
    const rates = listedRates(prices);
    if (!takes(id, rates)) continue;
    for (const [unit, rate] of Object.entries(rates))
      dearest.set(unit, Math.max(rate, dearest.get(unit) ?? 0));
  }
  const [list] = layers.flat();
  if (dearest.size === 0 || !list) return undefined;
  const origin = { source: list.source, list: list.id, date: list.date };
  return exact(fixedPricing(Object.fromEntries(dearest), origin));
}

/** Whether a list has one entry for two names of models. */
export const isOneEntry = (
  { priceList }: Provider,
  [a, b]: readonly [string, string],
  { prices, now }: PricesAt,
): boolean =>
  priceList !== undefined &&
  prices.layers.flat().some((list) => {
    const entry = entryOf(list, priceList, a, now);
    return entry !== undefined && entry === entryOf(list, priceList, b, now);
  });

const OF_THE_OPERATOR: PriceOrigin = { source: 'providers_file', list: undefined, date: undefined };
/** `unitPrices`, and the day on which they were read. */
const OF_THE_VENDOR: PriceOrigin = { source: 'bundled', list: undefined, date: '2026-11-22' };

/** The names of the models that have a price, as the operator, the vendor's file and the lists write them. */
export function pricedModels(
  { priceList = '', pricing, unitPrices, deployments }: Provider,
  { layers }: Prices,
): readonly string[] {
  const listed = layers.flat().flatMap(({ providers }) => providers.get(priceList)?.models ?? []);
  const own = [pricing, unitPrices, deployments].flatMap((prices) => [...(prices?.keys() ?? [])]);
  return [...new Set([...own, ...listed.map(({ id }) => id)])];
}

/** A name with a price for each model that has one, and undefined for one whose names its list does not spell out. Looked up one by one. */
export function* lookedUpModels(provider: Provider, at: PricesAt): Generator<string | undefined> {
  const { priceList = '', pricing, unitPrices, deployments } = provider;
  for (const own of [pricing, unitPrices, deployments]) if (own) yield* own.keys();
  for (const { providers } of at.prices.layers.flat())
    for (const entry of providers.get(priceList)?.models ?? [])
      if (Object.keys(listedRates(entry.prices)).length > 0)
        yield namesOf(entry).find((name) => pricingOf(provider, name, at));
}

/** Whether any model has a price. It makes no list of them, because each issued URL asks. */
export const hasPrices = ({ priceList = '', pricing, unitPrices }: Provider, { layers }: Prices): boolean =>
  [pricing, unitPrices].some((own) => own !== undefined && own.size > 0) ||
  layers.flat().some(({ providers }) => (providers.get(priceList)?.models.length ?? 0) > 0);

const HOUR_MS = 3_600_000;

/** The prices that were looked up in this hour. Models without a price are remembered, too. */
const remembered = new LRUCache<string, { pricing: Pricing | undefined }>({ max: 1_000 });

function ofLayers(layers: Prices['layers'], sought: Sought, now: number): Pricing | undefined {
  const [layer, ...below] = layers;
  if (!layer) return undefined;
  const known = ofLayers(below, sought, now);
  const priced = layer.flatMap((list) => listedPricing(list, sought, known, now) ?? []);
  const [first, ...others] = priced.filter((each) => !isPeakOf(priced, each));
  return first ? exact(others.reduce(dearerOf, first)) : known;
}

/**
 * Whether a price is the dearest of the hours that another list states. A list without hours, such as LiteLLM's, states that one for the
 * whole day.
 */
const isPeakOf = (all: readonly Pricing[], { rates, isByHour }: Pricing): boolean =>
  !isByHour && all.some((other) => other.isByHour && isDeepStrictEqual(rates, other.rates));

/** A rate that falls to less than half, or a smaller context window: both make holds smaller. */
export type Drop = {
  /** The provider as lists name it. */
  readonly vendor: string;
  readonly model: string;
  readonly unit: keyof ModelPrice | 'context_window';
  /** In microdollars, or in tokens. */
  readonly from: number;
  readonly to: number;
};

/** A fall to less than one half is large. */
const LARGE = 2;

/** How many models are compared before other work gets a turn. */
const AT_ONCE = 5;

/** How many future dates of a provider are compared. */
const MOST_DATES = 12;

/**
 * Finds the rates and context windows that fall to less than half from one list to the next, today or on a date for which
 * the new list states prices. A model that only one list prices is no drop.
 */
export async function largeDrops(before: PriceList, after: PriceList, now: number): Promise<readonly Drop[]> {
  const drops: Drop[] = [];
  let compared = 0;
  for (const [vendor, { models }] of before.providers) {
    const times = [now, ...comingDates(after.providers.get(vendor)?.models ?? [], now)];
    for (const model of new Set(models.flatMap(namesOf))) {
      for (const time of times) drops.push(...dropsOf(before, after, vendor, model, time));
      compared += 1;
      if (compared % AT_ONCE === 0) await nextTurn();
    }
  }
  return [...new Map(drops.map((drop) => [`${drop.vendor} ${drop.model} ${drop.unit}`, drop])).values()];
}

function dropsOf(before: PriceList, after: PriceList, vendor: string, model: string, time: number): Drop[] {
  const bundled = listedPricing(BUNDLED_LIST, { vendor, model }, undefined, time);
  const old = listedPricing(before, { vendor, model }, bundled, time);
  // A model that the new list leaves out has the price of the list below.
  const fresh = listedPricing(after, { vendor, model }, bundled, time) ?? bundled;
  if (!old || !fresh) return [];
  const pairs = Object.entries(old.rates).map(
    ([unit, from]) => [unit as Drop['unit'], from, fresh.rates[unit as keyof ModelPrice]] as const,
  );
  return [...pairs, ['context_window', old.contextWindow, fresh.contextWindow] as const].flatMap(
    ([unit, from, to]) =>
      from !== undefined && to !== undefined && to * LARGE < from ? [{ vendor, model, unit, from, to }] : [],
  );
}

/** Names that certainly find an entry: its id, and those that its match spells out. */
function namesOf({ id, match }: ModelInfo): readonly string[] {
  const spelled = (clause: unknown): readonly string[] => {
    if (!isJsonObject(clause)) return [];
    return Object.entries(clause).flatMap(([kind, value]) => {
      if (Array.isArray(value)) return value.flatMap(spelled);
      return typeof value === 'string' && ['equals', 'starts_with'].includes(kind) ? [value] : [];
    });
  };
  return [id, ...spelled(match)];
}

function comingDates(models: readonly ModelInfo[], now: number): readonly number[] {
  const dates = models
    .flatMap(({ prices }) => (Array.isArray(prices) ? prices : []))
    .flatMap(({ constraint }) =>
      constraint && 'start_date' in constraint ? [Date.parse(constraint.start_date)] : [],
    )
    .filter((date) => date > now);
  return [...new Set(dates)].sort((a, b) => a - b).slice(0, MOST_DATES);
}
