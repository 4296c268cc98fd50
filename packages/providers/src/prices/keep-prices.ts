import { priceLists } from '@presign/schema/tables';
import type { Problem } from '@presign/service';
import { type KeepList, type Kept, keepList, type ListKind, type ListSource } from '../kept/keep-list.ts';
import { type PriceList, readPriceList } from './price-list.ts';
import { BUNDLED_PRICES, type Drop, largeDrops, type Prices } from './prices.ts';

/** The prices of a running service. */
export type PriceKeeper = {
  readonly current: () => Prices;
  readonly status: () => PriceStatus;
  /** Reads the source now. It never throws: `status` says what is wrong. */
  readonly refresh: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export type PriceStatus = {
  /** The lists in use, in the order in which they decide. */
  readonly lists: readonly (Pick<PriceList, 'source' | 'id' | 'date'> & {
    /** The newer list lowers prices by much and waits for the operator. Until then only its higher prices count. */
    readonly waits: boolean;
  })[];
  /** Why the source or the store could not be read, as the rest of a sentence. */
  readonly problem: string | undefined;
};

/** Price lists. One whose prices drop by much waits. */
export const PRICES: ListKind<PriceList, Drop> = {
  table: priceLists,
  read: readPriceList,
  loosened: largeDrops,
  logged: {
    inUse: 'prices in use',
    notRead: 'prices are not refreshed',
    waits: 'large price drops wait for: presign prices accept',
  },
};

/**
 * Keeps the operator's list of prices (`keepList`). If no list was ever read, no listed model has a price, because the bundled prices
 * could be too low.
 */
export async function keepPrices(keep: KeepList): Promise<PriceKeeper> {
  const { source } = keep;
  const describe = (kept: Used) => ({ lists: statusOf(kept, source).lists });
  const { current, refresh, close } = await keepList({ ...keep, kind: PRICES, describe });
  return {
    current: () => pricesOf(current(), source),
    status: () => statusOf(current(), source),
    refresh,
    close,
  };
}

type Used = Kept<PriceList>;

const remembered = new WeakMap<object, Prices>();

function pricesOf({ lists }: Used, source: ListSource | undefined): Prices {
  if (!source) return BUNDLED_PRICES;
  if (!lists) return NO_PRICES;
  const known = remembered.get(lists);
  if (known) return known;
  const own = [lists.good, ...(lists.offered ? [lists.offered] : [])];
  const prices = { id: own.map(({ id }) => id).join('+'), layers: [own, ...BUNDLED_PRICES.layers] };
  remembered.set(lists, prices);
  return prices;
}

const NO_PRICES: Prices = { id: 'none', layers: [] };

function statusOf(used: Used, source: ListSource | undefined): PriceStatus {
  const lists = pricesOf(used, source).layers.flat();
  return {
    lists: lists.map((list) => ({
      source: list.source,
      id: list.id,
      date: list.date,
      waits: list === used.lists?.offered,
    })),
    problem: used.problem,
  };
}

/** The problems of a service's prices, for its `/readyz`. */
export function priceProblems({ lists, problem }: PriceStatus): readonly Problem[] {
  const effect = lists.length > 0 ? LAST_LIST : NO_LIST;
  return [
    ...(problem === undefined ? [] : [{ store: 'prices', problem, effect } as const]),
    ...(lists.some((list) => list.waits) ? [DROPS_WAIT] : []),
  ];
}

const LAST_LIST = 'The last list that was read is in use.';

const NO_LIST = 'Calls under a spend limit get 422 price_unknown, unless PROVIDERS_FILE has the price.';

const DROPS_WAIT: Problem = {
  store: 'prices',
  problem: 'have large drops that wait for "presign prices accept"',
  effect: 'The dearer of the old and the new price of a model counts.',
};
