import type { JsonObject } from './json.ts';
import type { ModelPrice } from './prices/rates.ts';
import { addStated, largestOf, type ReadStated, statedIn, withStated } from './prices/stated-cost.ts';
import type { Bounded, CallFacts, DialectSpend, Reported, Spend, Unbounded } from './spend.ts';

/** A vendor's rules about money. They hold for every dialect that the vendor speaks. */
export type VendorRules = {
  /**
   * Input tokens that the vendor adds to a call by itself, such as the prompts of chat templates.
   * `whole window`: too many or not documented, so the whole context window is held.
   */
  readonly addedInput: number | ((model: string) => number | 'whole window');
  /** Whether the bound of the output covers reasoning. Absent: it does. */
  readonly coversReasoning?: (model: string) => boolean;
  /**
   * Models, in lower case, that search, run or call others by themselves, or that write images or sound at rates
   * that are not listed: a call does not bound what they cost.
   */
  readonly refusedModels?: RegExp;
  /** Whether a call of a model has a fee, which its price must then state (`requests`). */
  readonly feePerRequest?: (model: string) => boolean;
  /** Reads what the usage of its answers says about money. Absent: nothing. */
  readonly stated?: ReadStated;
  /**
   * Writes into a body the rates at which its hold is worked out, for a vendor that serves a model at several prices. Such a
   * vendor refuses the call if no host takes them.
   */
  readonly withHighestPrice?: (body: JsonObject, rates: ModelPrice) => JsonObject;
};

/** The rules of a provider that speaks the APIs of several vendors: whatever the strictest of them says. */
export function strictest(all: readonly VendorRules[]): VendorRules {
  const stated = all.flatMap((rules) => rules.stated ?? []);
  const bounding = all.flatMap((rules) => rules.withHighestPrice ?? []);
  const refused = all.flatMap(({ refusedModels }) => (refusedModels ? [refusedModels.source] : []));
  return {
    addedInput: (model) => {
      const added = all.map((rules) => addedTokens(rules, model));
      const known = added.filter((tokens) => tokens !== 'whole window');
      return known.length < added.length ? 'whole window' : Math.max(...known);
    },
    coversReasoning: (model) => all.every((rules) => rules.coversReasoning?.(model) ?? true),
    feePerRequest: (model) => all.some((rules) => rules.feePerRequest?.(model) ?? false),
    ...(stated.length > 0 && { stated: largestOf(stated) }),
    ...(bounding.length > 0 && {
      withHighestPrice: (body, rates) => bounding.reduce((sent, bound) => bound(sent, rates), body),
    }),
    ...(refused.length > 0 && {
      refusedModels: new RegExp(refused.map((source) => `(?:${source})`).join('|')),
    }),
  };
}

/**
 * A dialect's metering under a vendor's rules. This is the only way to a call's bound.
 * @returns `bound` never throws for any body; `readAnswer` and `readStream` report nothing for refused models
 */
export function underRules({ boundBody, ...metering }: DialectSpend, rules: VendorRules): Spend {
  const { readAnswer, readStream } = metering;
  const { stated = nothing, withHighestPrice } = rules;
  return {
    ...metering,
    ...(withHighestPrice && { withHighestPrice }),
    bound: (body, call) => boundUnder(rules, boundBody, metering.model(body, call.path), body, call),
    readAnswer: (answer) => addStated(unlessRefused(rules, readAnswer(answer)), statedIn(answer, stated)),
    ...(readStream && {
      readStream: () => {
        const { end, ...reader } = rules.stated ? withStated(readStream(), rules.stated) : readStream();
        return { ...reader, end: () => unlessRefused(rules, end()) };
      },
    }),
  };
}

const nothing: ReadStated = () => ({});

function boundUnder(
  rules: VendorRules,
  boundBody: DialectSpend['boundBody'],
  model: string | undefined,
  body: JsonObject,
  call: CallFacts,
): Bounded {
  // The path's model is priced, but a vendor may read the body's.
  if ([model, body.model].some((name) => refuses(rules, name))) return { unbounded: REFUSED_MODEL };
  const added = addedInput(rules, model ?? '', call);
  if (added === undefined) return { unbounded: WINDOW_UNKNOWN };
  const judged = boundBody(body, { ...call, bytes: call.bytes + added });
  if ('unbounded' in judged) return judged;
  const { inputTokens, output } = judged.bound;
  if (inputTokens >= FILLS_ANY_WINDOW) return { unbounded: WINDOW_UNKNOWN };
  const fees = rules.feePerRequest?.(model ?? '') ? { ...judged.bound.fees, requests: 1 } : judged.bound.fees;
  if (output === undefined) return { bound: { ...judged.bound, fees } };
  const coversReasoning = output.coversReasoning && (rules.coversReasoning?.(model ?? '') ?? true);
  return { bound: { ...judged.bound, fees, output: { ...output, coversReasoning } } };
}

/** The tokens to add. Undefined if the whole window must be held and is not known. */
function addedInput(rules: VendorRules, model: string, { facts }: CallFacts) {
  const tokens = addedTokens(rules, model);
  if (tokens !== 'whole window') return tokens;
  return facts.contextWindow === undefined ? undefined : FILLS_ANY_WINDOW;
}

const addedTokens = ({ addedInput: added }: VendorRules, model: string) =>
  typeof added === 'number' ? added : added(model);

/** More tokens than any window has, and few enough that sums stay exact. */
const FILLS_ANY_WINDOW = 2 ** 51;

/** Vendors may ignore the case of a name, as price lists do, so it is compared in lower case. */
const refuses = ({ refusedModels }: VendorRules, model: unknown): boolean =>
  typeof model === 'string' && refusedModels?.test(model.trim().toLowerCase()) === true;

/** The usage of a refused model does not report its fees, so its cost is not known. */
const unlessRefused = (rules: VendorRules, reported: Reported | undefined): Reported | undefined =>
  refuses(rules, reported?.model) ? undefined : reported;

const REFUSED_MODEL: Unbounded = {
  param: 'model',
  reason: 'this model has fees or kinds of output whose cost nothing in the call bounds',
};

const WINDOW_UNKNOWN: Unbounded = {
  param: 'model',
  reason:
    'the provider adds input that is not in the body, and the context window of this model is not known',
};
