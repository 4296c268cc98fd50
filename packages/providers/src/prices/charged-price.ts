import type { Reported } from '../usage/record.ts';
import type { Pricing } from './price.ts';
import type { PriceLine } from './price-lines.ts';

/** The cost of a call by its answer, in microdollars, and how it follows from the usage. */
export type Charged = {
  readonly microusd: number;
  readonly lines: readonly PriceLine[] | undefined;
};

/**
 * The price of a reported usage, or the cost that the vendor states, whichever is larger.
 * @param pricing undefined if no price is known
 * @returns undefined if neither is known in full, or the usage is in doubt
 */
export function chargedPrice(
  pricing: Pricing | undefined,
  { usage, stated = {} }: Reported,
): Charged | undefined {
  // If a usage is in doubt, it may be incomplete.
  if (usage === undefined) return undefined;
  const { microusd, requestMicrousd } = stated;
  const priced = pricing && atRequestFee(pricing, requestMicrousd);
  const listed = priced?.cost(usage);
  if (priced && listed === undefined) return undefined;
  const largest = Math.max(listed ?? 0, microusd ?? 0);
  const isKnown = !Number.isNaN(largest) && (listed !== undefined || microusd !== undefined);
  return isKnown ? { microusd: largest, lines: priced?.lines(usage, largest) } : undefined;
}

/** A list's price in which the fee of this call replaces the highest fee. An operator's own fee is unchanged. */
function atRequestFee(pricing: Pricing, fee: number | undefined): Pricing {
  const { requests } = pricing.rates;
  if (fee === undefined || requests === undefined || pricing.origin.source === 'providers_file')
    return pricing;
  const saved = Math.max(0, requests - fee);
  return {
    ...pricing,
    cost: (usage) => {
      const dearest = pricing.cost(usage);
      return dearest === undefined ? undefined : dearest - saved;
    },
    lines: (usage, cost) =>
      pricing
        .lines(usage, cost + saved)
        ?.map((line) => (line.unit === 'requests' ? { ...line, rate: line.rate - saved } : line)),
  };
}
