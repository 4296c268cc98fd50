import { calcPrice, type ModelPrice as ListedRates, type ModelInfo } from '@pydantic/genai-prices';
import { type CacheWrites, FEE_UNITS, MEDIA_KINDS, type ModelPrice, TOKEN_KINDS } from '../facts/rates.ts';
import { isJsonObject } from '../json.ts';
import type { Usage } from '../spend.ts';
import { microusdOf } from '../stated-cost.ts';
import { withListedWrites } from './cache-writes.ts';
import { candidatesFor } from './candidates.ts';
import { type PlainRates, plainCost, plainLines, plainRates } from './plain-rates.ts';
import {
  dearestOf,
  feeOf,
  feesOf,
  isTokens,
  kindsOf,
  otherUnits,
  type Pricing,
  tokensMicrousd,
  withoutHour,
} from './price.ts';
import { linesOf, type TokenKind, WITHIN } from './price-lines.ts';
import type { ListedProvider, PriceList } from './price-list.ts';

const HOUR_MS = 3_600_000;
/** Prices of the next day count, too: some prices change by the hour, and a call may take longer than an hour. */
const HOURS_AHEAD = 24;

/** A model to look up. */
export type Sought = {
  /** The name that lists have for the provider. */
  readonly vendor: string;
  readonly model: string;
  /** How the price of cache writes follows from that of the input, where a list does not state it. */
  readonly writes?: CacheWrites | undefined;
  /** Rates that the vendor publishes. They count where no list has a rate. */
  readonly published?: ModelPrice | undefined;
  /** As in `Provider`. */
  readonly mediaAsWhole?: ReadonlySet<string> | undefined;
};

/**
 * The price of a model in a list.
 * @param known the model's price in an older list, whose rates count for whatever this list has no rate for
 * @param now Unix milliseconds
 * @returns undefined when the list has no price of the model
 */
export function listedPricing(
  list: PriceList,
  { vendor, model, writes, published, mediaAsWhole }: Sought,
  known: Pricing | undefined,
  now: number,
): Pricing | undefined {
  const whole = list.providers.get(vendor);
  const found = whole && listed({}, model, candidatesFor(whole, model), now)?.model;
  if (!found) return undefined;
  const entry = withRates(found, (price) =>
    withPublished(withListedWrites(price, writes), published, known?.rates),
  );
  const provider = { ...whole, models: [entry] };
  const changes = Array.isArray(entry.prices);
  const hours = Array.from({ length: changes ? HOURS_AHEAD + 1 : 1 }, (_, hour) => now + hour * HOUR_MS);
  const prices = [...new Set(hours.map((hour) => listed({}, model, provider, hour)?.model_price ?? NONE))];
  if (!prices.every(isPriced)) return undefined;
  const rates = { ...published, ...known?.rates, ...ratesOf(prices) };
  const dearestInput = dearestListed('input', rates, prices);
  const dearestShort = dearestListed('input', withoutHour(rates), prices);
  const dearestOutput = dearestListed('output', rates, prices);
  const covers = (unit: string): boolean => {
    const media = MEDIA_KINDS.find((kind) => unit === `${kind}_tokens`);
    if (media && rates[media] === undefined && !mediaAsWhole?.has(media)) return isWithinRate(media, rates);
    if (isTokens(unit)) return (unit.startsWith('output') ? dearestOutput : dearestInput) !== undefined;
    // A fee for each request covers the searches that it makes (https://docs.perplexity.ai/getting-started/pricing).
    return feeOf(rates, unit) !== undefined || rates.requests !== undefined;
  };
  const cost = (usage: Usage): number | undefined => {
    if (!Object.entries(usage).every(([unit, count]) => count === 0 || covers(unit))) return undefined;
    const price = listed(withoutOwnFees(usage), model, provider, now);
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
    lines: (usage, costMicrousd) => {
      const lines = plain && plain !== 'none' && plainLines(plain, usage, costMicrousd);
      if (lines) return lines;
      const tokenRate = (kind: TokenKind) => rateDue(prices[0] ?? {}, rates, kind, usage).due;
      return linesOf(usage, costMicrousd, tokenRate, (unit) => rates[unit]);
    },
    dearestInput,
    dearestShort,
    dearestOutput,
    contextWindow: entry.context_window,
    isByHour: isByHour(entry),
    fees: (used) => feesOf(rates, used),
  };
}

