import { FEE_UNITS, type ModelPrice, type Provider, TOKEN_KINDS, type Usage } from '@presign/providers';
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
  /**
   * The highest rate over every tier, cache write and modality, in microdollars per million tokens. Undefined when
   * the price has no rate for such tokens: a model that reads pages or seconds, or writes none.
   */
  readonly dearestInput: number | undefined;
  readonly dearestOutput: number | undefined;
  /** The model's context window in tokens, if the list states it. */
  readonly contextWindow: number | undefined;
  /** The fees for one call and for the units used, in microdollars, rounded up. Undefined when a unit has no rate. */
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
  if (list === undefined || provider.listedModels?.test(model) === false) return undefined;
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

/** The operator's own rates, in exact arithmetic. */
function operatorPricing(price: ModelPrice): Pricing {
  const fees = (used: Usage): number | undefined => {
    const counts = Object.entries({ requests: price.requests === undefined ? 0 : 1, ...used });
    const each = counts.map(([unit, count]) =>
      count === 0 ? 0 : count * (feeOf(price, unit) ?? Number.NaN),
    );
    const sum = each.reduce((total, fee) => total + fee, 0);
    return Number.isNaN(sum) ? undefined : sum;
  };
  return {
    cost: (usage) => {
      const input = inputCost(price, usage);
      const output = outputCost(price, usage);
      const feesMicrousd = fees(
        Object.fromEntries(Object.entries(usage).filter(([unit]) => !isTokens(unit))),
      );
      if (input === undefined || output === undefined || feesMicrousd === undefined) return undefined;
      return ceilMicrousd(input + output) + feesMicrousd;
    },
    dearestInput: dearestOf(price, 'input'),
    dearestOutput: dearestOf(price, 'output'),
    contextWindow: undefined,
    fees,
  };
}

function feeOf(price: ModelPrice, unit: string): number | undefined {
  const fee = FEE_UNITS.find((known) => known === unit);
  return fee && price[fee];
}

const isTokens = (unit: string): boolean => unit.endsWith('_tokens');

function dearestOf(price: ModelPrice, whole: 'input' | 'output'): number | undefined {
  if (price[whole] === undefined) return undefined;
  const kinds = TOKEN_KINDS.filter((kind) => kind.startsWith('output') === (whole === 'output'));
  return Math.max(...kinds.map((kind) => price[kind] ?? 0));
}

/** Times a million. Undefined when the tokens have no rate, or their kinds are more than the whole. */
function inputCost(price: ModelPrice, usage: Usage): bigint | undefined {
  const { input_tokens: total = 0, cache_read_tokens: read = 0, input_audio_tokens: audio = 0 } = usage;
  const { cache_write_tokens: written = 0, cache_write_1h_tokens: long = 0 } = usage;
  const { input } = price;
  if (input === undefined) return total === 0 ? 0n : undefined;
  const {
    cache_read = input,
    cache_write = input,
    cache_write_1h = cache_write,
    input_audio = input,
  } = price;
  const heard = input_audio === input ? 0 : audio;
  // Sound may be cached, too, and usage does not say how much of it is.
  if (heard > 0 && read + written > 0) return undefined;
  return sumOf(total, input, [
    [read, cache_read],
    [written - long, cache_write],
    [long, cache_write_1h],
    [heard, input_audio],
  ]);
}

/** Times a million. Undefined when the tokens have no rate, or their kinds are more than the whole. */
function outputCost(price: ModelPrice, usage: Usage): bigint | undefined {
  const { output_tokens: total = 0, output_reasoning_tokens: thought = 0 } = usage;
  const { output_audio_tokens: audio = 0, output_citation_tokens: cited = 0 } = usage;
  const { output } = price;
  if (output === undefined) return total === 0 ? 0n : undefined;
  const { output_reasoning = output, output_audio = output, output_citation = output } = price;
  return sumOf(total, output, [
    [thought, output_reasoning],
    [audio, output_audio],
    [cited, output_citation],
  ]);
}

/** The cost of some tokens, of which these many of each kind have rates of their own. */
function sumOf(
  total: number,
  rate: number,
  kinds: readonly (readonly [count: number, rate: number])[],
): bigint | undefined {
  const rest = total - kinds.reduce((sum, [count]) => sum + count, 0);
  const all = [[rest, rate] as const, ...kinds];
  if (all.some(([count]) => count < 0)) return undefined;
  return all.reduce((sum, [count, each]) => sum + BigInt(count) * BigInt(each), 0n);
}

function listedPricing(providerId: string, model: string, now: number): Pricing | undefined {
  const prices: GenaiPrice[] = [];
  for (let hour = 0; hour <= HOURS_AHEAD; hour++) {
    const price = listed({}, providerId, model, now + hour * HOUR_MS)?.model_price;
    if (!price || !isPriced(price)) return undefined;
    prices.push(price);
  }
  const dearest = (whole: string, kind: RegExp) =>
    prices.every((price) => whole in price)
      ? Math.max(...prices.map((price) => dearestRate(price, kind)))
      : undefined;
  const dearestInput = dearest('input_mtok', /^(input|cache)_.*mtok$/);
  const dearestOutput = dearest('output_mtok', /^output_.*mtok$/);
  /** The list takes a unit without a rate for one that costs nothing. */
  const covers = (unit: string): boolean => {
    if (isTokens(unit)) return (unit.startsWith('output') ? dearestOutput : dearestInput) !== undefined;
    // A fee for each request covers the searches that it makes (https://docs.perplexity.ai/getting-started/pricing).
    return feeRate(prices, unit) !== undefined || feeRate(prices, 'requests') !== undefined;
  };
  return {
    cost: (usage) => {
      if (!Object.entries(usage).every(([unit, count]) => count === 0 || covers(unit))) return undefined;
      const result = listed(usage, providerId, model, now);
      return result && microusdOf(result.total_price);
    },
    dearestInput,
    dearestOutput,
    contextWindow: listed({}, providerId, model, now)?.model.context_window,
    fees: (used) => {
      const counts = Object.entries({ requests: feeRate(prices, 'requests') === undefined ? 0 : 1, ...used });
      const each = counts.map(([unit, count]) => ({ count, rate: count === 0 ? 0 : feeRate(prices, unit) }));
      if (each.some(({ rate }) => rate === undefined)) return undefined;
      return each.reduce((sum, { count, rate }) => sum + Math.ceil((count * (rate ?? 0)) / 1000), 0);
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
