import { briefly } from '@presign/schema';
import { LRUCache } from 'lru-cache';
import { hasVersion, isSameModel } from '../model-names.ts';
import type { Provider } from '../provider.ts';
import type { ModelFacts } from '../spend.ts';
import { refuses } from '../vendor-rules.ts';
import { modelFacts } from '../vendors.ts';
import type { Pricing } from './price.ts';
import { dearestListed, isOneEntry, type PricesAt, pricingOf } from './prices.ts';

/** The model that answered a call, and the price of that model. */
export type Answered = {
  /** The name of the model that answered, if it is not the model that was called. */
  readonly other?: string;
  /** Undefined: its price is not known. */
  readonly pricing: Pricing | undefined;
};

/**
 * The price of the model that answered a call, by the prices that were fixed at its admission.
 * - The operator's own price of a model counts for whatever answers under its name, unless the answer has an own price, too.
 * - An answer that repeats the name of a deployment names no other model.
 * - A model that runs others costs more than the one that its answer names, so its cost is not known.
 * - An alias or a name with a date means the same model, at the price of the name that was called. For a deployment it is the price of
 * the answer, because the customer chooses the version.
 * @param called undefined if the call names no model
 * @param answered undefined if the answer names none
 */
export function answeredBy(
  provider: Provider,
  called: string | undefined,
  answered: string | undefined,
  at: PricesAt,
): Answered {
  if (runsOthers(provider, called)) return { pricing: undefined };
  const asked = called === undefined ? undefined : pricingOf(provider, called, at);
  if (!answered || answered === called) return { pricing: asked };
  const { pricing: own, deployments, namesDeployments } = provider;
  if (asked?.origin.source === 'providers_file' && !own?.has(answered)) return { pricing: asked };
  const model = called && (deployments?.get(called) ?? called);
  const isSame = model !== undefined && isOneModel(provider, [model, answered], at);
  if (isSame && asked && !namesDeployments) return { pricing: asked };
  const priced = pricingOf(provider, inZone(namesDeployments ? model : undefined, answered), at);
  return isSame ? { pricing: priced ?? asked } : { other: answered, pricing: priced };
}

/** Whether two names are of one model: by their forms, or because a list has one entry for both. */
export const isOneModel = (provider: Provider, [a, b]: readonly [string, string], at: PricesAt): boolean =>
  isSameModel(a, b) || isOneEntry(provider, [a, b], at);

/** Whether a model, or the one that a deployment runs, is one of those that no call bounds: routers, models that search. */
const runsOthers = ({ rules, deployments }: Provider, called: string | undefined): boolean =>
  called !== undefined && [called, deployments?.get(called)].some((name) => refuses(rules, name));

/** Azure lists the prices of a zone under its name (`eu/gpt-4o`), and Azure's answers have only the name. */
function inZone(model: string | undefined, answered: string): string {
  const [zone = '', name] = model?.split('/') ?? [];
  return name === undefined || answered.includes('/') ? answered : `${zone}/${answered}`;
}

/**
 * The highest price of the models that may answer a call, and the known facts about these models. The reservation must cover this price.
 */
export type Coverage = {
  /** The price of the model that is called. Undefined: it is not known. */
  readonly called: Pricing | undefined;
  readonly pricing: Pricing | undefined;
  readonly facts: ModelFacts;
};

/**
 * The name of a deployment does not say which model it runs, so any model of the list may answer. If the operator names one, only its
 * versions may. A deployment with the operator's own price has that price. A deployment whose name is neither listed nor named is not
 * known.
 */
export function coverageOf(provider: Provider, called: string, at: PricesAt): Coverage {
  const named = provider.deployments?.get(called);
  const isRefused = named !== undefined && refuses(provider.rules, named);
  const pricing = isRefused ? undefined : pricingOf(provider, called, at);
  const own = modelFacts(provider, called);
  const window = own.contextWindow ?? pricing?.contextWindow;
  const facts = window === own.contextWindow ? own : { ...own, contextWindow: window };
  if (!provider.namesDeployments || pricing?.origin.source === 'providers_file')
    return { called: pricing, pricing, facts };
  const covered = pricing && dearestNamed(provider, named, pricing.dearestOutput !== undefined, at);
  return {
    called: pricing,
    pricing: covered ?? pricing,
    facts: named === undefined ? largestFacts(provider) : facts,
  };
}

/** The dearest price of the models that a deployment may run. */
function dearestNamed(
  provider: Provider,
  named: string | undefined,
  writes: boolean,
  { prices }: PricesAt,
): Pricing | undefined {
  const mayRun = (name: string) =>
    named === undefined || name === named || (!hasVersion(named) && isSameModel(named, name));
  const key = `${prices.id} ${provider.priceList} ${writes} ${named ?? ''}`;
  const dearest = COVERING.get(key) ?? {
    // An embedding model does not answer a request to write text, and a model that writes text does not answer a
    // request for embeddings.
    pricing: dearestListed(
      provider,
      prices,
      (name, { output }) => (output !== undefined) === writes && mayRun(name),
    ),
  };
  COVERING.set(key, dearest);
  return dearest.pricing;
}

const COVERING = new LRUCache<string, { pricing: Pricing | undefined }>({ max: 1_000 });

/** States that a price is not known: a sentence without its full stop, so that a caller may continue it. */
export const priceUnknown = ({ id, namesDeployments }: Provider, model: string, soThat = ''): string =>
  `the price of ${briefly(model)} at ${id} is not known${soThat}${namesDeployments ? `. ${NAME_IT}` : ''}`;

const NAME_IT = 'An operator names the model of a deployment in `deployments` of PROVIDERS_FILE';

/** The facts of a model that may be any model of the vendor. */
function largestFacts({ models = {} }: Provider): ModelFacts {
  const rows = Object.values(models);
  const most = (at: 0 | 1) => Math.max(...rows.map((row) => row[at] ?? 0));
  return { contextWindow: most(0) || undefined, maxOutput: most(1) || undefined, reasoning: true };
}