const NONE: ListedRates = {};

const isByHour = ({ prices }: ModelInfo): boolean =>
  Array.isArray(prices) && prices.some(({ constraint }) => constraint && 'start_time' in constraint);

/** The name that a list has for a model. Two names of one entry are one model. */
export const entryOf = (list: PriceList, vendor: string, model: string, now: number): string | undefined => {
  const provider = list.providers.get(vendor);
  return provider && listed({}, model, candidatesFor(provider, model), now)?.model.id;
};

/** Cached sound and pictures without a separate rate cost at most as much as uncached ones. */
function isWithinRate(kind: TokenKind, rates: ModelPrice): boolean {
  const whole = WITHIN[kind];
  return whole !== undefined && rates[whole] !== undefined;
}

function withRates(entry: ModelInfo, change: (price: ListedRates) => ListedRates): ModelInfo {
  const { prices } = entry;
  if (!Array.isArray(prices)) return { ...entry, prices: change(prices) };
  return { ...entry, prices: prices.map((each) => ({ ...each, prices: change(each.prices) })) };
}

/** A list's price with the rates of tokens that the vendor publishes, where neither this list nor an older one has a rate. */
function withPublished(price: ListedRates, published: ModelPrice = {}, known: ModelPrice = {}): ListedRates {
  const added = TOKEN_KINDS.flatMap((kind) => {
    const rate =
      price[tokenKey(kind)] === undefined && known[kind] === undefined ? published[kind] : undefined;
    return rate === undefined ? [] : [[tokenKey(kind), rate / 1_000_000] as const];
  });
  return added.length === 0 ? price : { ...price, ...Object.fromEntries(added) };
}

/** A usage without the units that the library does not know. The library does not price such units, and logs a warning for each. */
function withoutOwnFees(usage: Usage): Usage {
  if (!OWN_FEES.some((unit) => unit in usage)) return usage;
  return Object.fromEntries(Object.entries(usage).filter(([unit]) => !OWN_FEES.includes(unit)));
}

const OWN_FEES: readonly string[] = [
  'preview_searches',
  'grounded_prompts',
  'grounding_searches',
  'map_prompts',
  'characters',
];

/** Undefined when there is no price. The library throws if a price or a usage contradicts itself. */
function listed(usage: Usage, model: string, provider: ListedProvider, at: number) {
  try {
    return calcPrice({ ...usage }, model, { provider, timestamp: new Date(at) }) ?? undefined;
  } catch {
    return undefined;
  }
}

/** Some lists have entries without a price, with a negative price that means "varies", or in a form that this version does not know. */
function isPriced(price: ListedRates): boolean {
  if (!isJsonObject(price) || !Object.values(price).every(isRate)) return false;
  const rates = Object.values(price).flatMap(ratesIn);
  return rates.length > 0 && rates.every((rate) => rate >= 0);
}

/** A rate, or one for each tier of input. */
function isRate(value: unknown): boolean {
  if (value === undefined || typeof value === 'number') return true;
  if (!isJsonObject(value) || typeof value.base !== 'number' || !Array.isArray(value.tiers)) return false;
  return value.tiers.every((tier) => isJsonObject(tier) && typeof tier.price === 'number');
}

/** The dearest rates of a model of a list, on any day. Empty if it has no price. */
export function listedRates(prices: ModelInfo['prices']): ModelPrice {
  const all = Array.isArray(prices) ? prices.map((each) => each.prices) : [prices];
  return all.every(isPriced) ? ratesOf(all) : {};
}

/** The dearest rate of each kind over all prices and tiers. */
function ratesOf(prices: readonly ListedRates[]): ModelPrice {
  const dearest = (key: string) => {
    const rates = prices.flatMap((price) => ratesIn(price[key])).map(microusdOf);
    return rates.length === 0 ? undefined : Math.max(...rates);
  };
  const tokens = TOKEN_KINDS.map((kind) => [kind, dearest(tokenKey(kind))] as const);
  const fees = FEE_UNITS.map((unit) => {
    const rates = prices.flatMap((price) => feesIn(price, unit));
    return [unit, rates.length === 0 ? undefined : Math.ceil(Math.max(...rates))] as const;
  });
  return Object.fromEntries([...tokens, ...fees].filter(([, rate]) => rate !== undefined));
}

