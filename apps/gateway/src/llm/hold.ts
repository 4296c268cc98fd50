import { fixedHold, type Hold } from '@presign/limits';
import {
  type Bound,
  coverageOf,
  type Encoding,
  encodingOf,
  type JsonObject,
  largestFee,
  type ModelFacts,
  nameOfPlace,
  type PricesAt,
  type Pricing,
  type Provider,
  pricedBound,
  priceUnknown,
  type SavedTokens,
  type Spend,
} from '@presign/providers';
import { briefly, type Refusal } from '@presign/schema';
import type { Policy } from '../grant/policy.ts';

/** A call whose highest possible use is known. */
export type Held = {
  /** Undefined when no budget limits spending. */
  readonly hold: Hold | undefined;
  /** The most tokens of input and output. Undefined when nothing limits tokens. */
  readonly worstTokens: number | undefined;
  /** The most input tokens that the hold covers. */
  readonly inputTokens: number;
  /** The least input that a stream states at its start, where it states all of it. Undefined: it may not state all of it. */
  readonly leastInput: number | undefined;
  /** The output bound to send. It is the holder's own bound, even if the hold must cover more. */
  readonly askedTokens: number;
  readonly hasOutput: boolean;
  readonly spend: Spend;
  readonly model: string;
  /** Known wherever spending is limited. */
  readonly pricing: Pricing | undefined;
  /** At the standard price. */
  readonly body: JsonObject;
};

/** The call to bound. */
type BoundCall = {
  /** Undefined: its endpoint is not known. */
  readonly spend: Spend | undefined;
  /** The body to send, apart from its output bound. */
  readonly body: JsonObject;
  readonly path: string;
  readonly query?: string;
  /** The most bytes of a body with members of this one, as compact JSON. */
  readonly sizeOf: (body: JsonObject) => number;
};

/** The limits of a call. `savedOf` counts plain text. If it is absent, each byte counts as a token. */
type Limited = Pick<Policy, 'costLimited' | 'tokenLimited'> & {
  readonly at: PricesAt;
  readonly savedOf?: SavedOf | undefined;
};

/** The counter of an encoding. */
export type SavedOf = (encoding: Encoding) => SavedTokens;

/**
 * A call that cannot be planned. `model` is the model that it names, if that has a price. `unbounded` names the field, kind, beta or model for
 * which it has no bound or price, for figures and the log.
 */
export type Unplannable = {
  readonly refusal: Refusal;
  readonly model?: string | undefined;
  readonly unbounded?: string | undefined;
};

/** The most that a call can use, and the most that it can cost at the prices of its charge. Refuses calls without a known bound. */
export function worstCase(
  provider: Provider,
  { spend, body, path, query = '', sizeOf }: BoundCall,
  limited: Limited,
): Held | Unplannable {
  const refuse = refuserOf(provider, limited);
  if (!spend)
    return refuse({
      reason: `the ${limited.costLimited ? 'cost' : 'use'} of this endpoint has no known bound`,
    });
  const model = spend.model(body, path);
  if (model === undefined)
    return refuse({
      param: 'model',
      reason: `names no model, so no ${limited.costLimited ? 'price' : 'bound'} is known`,
    });
  const { called: pricing, pricing: covering, facts } = coverageOf(provider, model, limited.at);
  if (!pricing && limited.costLimited) {
    const reason = priceUnknown(provider, model, ', so no spend limit can hold');
    const message = `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.${addPrice(limited.at.prices.id)}`;
    const unbounded = nameOfPlace({ param: 'model' }, { model });
    return { refusal: { code: 'price_unknown', param: 'model', message }, unbounded };
  }
  const refusePriced = (why: Unbounded) => {
    const unbounded = why.param === undefined ? undefined : nameOfPlace(why, body);
    // A kind is always in the field `type`.
    const kind = why.isUnknown && why.beta === undefined ? unbounded?.split('=')[1] : undefined;
    const reason = kind === undefined ? why.reason : `${why.reason} (${kind})`;
    return { ...refuse({ ...why, reason }), model: pricing && model, unbounded };
  };
  const unreported = spend.streams(body, path, query) ? spend.refusesAsking?.(body, query) : undefined;
  if (unreported) return refusePriced(unreported);
  const standard = spend.atStandardPrice?.(body) ?? body;
  const bytes = sizeOf(standard);
  const encoding = limited.savedOf && encodingOf(provider, model);
  const saved = encoding && limited.savedOf?.(encoding);
  const judged = spend.bound(standard, { path, bytes, facts, saved });
  if ('unbounded' in judged) return refusePriced(judged.unbounded);
  const { bound } = judged;
  const output = wholeOutput(bound, facts);
  if (bound.output && !output)
    return refusePriced({ reason: `the bound of ${provider.id} does not cover the thinking of ${model}` });
  const { inputTokens } = bound;
  const worstTokens = limited.tokenLimited ? tokensOf(inputTokens, output) : undefined;
  const hold =
    limited.costLimited && covering ? holdOf(provider, model, covering, { bound, output }) : undefined;
  if (hold && 'unbounded' in hold) return refusePriced(hold.unbounded);
  const sent = hold && covering && spend.withHighestPrice?.(standard, covering.rates);
  const leastInput = provider.isOwnHost && bound.leastInput;
  const askedTokens = bound.output?.asked ?? 0;
  return {
    hold,
    worstTokens,
    inputTokens,
    leastInput,
    askedTokens,
    hasOutput: output !== undefined,
    spend,
    model,
    pricing,
    body: sent || standard,
  };
}

