import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Dialect } from '../dialect.ts';
import { reachesFree } from '../dialect-of.ts';
import type { Provider } from '../provider.ts';
import { lookedUpModels, type PricesAt } from './prices.ts';
import {
  type Allowed,
  type Cheapest,
  endpointsOn,
  HOUR_MS,
  isUnserved,
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
export async function cheapestCall(
  provider: Provider,
  url: Url,
  enough: number,
  at: PricesAt,
): Promise<Cheapest | 'unpriced' | undefined> {
  const judged = remembered(provider, 'cheapest', url, at, () => judgeFixed(provider, url, at));
  if (judged === undefined || judged === 'unpriced') return judged;
  let { found } = judged;
  for (const endpoint of judged.open) {
    const any = await cheapestOfAll(endpoint, enough, at);
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

/** How many models are judged before other work gets a turn. */
const AT_ONCE = 5;

/** A search through all models of a provider, which goes on where it ended. */
type Search = {
  readonly key: string;
  readonly calls: Iterator<Cheapest | 'unknown' | 'none', undefined>;
  found?: Cheapest;
  /** Which models were not judged. `unknown`: the issuer does not know the price of one that was. */
  left: 'some' | 'none' | 'unknown';
};

const SEARCHES = new WeakMap<Provider, Map<Dialect, Search>>();

/**
 * The cheapest call on an endpoint where the holder chooses the model. A config only narrows what a holder could send, so it is left
 * out. Models are judged once an hour and after each new list, and only as many as it takes to find a call that costs no more than
 * `enough`. Undefined: no model has a price here, or one may have a price that the issuer does not know.
 */
async function cheapestOfAll(endpoint: Payable, enough: number, at: PricesAt): Promise<Cheapest | undefined> {
  if (isUnserved(endpoint.provider, at)) return undefined;
  const search = searchOn(endpoint, at);
  while (search.left === 'some' && !(search.found && search.found.microusd <= enough)) await goOn(search);
  return search.left === 'unknown' ? undefined : search.found;
}

function searchOn(endpoint: Payable, at: PricesAt): Search {
  const { provider, dialect } = endpoint;
  const known = SEARCHES.get(provider) ?? new Map<Dialect, Search>();
  SEARCHES.set(provider, known);
  const key = `${at.prices.id} ${Math.floor(at.now / HOUR_MS)}`;
  const before = known.get(dialect);
  if (before?.key === key) return before;
  const search: Search = { key, calls: leastCalls(endpoint, at), left: 'some' };
  known.set(dialect, search);
  return search;
}

let lastTurn: Promise<void> = Promise.resolve();

/** Judges the next models, in a turn of the event loop in which no other request judges any. */
async function goOn(search: Search): Promise<void> {
  lastTurn = lastTurn.then(() => nextTurn());
  await lastTurn;
  for (let judged = 0; judged < AT_ONCE && search.left === 'some'; judged++) judgeNext(search);
}

function judgeNext(search: Search): void {
  const { value } = search.calls.next();
  if (value === undefined) search.left = 'none';
  else if (value === 'unknown') search.left = 'unknown';
  else if (value !== 'none') search.found = cheaperOf(search.found, value);
}

/** For each model of a provider, its least call on an endpoint, or `unknown` if the issuer does not know its price. */
function* leastCalls(endpoint: Payable, at: PricesAt): Generator<Cheapest | 'unknown' | 'none', undefined> {
  for (const name of lookedUpModels(endpoint.provider, at))
    yield name === undefined ? 'unknown' : leastOf(endpoint, name, at);
}

function leastOf(endpoint: Payable, name: string, at: PricesAt): Cheapest | 'none' {
  const model = modelNamed(endpoint.provider, endpoint, { model: name }, name, at);
  if ('reason' in model) return 'none';
  const least = leastCall({ ...endpoint, model }, { model: name });
  return ('cheapest' in least ? least.cheapest : undefined) ?? 'none';
}
