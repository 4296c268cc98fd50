import { LRUCache } from 'lru-cache';
import type { Provider } from '../provider.ts';
import { listedPricing } from './listed-price.ts';
import { dearerOf, exact, fixedPricing, type PriceOrigin, type Pricing } from './price.ts';
import { BUNDLED_LIST, type PriceList } from './price-list.ts';

/**
 * The lists in use, in layers. A model has the price of the first layer that prices it. If two lists of that layer price it,
 * the dearer price counts.
 */
export type Prices = {
  /** Changes with the lists. */
  readonly id: string;
  readonly layers: readonly (readonly PriceList[])[];
};

/** The prices of a service whose operator names no list. */
export const BUNDLED_PRICES: Prices = { id: BUNDLED_LIST.id, layers: [[BUNDLED_LIST]] };

/** The prices of a call, and its time in Unix milliseconds. */
export type PricesAt = { readonly prices: Prices; readonly now: number };

/**
 * The price of a provider's model: the operator's own of `PROVIDERS_FILE`, else the one of the lists, else the one that the
 * vendor publishes for images or characters.
 * @returns undefined when no price is known. Such a call must not pass under a spend limit.
 */
export function pricingOf(provider: Provider, model: string, { prices, now }: PricesAt): Pricing | undefined {
  const own = provider.pricing?.get(model);
  if (own) return exact(fixedPricing(own, OF_THE_OPERATOR));
  // No model has a longer name, and longer ones must not fill the memory.
  if (model.length > NAME_MAX_CHARS) return undefined;
  const vendor = provider.priceList;
  if (vendor === undefined || provider.listedModels?.test(model) === false) return undefined;
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const key = `${prices.id} ${vendor} ${model} ${hour}`;
  const found = remembered.get(key) ?? { pricing: ofLayers(prices.layers, vendor, model, hour) };
  remembered.set(key, found);
  const unitPrice = provider.unitPrices?.get(model);
  return found.pricing ?? (unitPrice && exact(fixedPricing(unitPrice, OF_THE_VENDOR)));
}

const OF_THE_OPERATOR: PriceOrigin = { source: 'providers_file', list: undefined, date: undefined };
/** `unitPrices`, and the day on which they were read. */
const OF_THE_VENDOR: PriceOrigin = { source: 'bundled', list: undefined, date: '2026-11-22' };

/** The names of the models that have a price, as the operator, the vendor's file and the lists write them. */
export function pricedModels(
  { priceList = '', pricing, unitPrices }: Provider,
  { layers }: Prices,
): readonly string[] {
  const listed = layers.flat().flatMap(({ providers }) => providers.get(priceList)?.models ?? []);
  const own = [pricing, unitPrices].flatMap((prices) => [...(prices?.keys() ?? [])]);
  return [...new Set([...own, ...listed.map(({ id }) => id)])];
}

/** Whether any model has a price. It makes no list of them, because each issued URL asks. */
export const hasPrices = ({ priceList = '', pricing, unitPrices }: Provider, { layers }: Prices): boolean =>
  [pricing, unitPrices].some((own) => own !== undefined && own.size > 0) ||
  layers.flat().some(({ providers }) => (providers.get(priceList)?.models.length ?? 0) > 0);

const HOUR_MS = 3_600_000;
const NAME_MAX_CHARS = 255;

/** The prices that were looked up in this hour. Models without a price are remembered, too. */
const remembered = new LRUCache<string, { pricing: Pricing | undefined }>({ max: 1_000 });

function ofLayers(layers: Prices['layers'], vendor: string, model: string, now: number): Pricing | undefined {
  const [layer, ...below] = layers;
  if (!layer) return undefined;
  const known = ofLayers(below, vendor, model, now);
  const [first, ...others] = layer.flatMap((list) => listedPricing(list, vendor, model, known, now) ?? []);
  return first ? exact(others.reduce(dearerOf, first)) : known;
}
