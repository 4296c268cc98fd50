import type { ModelPrice, Provider, Usage } from '@presign/providers';
import { calcPrice, type ModelPrice as GenaiPrice } from '@pydantic/genai-prices';
import { LRUCache } from 'lru-cache';

/** Rates are whole microdollars per million tokens. */
const PER_MTOK = 1_000_000n;
const HOUR_MS = 3_600_000;
/** Prices of the next day count, too. Some change by the hour, and a call may take longer than an hour. */
const HOURS_AHEAD = 24;

/** The current prices of one model. */
export type Pricing = {
  /** Whole microdollars, rounded up once. Undefined when the usage cannot be priced. */
  readonly cost: (usage: Usage) => number | undefined;
  /** The highest rate over every tier, cache write and modality, in microdollars per million tokens. */
  readonly dearestInput: number;
  readonly dearestOutput: number;
  /** The model's context window in tokens, if the list states it. */
  readonly contextWindow: number | undefined;
  /** The fees for one call and for the units used, in microdollars, rounded up. */
  readonly fees: (used: Usage) => number | undefined;
};

/**
 * The price of a provider's model: the operator's own, else the one of @pydantic/genai-prices, which bundles its data
 * (https://github.com/pydantic/genai-prices).
 * @returns undefined when no price is known. Such a call must not pass under a spend limit.
 */
export function pricingOf(provider: Provider, model: string, now: number): Pricing | undefined {
  const own = provider.pricing?.get(model);
  if (own) return exact(operatorPricing(own));
  // No model has a longer name, and longer ones must not fill the memory.
  if (model.length > NAME_MAX_CHARS) return undefined;
  const list = provider.priceList;
  if (list === undefined) return undefined;
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  const key = `${list} ${model} ${hour}`;
  const found = remembered.get(key) ?? { pricing: exact(listedPricing(list, model, hour)) };
  remembered.set(key, found);
  return found.pricing;
}

const NAME_MAX_CHARS = 255;

/** Makes a cost unknown when a count is not a safe integer, or the cost itself is not. */
function exact<P extends Pricing | undefined>(pricing: P): P {
  return (
    pricing && {
      ...pricing,
      cost: (usage: Usage) => {
        const cost = Object.values(usage).every(isExact) ? pricing.cost(usage) : undefined;
        return isExact(cost) ? cost : undefined;
      },
    }
  );
}

const isExact = (count: unknown): boolean => Number.isSafeInteger(count) && Number(count) >= 0;

/** The prices that were looked up in this hour. Models without a price are remembered, too. */
const remembered = new LRUCache<string, { pricing: Pricing | undefined }>({ max: 1_000 });

function operatorPricing(price: ModelPrice): Pricing {
  const input = price.inputMicrousdPerMtok;
  const output = price.outputMicrousdPerMtok;
  const cacheRead = price.cacheReadMicrousdPerMtok ?? input;
  const cacheWrite = price.cacheWriteMicrousdPerMtok ?? input;
  return {
    cost: ({ input_tokens = 0, cache_read_tokens = 0, cache_write_tokens = 0, output_tokens = 0 }) => {
      const plain = input_tokens - cache_read_tokens - cache_write_tokens;
      if (plain < 0) return undefined;
      return ceilMicrousd(
        BigInt(plain) * BigInt(input) +
          BigInt(cache_read_tokens) * BigInt(cacheRead) +
          BigInt(cache_write_tokens) * BigInt(cacheWrite) +
          BigInt(output_tokens) * BigInt(output),
      );
    },
    dearestInput: Math.max(input, cacheRead, cacheWrite),
    dearestOutput: output,
    contextWindow: undefined,
    // The operator's file prices tokens only, so other units have no price.
    fees: (used) => (Object.keys(used).length === 0 ? 0 : undefined),
  };
}

function listedPricing(providerId: string, model: string, now: number): Pricing | undefined {
  const prices: GenaiPrice[] = [];
  for (let hour = 0; hour <= HOURS_AHEAD; hour++) {
    const price = listed({}, providerId, model, now + hour * HOUR_MS)?.model_price;
    if (!price || !isPriced(price)) return undefined;
    prices.push(price);
  }
  const dearest = (kind: RegExp) => Math.max(0, ...prices.map((price) => dearestRate(price, kind)));
  return {
    cost: (usage) => {
      const result = listed(usage, providerId, model, now);
      return result && microusdOf(result.total_price);
    },
    dearestInput: dearest(/^(input|cache)_.*mtok$/),
    dearestOutput: dearest(/^output_.*mtok$/),
    contextWindow: listed({}, providerId, model, now)?.model.context_window,
    fees: (used) => {
      const each = Object.entries(used).map(([unit, count]) => ({ count, rate: feeRate(prices, unit) }));
      if (each.some(({ rate }) => rate === undefined)) return undefined;
      const perCall = feeRate(prices, 'requests') ?? 0;
      return each.reduce(
        (sum, { count, rate }) => sum + Math.ceil((count * (rate ?? 0)) / 1000),
        Math.ceil(perCall / 1000),
      );
    },
  };
}

/** Undefined when there is no price. The library throws when the usage contradicts itself. */
function listed(usage: Usage, providerId: string, model: string, at: number) {
  try {
    return calcPrice({ ...usage }, model, { providerId, timestamp: new Date(at) }) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Some lists have entries without a price, or with a negative price that means "varies". */
const isPriced = (price: GenaiPrice): boolean => {
  const rates = Object.keys(price).map((key) => dearestRate(price, new RegExp(`^${key}$`)));
  return rates.length > 0 && rates.every((rate) => rate >= 0);
};

/** The highest matching rate over all tiers, in microdollars per million tokens, or per thousand units for fees. */
function dearestRate(price: GenaiPrice, kind: RegExp): number {
  const rates = Object.entries(price)
    .filter(([key, value]) => kind.test(key) && value !== undefined)
    .flatMap(([, value]) =>
      typeof value === 'number'
        ? [value]
        : [value?.base ?? 0, ...(value?.tiers ?? []).map((tier) => tier.price)],
    );
  return rates.length === 0 ? 0 : microusdOf(Math.max(...rates));
}

/** Microdollars per thousand units. The list prices `web_searches` as `web_searches_kcount`. */
function feeRate(prices: readonly GenaiPrice[], unit: string): number | undefined {
  const key = `${unit}_kcount`;
  if (!prices.some((price) => key in price)) return undefined;
  return Math.max(...prices.map((price) => dearestRate(price, new RegExp(`^${key}$`))));
}

const ceilMicrousd = (microusdTimesMillion: bigint): number =>
  Number((microusdTimesMillion + PER_MTOK - 1n) / PER_MTOK);

/**
 * Converts dollars, a float, to whole microdollars, rounded up. It rounds to picodollars first, so that floating-point
 * noise ($0.000195 is 0.00019500000000000002) does not add a microdollar.
 */
const microusdOf = (usd: number): number => Number(ceilTo(BigInt(Math.round(usd * 1e12)), 1_000_000n));

const ceilTo = (value: bigint, unit: bigint): bigint =>
  value > 0n ? (value + unit - 1n) / unit : value / unit;

/** The cost of this many tokens in microdollars, rounded up. */
export const outputMicrousd = (tokens: number, ratePerMtok: number): number =>
  ceilMicrousd(BigInt(tokens) * BigInt(ratePerMtok));
