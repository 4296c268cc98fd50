import { fixedHold, type Hold } from '@presign/limits';
import {
  type CountTokens,
  type Encoding,
  encodingOf,
  type JsonObject,
  type ModelFacts,
  modelFacts,
  type PricesAt,
  type Pricing,
  type Provider,
  pricedBound,
  pricingOf,
  type Spend,
} from '@presign/providers';
import { briefly, type Refusal } from '@presign/schema';

/** A call whose highest possible cost is known. */
export type Held = {
  readonly hold: Hold;
  /** The most input tokens that the hold covers. */
  readonly inputTokens: number;
  /** A stream states all of its input at its start. */
  readonly statesInput: boolean;
  /** The output bound to send. It is the holder's own bound, even when the hold must cover more. */
  readonly askedTokens: number;
  readonly spend: Spend;
  readonly model: string;
  readonly pricing: Pricing;
  /** At the standard price. */
  readonly body: JsonObject;
};

/** The counter of an encoding. */
export type CounterOf = (encoding: Encoding) => CountTokens;

/**
 * The highest possible cost of a call, at the prices that its usage is charged at. Refuses calls without a known bound.
 * @param body the body to send, apart from its output bound
 * @param counterOf counts plain text; absent: each of its bytes is a token
 */
export function worstCase(
  provider: Provider,
  spend: Spend | undefined,
  body: JsonObject,
  path: string,
  at: PricesAt,
  counterOf?: CounterOf,
): Held | { readonly refusal: Refusal } {
  if (!spend) return unbounded(undefined, 'the cost of this endpoint has no known bound');
  const model = spend.model(body, path);
  if (model === undefined) return unbounded('model', 'names no model, so no price is known');
  const pricing = pricingOf(provider, model, at);
  if (!pricing) {
    const message = `The price of ${briefly(model)} at ${provider.id} is not known, so no spend limit can hold.`;
    return { refusal: { code: 'price_unknown', param: 'model', message } };
  }
  const standard = spend.atStandardPrice?.(body) ?? body;
  const own = modelFacts(provider, model);
  const facts = { ...own, contextWindow: own.contextWindow ?? pricing.contextWindow };
  const bytes = Buffer.byteLength(JSON.stringify(standard));
  const encoding = counterOf && encodingOf(provider, model);
  const count = encoding && counterOf?.(encoding);
  const judged = spend.bound(standard, { path, bytes, facts, count });
  if ('unbounded' in judged) return unbounded(judged.unbounded.param, judged.unbounded.reason);
  const { inputTokens, output } = judged.bound;
  const cost = pricedBound(provider, model, pricing, judged.bound);
  if ('unbounded' in cost) return unbounded(cost.unbounded.param, cost.unbounded.reason);
  const { fixedMicrousd, outputRate } = cost;
  const statesInput = provider.statesInput === true && judged.bound.readsInputOnce === true;
  const known = { spend, model, pricing, body: standard, inputTokens, statesInput };
  if (!output) return { ...known, askedTokens: 0, hold: fixedHold(fixedMicrousd) };
  const bounds = output.coversReasoning ? output : wholeOutput(facts);
  if (!bounds)
    return unbounded(undefined, `the bound of ${provider.id} does not cover the thinking of ${model}`);
  const ratePerMtok = outputRate * output.times;
  const most = tokensThatMultiply(ratePerMtok);
  if (bounds.least > most) return unbounded(undefined, 'costs more than can be counted');
  const leastTokens = bounds.least;
  return {
    ...known,
    askedTokens: output.asked,
    hold: { fixedMicrousd, ratePerMtok, askedTokens: Math.min(bounds.asked, most), leastTokens },
  };
}

/** The script multiplies tokens by the rate, and Lua's numbers are exact up to 2^53. */
const tokensThatMultiply = (rate: number) => Math.floor(Number.MAX_SAFE_INTEGER / Math.max(1, rate));

/** Where the API's bound leaves reasoning out, the model's own maximum is all that bounds it. */
const wholeOutput = ({ maxOutput }: ModelFacts) =>
  maxOutput === undefined ? undefined : { asked: maxOutput, least: maxOutput };

function unbounded(place: string | undefined, reason: string): { refusal: Refusal } {
  const param = place && briefly(place);
  const message = `${param === undefined ? '' : `${param}: `}${reason}; under a spend limit this call cannot pass.`;
  return { refusal: { code: 'cost_unbounded', message, ...(param === undefined ? {} : { param }) } };
}
