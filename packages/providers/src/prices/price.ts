import { FEE_UNITS, type ModelPrice, TOKEN_KINDS } from '../facts/rates.ts';
import type { Usage } from '../spend.ts';
import { linesOf, type PriceLine, type TokenKind } from './price-lines.ts';

/** Rates are whole microdollars per million tokens. */
const PER_MTOK = 1_000_000n;

/** The source of a price: a list with its date, or `PROVIDERS_FILE`. */
export type PriceOrigin = {
  readonly source: 'providers_file' | 'file' | 'url' | 'bundled';
  readonly list: string | undefined;
  readonly date: string | undefined;
};

/** The prices of one model at one time. They do not change with a list, so that a call keeps its prices. */
export type Pricing = {
  readonly origin: PriceOrigin;
  /** The highest rate of each kind, over all tiers and the next day, in the units of `ModelPrice`. */
  readonly rates: ModelPrice;
  /** Whole microdollars, rounded up once. Undefined when the usage cannot be priced. */
  readonly cost: (usage: Usage) => number | undefined;
  /**
   * How the cost of a usage follows from the rates. Undefined when the usage contradicts itself.
   * @param costMicrousd as `cost` returned it
   */
  readonly lines: (usage: Usage, costMicrousd: number) => readonly PriceLine[] | undefined;
  /**
   * The highest rate over every tier, cache write and modality, in microdollars per million tokens. Undefined when
   * the price has no rate for such tokens: a model that reads pages or seconds, or writes none.
   */
  readonly dearestInput: number | undefined;
  /** The same, without cache writes for an hour. */
  readonly dearestShort: number | undefined;
  readonly dearestOutput: number | undefined;
  /** The model's context window in tokens, if the list states it. */
  readonly contextWindow: number | undefined;
  /** The list states other rates for other hours of the day. */
  readonly isByHour?: boolean;
  /** The fees for one call and for the units used, in microdollars, rounded up. Undefined when a unit has no rate. */
  readonly fees: (used: Usage) => number | undefined;
};

/** Makes a cost unknown when a count is not a safe integer, or the cost itself is not. */
export function exact(pricing: Pricing): Pricing {
  return {
    ...pricing,
    cost: (usage: Usage) => {
      const cost = Object.values(usage).every(isExact) ? pricing.cost(usage) : undefined;
      return isExact(cost) ? cost : undefined;
    },
  };
}

const isExact = (count: unknown): boolean => Number.isSafeInteger(count) && Number(count) >= 0;

/** The rates of an operator or a vendor's page, in exact arithmetic. */
export function fixedPricing(price: ModelPrice, origin: PriceOrigin): Pricing {
  const wholeRate = (kind: TokenKind) => (kind.startsWith('output') ? price.output : price.input);
  const tokenRate = (kind: TokenKind) => price[kind] ?? priceOfAlike(price, kind) ?? wholeRate(kind);
  return {
    origin,
    rates: price,
    cost: (usage) => {
      const input = inputCost(price, usage);
      const output = outputCost(price, usage);
      const feesMicrousd = feesOf(price, otherUnits(usage));
      if (input === undefined || output === undefined || feesMicrousd === undefined) return undefined;
      return ceilMicrousd(input + output) + feesMicrousd;
    },
    lines: (usage, cost) => linesOf(usage, cost, tokenRate, (unit) => price[unit]),
    dearestInput: dearestOf(price, 'input'),
    dearestShort: dearestOf(withoutHour(price), 'input'),
    dearestOutput: dearestOf(price, 'output'),
    contextWindow: undefined,
    fees: (used) => feesOf(price, used),
  };
}

/** The fees for one call and for the units used, in microdollars. Undefined when a unit has no rate. */
export function feesOf(rates: ModelPrice, used: Usage): number | undefined {
  let sum = used.requests === undefined ? (rates.requests ?? 0) : 0;
  for (const unit in used) {
    const count = used[unit] as number;
    if (count !== 0) sum += count * (feeOf(rates, unit) ?? Number.NaN);
  }
  return Number.isNaN(sum) ? undefined : sum;
}

export function feeOf(rates: ModelPrice, unit: string): number | undefined {
  const fee = FEE_UNITS.find((known) => known === unit);
  return fee && rates[fee];
}

export const isTokens = (unit: string): boolean => unit.endsWith('_tokens');

/** The units of a usage that are not tokens. */
export function otherUnits(usage: Usage): Usage {
  const others: Record<string, number> = {};
  for (const unit in usage) if (!isTokens(unit)) others[unit] = usage[unit] as number;
  return others;
}

/** The highest rate of input or output. Undefined if the tokens as a whole have no rate. */
export function dearestOf(rates: ModelPrice, whole: 'input' | 'output'): number | undefined {
  if (rates[whole] === undefined) return undefined;
  return Math.max(...kindsOf(whole).map((kind) => rates[kind] ?? 0));
}

