import { setImmediate as nextTurn } from 'node:timers/promises';
import { type Prices, type Provider, pricedModels, pricingOf } from '@presign/providers';
import { type ModelsAnswer, modelsAnswer, modelsQuery } from '@presign/schema';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

type Needs = Pick<RouteDeps, 'providers' | 'prices' | 'now'>;

/** `GET /v1/models`: the models that a spend limit can hold for, and the lists that price them. */
export const listModels = route(
  {
    method: 'get',
    path: '/v1/models',
    summary: 'List the models that have a price',
    description:
      'Under a `cost_limit` only calls of these models pass. Gateways read the same lists, and may have a newer one.',
    scope: 'read',
    query: modelsQuery,
    answer: modelsAnswer,
  },
  (deps) => {
    const all = allModels(deps);
    return async ({ query: { provider, model } }): Promise<ModelsAnswer> => {
      const known = provider === undefined ? undefined : deps.providers.get(provider);
      const data =
        known && model !== undefined
          ? entriesOf(known, [model], deps.prices.current(), deps.now())
          : (await all()).filter((entry) => provider === undefined || entry.provider === provider);
      return { lists: [...deps.prices.status().lists], data: [...data] };
    };
  },
);

type Entry = ModelsAnswer['data'][number];

const HOUR_MS = 3_600_000;

/** Looks up all prices once an hour and after each new list, a few models at a time, because there are over a thousand. */
function allModels({ providers, prices, now }: Needs): () => Promise<readonly Entry[]> {
  let latest: { readonly key: string; readonly entries: Promise<readonly Entry[]> } | undefined;
  return () => {
    const current = prices.current();
    const at = now();
    const key = `${current.id} ${Math.floor(at / HOUR_MS)}`;
    if (latest?.key !== key) latest = { key, entries: lookUp([...providers.values()], current, at) };
    return latest.entries;
  };
}

const AT_ONCE = 10;

async function lookUp(
  providers: readonly Provider[],
  prices: Prices,
  now: number,
): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const provider of providers) {
    const names = pricedModels(provider, prices);
    for (let i = 0; i < names.length; i += AT_ONCE) {
      entries.push(...entriesOf(provider, names.slice(i, i + AT_ONCE), prices, now));
      await nextTurn();
    }
  }
  return entries;
}

function entriesOf(provider: Provider, models: readonly string[], prices: Prices, now: number): Entry[] {
  return models.flatMap((model) => {
    const pricing = pricingOf(provider, model, { prices, now });
    if (!pricing) return [];
    const { source, date = null } = pricing.origin;
    return [{ provider: provider.id, model, source, date, rates: pricing.rates as Entry['rates'] }];
  });
}
