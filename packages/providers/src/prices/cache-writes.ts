import type { ModelPrice as ListedRates } from '@pydantic/genai-prices';
import type { CacheWrites, ModelPrice } from '../facts/rates.ts';

/** An operator's price, with the rates of cache writes that it leaves out, where the vendor states how they follow from the input's. */
export function withCacheWrites(price: ModelPrice, writes: CacheWrites | undefined): ModelPrice {
  const { input } = price;
  if (!writes || input === undefined) return price;
  const short = price.cache_write ?? Math.ceil(rounded(input * writes.short));
  const long = price.cache_write_1h ?? Math.max(short, Math.ceil(rounded(input * writes.hour)));
  return { ...price, cache_write: short, cache_write_1h: long };
}

/** A list's price, with the same rates. In each tier of the input they follow from that tier's rate. */
export function withListedWrites(price: ListedRates, writes: CacheWrites | undefined): ListedRates {
  const { input_mtok: input } = price;
  if (!writes || input === undefined) return price;
  return {
    ...price,
    cache_write_mtok: price.cache_write_mtok ?? times(input, writes.short),
    cache_write_1h_mtok: price.cache_write_1h_mtok ?? times(input, writes.hour),
  };
}

function times(rate: NonNullable<ListedRates[string]>, factor: number): NonNullable<ListedRates[string]> {
  if (typeof rate === 'number') return rounded(rate * factor);
  const tiers = rate.tiers.map((tier) => ({ ...tier, price: rounded(tier.price * factor) }));
  return { ...rate, base: rounded(rate.base * factor), tiers };
}

/** Without the noise of a product of floats. */
const rounded = (rate: number): number => Number(rate.toFixed(9));