/** The output tokens to hold for one choice (`asked`), the least bound that the API accepts, and the number of choices. */
type Output = { readonly asked: number; readonly least: number; readonly times: number };

/** Refuses a call under a limit whose headers ask for a beta that may change its price. */
export function refusedBeta(
  provider: Provider,
  spend: Spend,
  headers: Parameters<Spend['refusedBeta']>[0],
  limited: Pick<Policy, 'costLimited' | 'tokenLimited'>,
): Unplannable | undefined {
  const why = spend.refusedBeta(headers);
  return why && { ...refuserOf(provider, limited)(why), unbounded: nameOfPlace(why, {}) };
}

/** If the bound of the request does not cover reasoning, only the model's own maximum bounds the output. */
function wholeOutput({ output }: Bound, { maxOutput }: ModelFacts): Output | undefined {
  if (!output || output.coversReasoning) return output;
  return maxOutput === undefined ? undefined : { asked: maxOutput, least: maxOutput, times: output.times };
}

/** All tokens of a call, as a whole number that Redis can count. */
const tokensOf = (input: number, output: Output | undefined): number =>
  Math.min(Math.ceil(input + (output ? output.asked * output.times : 0)), Number.MAX_SAFE_INTEGER);

function holdOf(
  provider: Provider,
  model: string,
  pricing: Pricing,
  { bound, output }: { readonly bound: Bound; readonly output: Output | undefined },
): Hold | { readonly unbounded: Unbounded } {
  const cost = pricedBound(provider, model, pricing, bound);
  if ('unbounded' in cost) return cost;
  const { fixedMicrousd, outputRate } = cost;
  const feeMicrousd = largestFee(provider.refusals);
  if (!output) return fixedHold(Math.max(fixedMicrousd, feeMicrousd));
  const ratePerMtok = outputRate * output.times;
  const most = tokensThatMultiply(ratePerMtok);
  const leastTokens = output.least;
  if (leastTokens > most) return { unbounded: { reason: 'costs more than can be counted' } };
  // Even with the lowest output bound, the hold covers the fee of a refused request.
  const restMicrousd = feeMicrousd - Math.floor((leastTokens * ratePerMtok) / PER_MTOK);
  return {
    fixedMicrousd: Math.max(fixedMicrousd, restMicrousd),
    ratePerMtok,
    askedTokens: Math.min(output.asked, most),
    leastTokens,
  };
}

const PER_MTOK = 1_000_000;

/** The script multiplies tokens by the rate, and Lua's numbers are exact up to 2^53. */
const tokensThatMultiply = (rate: number) => Math.floor(Number.MAX_SAFE_INTEGER / Math.max(1, rate));

type Unbounded = {
  readonly param?: string;
  readonly reason: string;
  readonly isUnknown?: true;
  readonly beta?: string;
};

const declare = (knowledge = 'bundled', list: 'harmless_fields' | 'harmless_betas') =>
  ` The gateway's knowledge (${knowledge}) does not have it. The operator can update KNOWLEDGE_FILE, or declare it harmless in PROVIDERS_FILE (${list}).`;

const addPrice = (lists: string) =>
  ` The price lists (${lists}) do not have it. The operator can load a newer list (PRICES_URL), or add the price to PROVIDERS_FILE (pricing).`;

/** Refuses a call that has no known bound. The refusal names the limit that requires a bound: the money limit, or else the token limit. */
const refuserOf =
  ({ knowledge }: Provider, { costLimited }: Pick<Policy, 'costLimited'>) =>
  ({ param: place, reason, isUnknown, beta }: Unbounded): { refusal: Refusal } => {
    const param = place && briefly(place);
    const limit = costLimited ? 'a spend limit' : 'tokens_per_minute or a budget of tokens';
    const message = `${param === undefined ? '' : `${param}: `}${reason}; under ${limit} this call cannot pass.${isUnknown ? declare(knowledge, beta === undefined ? 'harmless_fields' : 'harmless_betas') : ''}`;
    const code = costLimited ? 'cost_unbounded' : 'tokens_unbounded';
    return { refusal: { code, message, ...(param === undefined ? {} : { param }) } };
  };
