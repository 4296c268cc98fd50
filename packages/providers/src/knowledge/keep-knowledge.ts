import { knowledgeFiles } from '@presign/schema/tables';
import type { Problem } from '@presign/service';
import { type KeepList, type Kept, keepList, type ListKind } from '../kept/keep-list.ts';
import type { Provider } from '../provider.ts';
import {
  BUNDLED_KNOWLEDGE,
  type Knowledge,
  type Loosened,
  loosenedEntries,
  readKnowledge,
  together,
} from './knowledge.ts';
import { loadProviders } from './load-providers.ts';

/** The providers of a running service, with what its knowledge file adds. */
export type KnowledgeKeeper = {
  /** Its entries change together, when the file does. A call keeps the provider that it began with. */
  readonly providers: ReadonlyMap<string, Provider>;
  readonly current: () => Knowledge;
  readonly status: () => KnowledgeStatus;
  /** Reads the source now. It never throws: `status` says what is wrong. */
  readonly refresh: () => Promise<void>;
  readonly close: () => Promise<void>;
};

export type KnowledgeStatus = Pick<Knowledge, 'source' | 'id' | 'date'> & {
  /** A newer file waits for the operator. Until then the stricter of two entries counts. */
  readonly waits: boolean;
  /** Why the source or the store could not be read, as the rest of a sentence. */
  readonly problem: string | undefined;
};

/** Knowledge files. One with looser entries waits. */
export const KNOWLEDGE: ListKind<Knowledge, Loosened> = {
  table: knowledgeFiles,
  read: readKnowledge,
  loosened: loosenedEntries,
  logged: {
    inUse: 'knowledge in use',
    notRead: 'knowledge is not refreshed',
    waits: 'looser entries wait for: presign knowledge accept',
  },
};

/**
 * Keeps the operator's knowledge file (`keepList`). If none was ever read, only this version's own lists count. They are stricter.
 * @param providersFile contents of PROVIDERS_FILE
 */
export async function keepKnowledge(
  keep: KeepList & { readonly providersFile: string | undefined },
): Promise<KnowledgeKeeper> {
  const { providersFile } = keep;
  const providers = new Map(loadProviders(providersFile));
  const changed = (kept: Kept<Knowledge>) => {
    for (const [id, provider] of loadProviders(providersFile, knowledgeOf(kept))) providers.set(id, provider);
  };
  const kept = await keepList({ ...keep, kind: KNOWLEDGE, describe: statusOf, changed });
  return {
    providers,
    current: () => knowledgeOf(kept.current()),
    status: () => statusOf(kept.current()),
    refresh: kept.refresh,
    close: kept.close,
  };
}

const merged = new WeakMap<object, Knowledge>();

function knowledgeOf({ lists }: Kept<Knowledge>): Knowledge {
  if (!lists) return BUNDLED_KNOWLEDGE;
  const known = merged.get(lists) ?? together(lists.good, lists.offered);
  merged.set(lists, known);
  return known;
}

function statusOf(kept: Kept<Knowledge>): KnowledgeStatus {
  const { source, id, date } = knowledgeOf(kept);
  return { source, id, date, waits: kept.lists?.offered !== undefined, problem: kept.problem };
}

/** The problems of a service's knowledge, for its `/readyz`. */
export function knowledgeProblems({ waits, problem }: KnowledgeStatus): readonly Problem[] {
  return [
    ...(problem === undefined ? [] : [{ store: 'knowledge', problem, effect: LAST_FILE } as const]),
    ...(waits ? [ENTRIES_WAIT] : []),
  ];
}

const LAST_FILE = 'The last file that was read is in use, or what this version knows by itself.';

const ENTRIES_WAIT: Problem = {
  store: 'knowledge',
  problem: 'has looser entries that wait for "presign knowledge accept"',
  effect: 'The stricter of the old and the new entry counts.',
};
