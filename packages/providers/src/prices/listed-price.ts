import { calcPrice, type ModelPrice as ListedRates } from '@pydantic/genai-prices';
import { FEE_UNITS, type ModelPrice, TOKEN_KINDS } from '../provider.ts';
import type { Usage } from '../spend.ts';
import {
  dearestOf,
  feeOf,
  feesOf,
  isTokens,
  kindsOf,
  microusdOf,
  otherUnits,
  type Pricing,
  tokensMicrousd,
} from './price.ts';
import type { ListedProvider, PriceList } from './price-list.ts';

const HOUR_MS = 3_600_000;
/** Prices of the next day count, too. Some change by the hour, and a call may take longer than an hour. */
const HOURS_AHEAD = 24;

type TokenKind = (typeof TOKEN_KINDS)[number];

/**
 * The price of a model in a list.
 * @param vendor the name that lists have for the provider
 * @param known the model's price in an older list, whose rates count for whatever this list has no rate for
 * @param now Unix milliseconds
 * @returns undefined when the list has no price of the model
 */
export function listedPricing(
  list: PriceList,
  vendor: string,
  model: string,
  known: Pricing | undefined,
  now: number,
): Pricing | undefined {
  const whole = list.providers.get(vendor);
  const entry = whole && listed({}, model, whole, now)?.model;
  if (!entry) return undefined;
  const provider = { ...whole, models: [entry] };
  const changes = Array.isArray(entry.prices);
  const hours = Array.from({ length: changes ? HOURS_AHEAD + 1 : 1 }, (_, hour) => now + hour * HOUR_MS);
  const prices = hours.map((hour) => listed({}, model, provider, hour)?.model_price ?? {});
  if (!prices.every(isPriced)) return undefined;
  const rates = { ...known?.rates, ...ratesOf(prices) };
  const dearestInput = dearestListed('input', rates, prices);
  const dearestOutput = dearestListed('output', rates, prices);
  const covers = (unit: string): boolean => {
    if (isTokens(unit)) return (unit.startsWith('output') ? dearestOutput : dearestInput) !== undefined;
    // A fee for each request covers the searches that it makes (https://docs.perplexity.ai/getting-started/pricing).
    return feeOf(rates, unit) !== undefined || rates.requests !== undefined;
  };
  const cost = (usage: Usage): number | undefined => {
    if (!Object.entries(usage).every(([unit, count]) => count === 0 || covers(unit))) return undefined;
    const price = listed(usage, model, provider, now);
    if (!price) return undefined;
    const feesMicrousd = feesOf(rates, otherUnits(usage));
    const most =
      tokensMicrousd(usage.input_tokens ?? 0, dearestInput ?? 0) +
      tokensMicrousd(usage.output_tokens ?? 0, dearestOutput ?? 0) +
      (feesMicrousd ?? Number.POSITIVE_INFINITY);
    return Math.min(most, microusdOf(price.total_price) + missing(price.model_price, rates, usage));
  };
  // The first call of a model asks for them; most models of a list have none.
  let plain: PlainRates | 'none' | undefined;
  return {
    origin: { source: list.source, list: list.id, date: list.date },
    rates,
    cost: (usage) => {
      plain ??= plainRates(prices[0] ?? {}, cost) ?? 'none';
      return (plain === 'none' ? undefined : plainCost(plain, usage)) ?? cost(usage);
    },
    dearestInput,
    dearestOutput,
    contextWindow: entry.context_window,
    fees: (used) => feesOf(rates, used),
  };
}

/** Rates of the tokens of most calls, in microdollars per million tokens. */
type PlainRates = Readonly<Record<keyof typeof PLAIN, number>>;

/** A usage of so many tokens, all of this kind. */
const PLAIN = {
  input_tokens: (all: number): Usage => ({ input_tokens: all }),
  cache_read_tokens: (all: number): Usage => ({ input_tokens: all, cache_read_tokens: all }),
  cache_write_tokens: (all: number): Usage => ({ input_tokens: all, cache_write_tokens: all }),
  output_tokens: (all: number): Usage => ({ output_tokens: all }),
  output_reasoning_tokens: (all: number): Usage => ({ output_tokens: all, output_reasoning_tokens: all }),
};

/**
 * The rates of a price that has no tiers, no fee and no part of a microdollar. The library is asked for them once, because it takes 4 % of the CPU time of a
 * call to find and apply a price, and there each count costs its rate.
 */
function plainRates(price: ListedRates, cost: Pricing['cost']): PlainRates | undefined {
  const hasTiers = Object.values(price).some((rate) => typeof rate === 'object');
  if (hasTiers || cost({}) !== 0) return undefined;
  const rates = Object.entries(PLAIN).map(([unit, usage]) => {
    const rate = cost(usage(1_000_000)) ?? Number.NaN;
    const isWhole = cost(usage(1_000_000_000)) === 1_000 * rate;
    return [unit, isWhole ? rate : undefined] as const;
  });
  return rates.some(([, rate]) => rate === undefined)
    ? undefined
    : (Object.fromEntries(rates) as Record<keyof typeof PLAIN, number>);
}

