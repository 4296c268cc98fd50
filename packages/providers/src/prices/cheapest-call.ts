import type { Dialect } from '../dialect.ts';
import { reachesFree } from '../dialect-of.ts';
import type { Provider } from '../provider.ts';
import { lookedUpModels, type PricesAt } from './prices.ts';
import {
  type Allowed,
  type Cheapest,
  endpointsOn,
  HOUR_MS,
  leastCall,
  modelNamed,
  type Payable,
  remembered,
} from './why-dead.ts';

/** Models and paths of one URL that are judged together. Beyond, nothing is said. */
const JUDGED_MOST = 64;

type Url = Allowed & { readonly models: readonly string[] | null };

/**
 * The cheapest call of a URL, with any model that its holder may choose, or `unpriced` if the URL has a list of models, none with a
 * price. The search ends at the first call that costs no more than `enough`. Undefined: a call may cost less, as it may have a free
 * path, or a model whose price the issuer does not know.
 */
export function cheapestCall(
  provider: Provider,
  url: Url,
  enough: number,
  at: PricesAt,
): Cheapest | 'unpriced' | undefined {
  const judged = remembered(provider, 'cheapest', url, at, () => judgeFixed(provider, url, at));
  if (judged === undefined || judged === 'unpriced') return judged;
  let { found } = judged;
  for (const endpoint of judged.open) {
    const any = cheapestOfAll(endpoint, enough, at);
    if (!any) return undefined;
    found = cheaperOf(found, any);
  }
  return found;
}

/** The cheapest call among those with a fixed model, and the endpoints on which the holder chooses it. */
type Judged = { readonly found: Cheapest | undefined; readonly open: readonly Payable[] };

function judgeFixed(
  provider: Provider,
  { method, config, paths, models }: Url,
  at: PricesAt,
): Judged | 'unpriced' | undefined {
  const isListed = models !== null && !Object.hasOwn(config, 'model');
  const configs = isListed ? models.map((model) => ({ ...config, model })) : [config];
  if (configs.length * paths.length > JUDGED_MOST) return undefined;
  if (paths.some((path) => reachesFree(provider, method, path))) return undefined;
  const calls = configs.flatMap((each) => paths.map((path) => ({ each, path })));
  const open: Payable[] = [];
  let found: Cheapest | undefined;
  for (const { each, path } of calls) {
    const on = endpointsOn(provider, path, each, at);
    for (const endpoint of 'payable' in on ? on.payable : []) {
      const least = leastCall(endpoint, each);
      if ('unbounded' in least) continue;
      if (least.cheapest) found = cheaperOf(found, least.cheapest);
      else if (endpoint.model.name === undefined) open.push(endpoint);
      else return undefined;
    }
  }
  if (found || open.length > 0) return { found, open };
  return isListed ? 'unpriced' : undefined;
}

const cheaperOf = (a: Cheapest | undefined, b: Cheapest): Cheapest => (a && a.microusd <= b.microusd ? a : b);

/** A search through all models of a provider, which goes on where it ended. */
type Search = { readonly key: string; readonly calls: Iterator<Cheapest | undefined>; found?: Cheapest };

const SEARCHES = new WeakMap<
  Provider,
  Map<Dialect, Search | { readonly key: string; readonly unknown: true }>
>();

/**
 * The cheapest call on an endpoint where the holder chooses the model. A config only narrows what a holder could send, so it is left
 * out. Models are judged once an hour and after each new list, and only as many as it takes to find a call that costs no more than
 * `enough`. Undefined: no model has a price here, or one may have a price that the issuer does not know.
 */
function cheapestOfAll(endpoint: Payable, enough: number, at: PricesAt): Cheapest | undefined {
  const { provider, dialect } = endpoint;
  const known = SEARCHES.get(provider) ?? new Map();
  SEARCHES.set(provider, known);
  const key = `${at.prices.id} ${Math.floor(at.now / HOUR_MS)}`;
  const before = known.get(dialect);
  const search = before?.key === key ? before : { key, calls: leastCalls(endpoint, at) };
  known.set(dialect, search);
  if ('unknown' in search) return undefined;
  while (!search.found || search.found.microusd > enough) {
    const { done, value } = search.calls.next();
    if (done) break;
    if (value) search.found = cheaperOf(search.found, value);
    else {
      known.set(dialect, { key, unknown: true });
      return undefined;
    }
  }
  return search.found;
}

/** The least call of each model of a provider on an endpoint, and undefined where the issuer does not know the price of one. */
function* leastCalls(endpoint: Payable, at: PricesAt): Generator<Cheapest | undefined, undefined> {
  const { provider } = endpoint;
  for (const name of lookedUpModels(provider, at)) {
    if (name === undefined) {
      yield undefined;
      continue;
    }
    const model = modelNamed(provider, endpoint, { model: name }, name, at);
    if ('reason' in model) continue;
    const least = leastCall({ ...endpoint, model }, { model: name });
    if (!('unbounded' in least) && least.cheapest) yield least.cheapest;
  }
}
