import { betaRules } from './bounds/betas.ts';
import { boundBeyond, type CompiledPlaces, compilePlaces, FILLS_ANY_WINDOW } from './bounds/beyond-lists.ts';
import { type DeclaredPlaces, strictestPlaces } from './bounds/declared.ts';
import type { ModelPrice } from './facts/rates.ts';
import type { JsonObject } from './json.ts';
import type {
  Bounded,
  CallFacts,
  DialectSpend,
  EventReader,
  RequestFacts,
  Spend,
  StreamReader,
  Unbounded,
  Usage,
} from './spend.ts';
import { addStated, largestOf, type ReadStated, statedIn, withStated } from './stated-cost.ts';
import { isNamedIn, type KnownCounts } from './usage/known-counts.ts';
import { type Reported, type Statement, UsageRecord } from './usage/record.ts';

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
   * Models, in lower case, whose cost a call does not bound: they search, run or call others by themselves, or write images or sound at
   * rates that are not listed.
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
  /**
   * Counts of its usage, and parts of its answers, that no dialect knows and that cost nothing here. Names are as in
   * `facts/counts.ts`.
   */
  readonly freeUsage?: KnownCounts;
  /** Fields and kinds of objects that no list of this version has, with their effects (`nameOfPlace`). */
  readonly declared?: DeclaredPlaces;
  /** Betas that are known to change no price, next to those that `bounds/betas.ts` knows. */
  readonly harmlessBetas?: readonly string[];
  /** Betas that do, of those that it knows. */
  readonly refusedBetas?: readonly string[];
};

/** The rules of a provider that speaks the APIs of several vendors: whatever the strictest of them says. */
export function strictest(all: readonly VendorRules[]): VendorRules {
  const stated = all.flatMap((rules) => rules.stated ?? []);
  const bounding = all.flatMap((rules) => rules.withHighestPrice ?? []);
  const refused = all.flatMap(({ refusedModels }) => (refusedModels ? [refusedModels.source] : []));
  const [first, ...others] = all.map(({ freeUsage = NONE }) => freeUsage);
  const freeUsage = new Set([...(first ?? NONE)].filter((name) => others.every((free) => free.has(name))));
  return {
    freeUsage,
    declared: strictestPlaces(all.map(({ declared }) => declared)),
    harmlessBetas: all.flatMap(({ harmlessBetas = [] }) => harmlessBetas),
    refusedBetas: all.flatMap(({ refusedBetas = [] }) => refusedBetas),
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

const NONE: KnownCounts = new Set();

/**
 * A dialect's metering under a vendor's rules. This is the only way to a call's bound, and to the usage of an answer.
 * @returns `bound` never throws for any body; `readAnswer` and `readStream` report nothing for refused models
 */
export function underRules({ boundBody, ...dialect }: DialectSpend, rules: VendorRules): Spend {
  const { readAnswer, readStream, betasAt, ...metering } = dialect;
  const isFree = (name: string) => isNamedIn(rules.freeUsage ?? NONE, name);
  const { stated = nothing, withHighestPrice, harmlessBetas = [], refusedBetas = [] } = rules;
  const asRuled = { ...rules, places: compilePlaces(rules.declared) };
  const betas = betaRules(betasAt, { harmless: harmlessBetas, refused: refusedBetas });
  return {
    ...metering,
    refusedBeta: betas.inHeaders,
    ...(withHighestPrice && { withHighestPrice }),
    bound: (body, call) => {
      const beta = betas.inBody(body);
      if (beta) return { unbounded: beta };
      return boundUnder(asRuled, boundBody, metering.model(body, call.path), body, call);
    },
    readAnswer: (answer, request) => {
      const record = new UsageRecord(isFree);
      record.add(asRequested(readAnswer(answer), request));
      return addStated(unlessRefused(rules, record.read()), statedIn(answer, stated));
    },
    ...(readStream && {
      readStream: (request) => {
        const reader = streamReader(readStream(), rules, new UsageRecord(isFree), request);
        return rules.stated ? withStated(reader, rules.stated) : reader;
      },
    }),
  };
}

const nothing: ReadStated = () => ({});

function streamReader(
  reader: EventReader,
  rules: VendorRules,
  record: UsageRecord,
  request: RequestFacts | undefined,
): StreamReader {
  const { matters, mayBeWritten, statesInput } = reader;
  const wanted = request?.echoes ? 'result' : 'written';
  return {
    ...(matters && {
      matters: (event) => matters(event) || (record.content !== wanted && (mayBeWritten?.(event) ?? true)),
    }),
    event: (data, name) => record.add(asRequested(reader.event(data, name), request)),
    ...(statesInput && { input: () => (statesInput() ? inputOf(record.read()) : undefined) }),
    end: () => (reader.isWhole() ? unlessRefused(rules, record.read()) : undefined),
  };
}

/** Text in an answer that repeats the prompt is not known to be written by the model. */
function asRequested(statement: Statement | undefined = {}, request: RequestFacts | undefined): Statement {
  return request?.echoes && statement.content ? { ...statement, content: 'result' } : statement;
}

/** The input of a usage. Undefined if it has none. A server that only speaks the API of a vendor may state the input at the end. */
function inputOf(reported: Reported | undefined): Usage | undefined {
  const input = Object.entries(reported?.usage ?? {}).filter(([unit]) => !unit.startsWith('output_'));
  return reported?.usage?.input_tokens ? Object.fromEntries(input) : undefined;
}

function boundUnder(
  rules: VendorRules & { readonly places: CompiledPlaces },
  boundBody: DialectSpend['boundBody'],
  model: string | undefined,
  body: JsonObject,
  call: CallFacts,
): Bounded {
  // The path's model is priced, but a vendor may read the body's.
  if (refuses(rules, model) || (body.model !== model && refuses(rules, body.model)))
    return { unbounded: REFUSED_MODEL };
  const added = addedInput(rules, model ?? '', call);
  if (added === undefined) return { unbounded: WINDOW_UNKNOWN };
  const { path, bytes, facts, saved } = call;
  const judged = boundBeyond(rules.places, boundBody, body, { path, bytes: bytes + added, facts, saved });
  if ('unbounded' in judged) return judged;
  const { inputTokens, output } = judged.bound;
  if (inputTokens >= FILLS_ANY_WINDOW) return { unbounded: WINDOW_UNKNOWN };
  const hasFee = rules.feePerRequest?.(model ?? '') === true;
  const isCovered = rules.coversReasoning?.(model ?? '') ?? true;
  if (!hasFee && (output === undefined || isCovered || !output.coversReasoning)) return judged;
  const fees = hasFee ? { ...judged.bound.fees, requests: 1 } : judged.bound.fees;
  const coversReasoning = isCovered && output?.coversReasoning === true;
  return { bound: { ...judged.bound, fees, output: output && { ...output, coversReasoning } } };
}

/** The tokens to add. Undefined if the whole window must be reserved and its size is not known. */
function addedInput(rules: VendorRules, model: string, { facts }: CallFacts) {
  const tokens = addedTokens(rules, model);
  if (tokens !== 'whole window') return tokens;
  return facts.contextWindow === undefined ? undefined : FILLS_ANY_WINDOW;
}

const addedTokens = ({ addedInput: added }: VendorRules, model: string) =>
  typeof added === 'number' ? added : added(model);

/** Vendors may ignore the case of a name, as price lists do, so it is compared in lower case. */
export const refuses = ({ refusedModels }: VendorRules, model: unknown): boolean =>
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
