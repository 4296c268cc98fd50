import { briefly } from '@presign/schema';
import type { Provider } from '../provider.ts';
import type { Bound, Unbounded } from '../spend.ts';
import { type Pricing, tokensMicrousd } from './price.ts';

/** The cost of a bound: of its input and fees in whole, of its output for a million tokens. */
export type PricedBound = { readonly fixedMicrousd: number; readonly outputRate: number };

/** The cost of a bound at the price of a model, or the part of the bound that the price has no rate for. */
export function pricedBound(
  provider: Provider,
  model: string,
  pricing: Pricing,
  { inputTokens, isShortCache, fees, output }: Bound,
): PricedBound | { readonly unbounded: Unbounded } {
  const without = (units: string) => ({
    unbounded: {
      param: 'model',
      reason: `the price of ${briefly(model)} at ${provider.id} has no rate for ${units}`,
    },
  });
  const feesMicrousd = pricing.fees(fees);
  if (feesMicrousd === undefined) {
    const unpriced = Object.entries(fees).filter(([unit, n]) => pricing.fees({ [unit]: n }) === undefined);
    return without(unpriced.map(([unit]) => unit).join(', '));
  }
  const dearest = isShortCache && provider.isOwnHost ? pricing.dearestShort : pricing.dearestInput;
  const inputRate = inputTokens === 0 ? 0 : dearest;
  if (inputRate === undefined) return without('input tokens');
  const outputRate = output ? pricing.dearestOutput : 0;
  if (outputRate === undefined) return without('output tokens');
  return { fixedMicrousd: tokensMicrousd(inputTokens, inputRate) + feesMicrousd, outputRate };
}