/** Undefined when the usage has other units, contradicts itself, or is too large for exact arithmetic in floats. */
function plainCost(rates: PlainRates, usage: Usage): number | undefined {
  for (const [unit, count] of Object.entries(usage))
    if (count !== 0 && !Object.hasOwn(PLAIN, unit)) return undefined;
  const { input_tokens: input = 0, cache_read_tokens: read = 0, cache_write_tokens: written = 0 } = usage;
  const { output_tokens: output = 0, output_reasoning_tokens: thought = 0 } = usage;
  if (read + written > input || thought > output) return undefined;
  const picodollars =
    (input - read - written) * rates.input_tokens +
    read * rates.cache_read_tokens +
    written * rates.cache_write_tokens +
    (output - thought) * rates.output_tokens +
    thought * rates.output_reasoning_tokens;
  return picodollars <= EXACT_MAX ? Math.ceil(picodollars / 1_000_000) : undefined;
}

/** Up to here a float divided by a million is rounded up right. */
const EXACT_MAX = 2 ** 50;

/** Undefined when there is no price. The library throws when a price or a usage contradicts itself. */
function listed(usage: Usage, model: string, provider: ListedProvider, at: number) {
  try {
    return calcPrice({ ...usage }, model, { provider, timestamp: new Date(at) }) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Some lists have entries without a price, or with a negative price that means "varies". */
function isPriced(price: ListedRates): boolean {
  const rates = Object.values(price).flatMap(ratesIn);
  return rates.length > 0 && rates.every((rate) => rate >= 0);
}

/** The dearest rate of each kind over all prices and tiers. */
function ratesOf(prices: readonly ListedRates[]): ModelPrice {
  const dearest = (key: string) => {
    const rates = prices.flatMap((price) => ratesIn(price[key])).map(microusdOf);
    return rates.length === 0 ? undefined : Math.max(...rates);
  };
  const tokens = TOKEN_KINDS.map((kind) => [kind, dearest(tokenKey(kind))] as const);
  const fees = FEE_UNITS.map((unit) => {
    const perThousand = dearest(feeKey(unit));
    return [unit, perThousand === undefined ? undefined : Math.ceil(perThousand / 1_000)] as const;
  });
  return Object.fromEntries([...tokens, ...fees].filter(([, rate]) => rate !== undefined));
}

const tokenKey = (kind: TokenKind) => `${kind}_mtok`;
const feeKey = (unit: (typeof FEE_UNITS)[number]) => `${unit}_kcount`;

/** All rates of a kind, one for each tier. */
const ratesIn = (value: ListedRates[string]): readonly number[] => {
  if (value === undefined) return [];
  return typeof value === 'number' ? [value] : [value.base, ...value.tiers.map((tier) => tier.price)];
};

/**
 * The dearest rate of input or output, also of kinds of tokens that only the list knows. Undefined if the tokens as a
 * whole have no rate: the model reads pages or seconds, or writes none.
 */
function dearestListed(
  whole: 'input' | 'output',
  rates: ModelPrice,
  prices: readonly ListedRates[],
): number | undefined {
  const known = dearestOf(rates, whole);
  if (known === undefined) return undefined;
  const keys = whole === 'input' ? /^(?:input|cache)_.*mtok$/ : /^output_.*mtok$/;
  const listedRates = prices
    .flatMap((price) => Object.entries(price))
    .flatMap(([key, value]) => (keys.test(key) ? ratesIn(value).map(microusdOf) : []));
  return Math.max(known, ...listedRates);
}

/** Kinds that are part of another kind, and are billed as that one where they have no rate of their own. */
const PART_OF: Readonly<Partial<Record<TokenKind, TokenKind>>> = {
  cache_write_1h: 'cache_write',
  cache_audio_read: 'input_audio',
  cache_image_read: 'input_image',
};

const TEXT: ReadonlySet<TokenKind> = new Set([
  ...(['input', 'cache_read', 'cache_write', 'cache_write_1h'] as const),
  ...(['output', 'output_reasoning', 'output_citation'] as const),
]);

/**
 * Adds, in microdollars, the parts of a usage that the library prices too low. It prices a kind of tokens without a rate as
 * the whole, which here costs the dearest known rate, and a fee without a rate as 0, which here costs an older list's fee.
 */
function missing(price: ListedRates, rates: ModelPrice, usage: Usage): number {
  const rateNow = (kind: TokenKind) => rateAt(price[tokenKey(kind)], usage.input_tokens ?? 0);
  const tokens = TOKEN_KINDS.filter((kind) => price[tokenKey(kind)] === undefined).map((kind) => {
    const count = usage[`${kind}_tokens`] ?? 0;
    if (count === 0) return 0;
    const whole = kind.startsWith('output') ? 'output' : 'input';
    const part = PART_OF[kind];
    const paid = (part && rateNow(part)) ?? rateNow(whole) ?? 0;
    const alike = kindsOf(whole).filter((each) => TEXT.has(each) || !TEXT.has(kind));
    const due = rates[kind] ?? Math.max(...alike.map((each) => rateNow(each) ?? 0));
    return tokensMicrousd(count, Math.max(0, due - paid));
  });
  const fees = FEE_UNITS.filter((unit) => price[feeKey(unit)] === undefined).map(
    (unit) => (unit === 'requests' ? 1 : (usage[unit] ?? 0)) * (rates[unit] ?? 0),
  );
  return [...tokens, ...fees].reduce((sum, each) => sum + each, 0);
}

/** A rate in microdollars per million tokens, in the tier of a call with so much input. */
function rateAt(value: ListedRates[string], input: number): number | undefined {
  if (value === undefined || typeof value === 'number') return value && microusdOf(value);
  const tier = value.tiers.toSorted((a, b) => a.start - b.start).findLast(({ start }) => input > start);
  return microusdOf(tier?.price ?? value.base);
}