const tokenKey = (kind: TokenKind) => `${kind}_mtok`;
const feeKey = (unit: (typeof FEE_UNITS)[number]) => `${unit}_kcount`;

/** Microdollars for each of a unit. A list states dollars for a thousand, and for a million characters. */
const feesIn = (price: ListedRates, unit: (typeof FEE_UNITS)[number]): readonly number[] =>
  unit === 'characters'
    ? ratesIn(price.input_mchars)
    : ratesIn(price[feeKey(unit)]).map((dollars) => microusdOf(dollars) / 1_000);

/** All rates of a kind, one for each tier. */
const ratesIn = (value: ListedRates[string]): readonly number[] => {
  if (value === undefined) return [];
  return typeof value === 'number' ? [value] : [value.base, ...value.tiers.map((tier) => tier.price)];
};

/**
 * The highest rate of input or output. It includes kinds of tokens that only the list knows. Undefined if the tokens as
 * a whole have no rate: the model reads pages or seconds, or writes none.
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
    .flatMap(([key, value]) => (keys.test(key) && !isKnown(key) ? ratesIn(value).map(microusdOf) : []));
  return Math.max(known, ...listedRates);
}

/** Whether a rate of a list is in `ratesOf`. */
const isKnown = (key: string): boolean => TOKEN_KINDS.some((kind) => tokenKey(kind) === key);

const TEXT: ReadonlySet<TokenKind> = new Set([
  ...(['input', 'cache_read', 'cache_write', 'cache_write_1h'] as const),
  ...(['output', 'output_reasoning', 'output_citation'] as const),
]);

/**
 * Adds, in microdollars, the parts of a usage that the library prices too low. It prices a kind of tokens without a rate as the
 * whole that contains it. Here such a kind costs the highest known rate. It prices a fee without a rate as 0. Here such a fee costs an
 * older list's fee.
 */
function missing(price: ListedRates, rates: ModelPrice, usage: Usage): number {
  const tokens = TOKEN_KINDS.filter((kind) => price[tokenKey(kind)] === undefined).map((kind) => {
    const count = usage[`${kind}_tokens`] ?? 0;
    if (count === 0) return 0;
    const { paid, due } = rateDue(price, rates, kind, usage);
    return tokensMicrousd(count, due - paid);
  });
  const fees = FEE_UNITS.filter((unit) => price[feeKey(unit)] === undefined).map(
    (unit) => (unit === 'requests' ? 1 : (usage[unit] ?? 0)) * (rates[unit] ?? 0),
  );
  return [...tokens, ...fees].reduce((sum, each) => sum + each, 0);
}

/**
 * The rate of a kind of tokens: what the library takes for it, and what it costs here. A kind without a rate costs an older list's
 * rate or the dearest known one, but never less than the library takes.
 */
function rateDue(price: ListedRates, rates: ModelPrice, kind: TokenKind, usage: Usage) {
  const rateNow = (each: TokenKind) => rateAt(price[tokenKey(each)], usage.input_tokens ?? 0);
  const listed = rateNow(kind);
  if (listed !== undefined) return { paid: listed, due: listed };
  const whole = kind.startsWith('output') ? 'output' : 'input';
  const part = WITHIN[kind];
  const paid = (part && rateNow(part)) ?? rateNow(whole) ?? 0;
  const alike = kindsOf(whole).filter((each) => TEXT.has(each) || !TEXT.has(kind));
  const due = rates[kind] ?? Math.max(...alike.map((each) => rateNow(each) ?? 0));
  return { paid, due: Math.max(paid, due) };
}

/** A rate in microdollars per million tokens, in the tier of a call with this much input. */
function rateAt(value: ListedRates[string], input: number): number | undefined {
  if (value === undefined || typeof value === 'number') return value && microusdOf(value);
  const tier = value.tiers.toSorted((a, b) => a.start - b.start).findLast(({ start }) => input > start);
  return microusdOf(tier?.price ?? value.base);
}
