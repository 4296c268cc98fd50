import type { ModelPrice as ListedRates } from '@pydantic/genai-prices';
import type { Usage } from '../spend.ts';
import type { Pricing } from './price.ts';
import type { PriceLine } from './price-lines.ts';

/** Rates of the tokens of most calls, in microdollars per million tokens. */
export type PlainRates = Readonly<Record<keyof typeof PLAIN, number>>;

/** A usage of this many tokens, all of this kind. */
const PLAIN = {
  input_tokens: (all: number): Usage => ({ input_tokens: all }),
  cache_read_tokens: (all: number): Usage => ({ input_tokens: all, cache_read_tokens: all }),
  cache_write_tokens: (all: number): Usage => ({ input_tokens: all, cache_write_tokens: all }),
  output_tokens: (all: number): Usage => ({ output_tokens: all }),
  output_reasoning_tokens: (all: number): Usage => ({ output_tokens: all, output_reasoning_tokens: all }),
};

const UNITS = Object.keys(PLAIN) as (keyof PlainRates)[];

/**
 * The rates of a price that has no tiers, no fee and no part of a microdollar: there each count costs its rate. The library is asked
 * for them once, because it takes 4 % of the CPU time of a call to apply a price.
 */
export function plainRates(price: ListedRates, cost: Pricing['cost']): PlainRates | undefined {
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
export function plainCost(rates: PlainRates, usage: Usage): number | undefined {
  const counts = plainCounts(usage);
  if (!counts) return undefined;
  const picodollars =
    counts.input_tokens * rates.input_tokens +
    counts.cache_read_tokens * rates.cache_read_tokens +
    counts.cache_write_tokens * rates.cache_write_tokens +
    counts.output_tokens * rates.output_tokens +
    counts.output_reasoning_tokens * rates.output_reasoning_tokens;
  return picodollars <= EXACT_MAX ? Math.ceil(picodollars / 1_000_000) : undefined;
}

/** How many tokens are charged at each rate. Undefined if the usage has other units or contradicts itself. */
function plainCounts(usage: Usage): Readonly<Record<keyof PlainRates, number>> | undefined {
  for (const [unit, count] of Object.entries(usage))
    if (count !== 0 && !Object.hasOwn(PLAIN, unit)) return undefined;
  const { input_tokens: input = 0, cache_read_tokens: read = 0, cache_write_tokens: written = 0 } = usage;
  const { output_tokens: output = 0, output_reasoning_tokens: thought = 0 } = usage;
  if (read + written > input || thought > output) return undefined;
  return {
    input_tokens: input - read - written,
    cache_read_tokens: read,
    cache_write_tokens: written,
    output_tokens: output - thought,
    output_reasoning_tokens: thought,
  };
}

/** The lines of a cost that `plainCost` has worked out, as `linesOf` writes them. Undefined for any other cost. */
export function plainLines(
  rates: PlainRates,
  usage: Usage,
  costMicrousd: number,
): readonly PriceLine[] | undefined {
  const counts = plainCounts(usage);
  if (!counts || plainCost(rates, usage) !== costMicrousd) return undefined;
  const lines: PriceLine[] = [];
  for (const unit of UNITS)
    if (counts[unit] !== 0) lines.push({ unit, count: counts[unit], rate: rates[unit] });
  return lines.every(({ count }) => Number.isSafeInteger(count) && count > 0) ? lines : undefined;
}

/** Up to this number a float divided by a million is rounded up correctly. */
const EXACT_MAX = 2 ** 50;