/** All rates except the one of cache writes for an hour. */
export const withoutHour = ({ cache_write_1h: _, ...rates }: ModelPrice): ModelPrice => rates;

/** The kinds of input tokens, and those of output tokens. */
export const kindsOf = (whole: 'input' | 'output') =>
  TOKEN_KINDS.filter((kind) => kind.startsWith('output') === (whole === 'output'));

/** The rate of those kinds of cached tokens for which an operator states no rate. */
function priceOfAlike(price: ModelPrice, kind: TokenKind): number | undefined {
  if (kind === 'cache_write_1h') return price.cache_write;
  return kind.startsWith('cache_') && kind.endsWith('_read') ? price.cache_read : undefined;
}

/** Times a million. Undefined when the tokens have no rate, or their kinds are more than the whole. */
function inputCost(price: ModelPrice, usage: Usage): bigint | undefined {
  const { input_tokens: total = 0, cache_read_tokens: read = 0 } = usage;
  const { cache_write_tokens: written = 0, cache_write_1h_tokens: long = 0 } = usage;
  const { input } = price;
  if (input === undefined) return total === 0 ? 0n : undefined;
  const { cache_read = input, cache_write = input, cache_write_1h = cache_write } = price;
  const media = MEDIA.map((kind) => [usage[`${kind}_tokens`] ?? 0, price[kind] ?? input] as const);
  const dearer = media.filter(([count, rate]) => count > 0 && rate !== input);
  // Sound and pictures may be cached, too, and usage does not say how many of these tokens were cached.
  if (dearer.length > 0 && read + written > 0) return undefined;
  const cached = CACHED_MEDIA.filter((kind) => (price[kind] ?? cache_read) !== cache_read);
  if (cached.some((kind) => (usage[`${kind}_tokens`] ?? 0) > 0)) return undefined;
  return sumOf(total, input, [
    [read, cache_read],
    [written - long, cache_write],
    [long, cache_write_1h],
    ...dearer,
  ]);
}

const MEDIA = ['input_audio', 'input_image', 'input_video'] as const;
const CACHED_MEDIA = ['cache_audio_read', 'cache_image_read'] as const;

/** Times a million. Undefined when the tokens have no rate, or their kinds are more than the whole. */
function outputCost(price: ModelPrice, usage: Usage): bigint | undefined {
  const { output_tokens: total = 0, output_reasoning_tokens: thought = 0 } = usage;
  const { output_audio_tokens: audio = 0, output_citation_tokens: cited = 0 } = usage;
  const { output_image_tokens: drawn = 0, output_video_tokens: filmed = 0 } = usage;
  const { output } = price;
  if (output === undefined) return total === 0 ? 0n : undefined;
  const { output_reasoning = output, output_audio = output, output_citation = output } = price;
  const { output_image = output, output_video = output } = price;
  return sumOf(total, output, [
    [thought, output_reasoning],
    [audio, output_audio],
    [cited, output_citation],
    [drawn, output_image],
    [filmed, output_video],
  ]);
}

/** The cost of some tokens. The given number of tokens of each kind have separate rates. */
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

export const ceilMicrousd = (microusdTimesMillion: bigint): number =>
  Number((microusdTimesMillion + PER_MTOK - 1n) / PER_MTOK);

/** The cost of this many tokens in microdollars, rounded up. */
export const tokensMicrousd = (tokens: number, ratePerMtok: number): number =>
  ceilMicrousd(BigInt(tokens) * BigInt(ratePerMtok));

/**
 * The higher of two prices of one model, for a time in which either may be right. Everything costs at least the higher
 * of both rates. If only one price has a rate, that rate counts.
 */
export function dearerOf(a: Pricing, b: Pricing): Pricing {
  const kinds = Object.keys({ ...a.rates, ...b.rates }) as (keyof ModelPrice)[];
  return {
    origin: a.origin,
    rates: Object.fromEntries(kinds.map((kind) => [kind, dearer(a.rates[kind], b.rates[kind])])),
    cost: (usage) => {
      const costs = [a.cost(usage), b.cost(usage)];
      return costs.includes(undefined) ? undefined : dearer(...(costs as [number, number]));
    },
    lines: (usage, cost) => (a.cost(usage) === cost ? a : b).lines(usage, cost),
    dearestInput: dearer(a.dearestInput, b.dearestInput),
    dearestShort: dearer(a.dearestShort, b.dearestShort),
    dearestOutput: dearer(a.dearestOutput, b.dearestOutput),
    contextWindow:
      a.contextWindow === undefined || b.contextWindow === undefined
        ? undefined
        : Math.max(a.contextWindow, b.contextWindow),
    fees: (used) => dearer(a.fees(used), b.fees(used)),
  };
}

const dearer = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined || b === undefined ? (a ?? b) : Math.max(a, b);
