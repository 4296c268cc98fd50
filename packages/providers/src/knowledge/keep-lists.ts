import { type KeepList, type ListSchedule, NO_SOURCE } from '../kept/keep-list.ts';
import { keepPrices, type PriceKeeper } from '../prices/keep-prices.ts';
import { type KnowledgeKeeper, keepKnowledge } from './keep-knowledge.ts';

/** The lists that an operator may keep current. */
export type ListSources = {
  /** Undefined: the bundled prices are the only ones. */
  readonly priceSource?: ListSchedule;
  /** The knowledge file. Undefined: this version's own lists are the only ones. */
  readonly knowledgeSource?: ListSchedule;
};

/** The prices and the providers of a running service. */
export type Lists = {
  readonly prices: PriceKeeper;
  readonly knowledge: KnowledgeKeeper;
  readonly close: () => Promise<void>;
};

/** Keeps both lists of a service (`keepList`). */
export async function keepLists(
  options: ListSources &
    Omit<KeepList, keyof ListSchedule> & {
      /** Contents of `PROVIDERS_FILE`. */
      readonly providersFile: string | undefined;
    },
): Promise<Lists> {
  const { priceSource = NO_SOURCE, knowledgeSource = NO_SOURCE } = options;
  const prices = await keepPrices({ ...options, ...priceSource });
  const knowledge = await keepKnowledge({ ...options, ...knowledgeSource });
  const close = async () => {
    await Promise.all([prices.close(), knowledge.close()]);
  };
  return { prices, knowledge, close };
}
