import {
  type Cursor,
  type Drained,
  drain,
  type GrantState,
  type RedisClient,
  reopen,
  trim,
  type UsageEntry,
} from '../src/index.ts';

/** The state of one partition in Postgres, as the issuer keeps it: the ledger, its sums, the cursor. */
export type Ledger = {
  cursor: Cursor;
  readonly rows: Map<string, UsageEntry>;
  readonly budgets: Map<string, { used: number; settled: number; tokens: number }>;
  /** Entries that were in the ledger before and were not trimmed yet. */
  readonly repeated: UsageEntry[];
};

export function newLedger(partition: number): Ledger {
  return {
    cursor: { partition, epoch: 1, lastId: '0-0' },
    rows: new Map(),
    budgets: new Map(),
    repeated: [],
  };
}

/** A grant read from Postgres now: the budgets' sums and the cursor in one consistent read. */
export function readGrant(ledger: Ledger, grant: GrantState): GrantState {
  const { epoch, lastId } = ledger.cursor;
  const budgets = grant.budgets.map((budget) => {
    const sums = ledger.budgets.get(budget.id);
    return {
      ...budget,
      used: sums?.used ?? 0,
      settledMicrousd: sums?.settled ?? 0,
      usedTokens: sums?.tokens ?? 0,
    };
  });
  return { ...grant, epoch, lastId, budgets };
}

/** One transaction: rows not there yet, their budgets' sums, the cursor. Returns the entries that were there. */
export function commit(ledger: Ledger, entries: readonly UsageEntry[]): UsageEntry[] {
  const repeated = entries.filter((entry) => !insert(ledger, entry));
  const last = entries.at(-1);
  if (last) ledger.cursor = { ...ledger.cursor, lastId: last.id };
  return repeated;
}

/** One round of the issuer: drain, commit, trim unless that fails; begins a new epoch when Redis lost data. */
export async function drainRound(
  redis: RedisClient,
  ledger: Ledger,
  most = 100,
  trims = true,
): Promise<Drained> {
  const drained = await drain(redis, ledger.cursor, most);
  if (drained.is === 'ok') {
    ledger.repeated.push(...commit(ledger, drained.entries));
    const due = drained.entries.length > 0 || ledger.repeated.length > 0;
    if (due && trims) await trim(redis, ledger.cursor, ledger.repeated.splice(0));
    return drained;
  }
  const { partition, epoch: known } = ledger.cursor;
  const epoch = Math.max(known, drained.is === 'epoch' ? drained.epoch : 0) + 1;
  ledger.cursor = { partition, epoch, lastId: '0-0' };
  ledger.repeated.splice(0);
  await reopen(redis, partition, epoch);
  return drained;
}

/** Drains until nothing is left. Returns the reply of each round. */
export async function drainAll(redis: RedisClient, ledger: Ledger): Promise<string[]> {
  const answers: string[] = [];
  for (;;) {
    const drained = await drainRound(redis, ledger);
    answers.push(drained.is);
    if (drained.is === 'ok' && drained.entries.length === 0) return answers;
    if (answers.length > 1_000) throw new Error('the drain does not end');
  }
}

function insert(ledger: Ledger, entry: UsageEntry): boolean {
  if (ledger.rows.has(entry.holdId)) return false;
  ledger.rows.set(entry.holdId, entry);
  for (const id of entry.budgetIds) {
    const sums = ledger.budgets.get(id) ?? { used: 0, settled: 0, tokens: 0 };
    const settled = sums.settled + (entry.costMicrousd ?? 0);
    ledger.budgets.set(id, { used: sums.used + entry.uses, settled, tokens: sums.tokens + entry.tokens });
  }
  return true;
}
