import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const runDrain = script('drain');
const runTrim = script('trim');
const runReopen = script('reopen');
const runCarry = script('carry');
/** Holds named in one script call. */
const CARRY_MOST = 1_000;

/** One settled call, or what was given back of one, as the usage stream has it. */
export type UsageEntry = {
  readonly id: string;
  readonly holdId: string;
  readonly grantId: string;
  readonly budgetIds: readonly string[];
  /** Uses and cost are below 0 where they are given back. */
  readonly uses: number;
  /** Undefined: not known. */
  readonly costMicrousd: number | undefined;
  readonly outcome: 'settled' | 'expired' | 'refunded';
  /** The gateway's record of the call: JSON. */
  readonly record: string;
};

/** Where the ledger stands in a partition's usage stream. */
export type Cursor = { readonly partition: number; readonly epoch: number; readonly lastId: string };

/** Anything but `ok` wants a new epoch, above those of Redis and Postgres: first in Postgres, then `reopen`. */
export type Drained =
  | { readonly is: 'ok'; readonly entries: readonly UsageEntry[] }
  /** Redis is empty, behind the ledger or another process than when the epoch began: it may lack data. */
  | { readonly is: 'lost' }
  /** Redis has another epoch than Postgres. */
  | { readonly is: 'epoch'; readonly epoch: number };

/**
 * Reads the next entries after the cursor; opens a closed partition that has none left. The cursor must be
 * the one committed last: read it under the lock of its row, and keep that until the entries are committed.
 */
export async function drain(redis: RedisClient, cursor: Cursor, most: number): Promise<Drained> {
  const at = cursor.partition;
  const names = [keys.partition(at), keys.usage(at), keys.leases(at), keys.survivors(at)];
  const [is, value] = (await runDrain(redis, names, [cursor.epoch, cursor.lastId, most])) as [
    string,
    unknown,
  ];
  if (is === 'lost') return { is };
  if (is === 'epoch') return { is, epoch: value as number };
  if (is === 'ok') return { is, entries: (value as [string, string[]][]).map(readEntry) };
  await carry(redis, cursor, value as string[]);
  return drain(redis, cursor, most);
}

/**
 * Drops the entries up to the cursor, which the ledger has committed.
 * @param repeated those of them that the ledger had before, under the same hold id; after a trim that failed,
 *   also those meant for it
 */
export async function trim(
  redis: RedisClient,
  cursor: Cursor,
  repeated: readonly UsageEntry[] = [],
): Promise<void> {
  const at = cursor.partition;
  const budgets = repeated.flatMap((entry) => entry.budgetIds.map((id) => ({ id, entry })));
  const names = [keys.partition(at), keys.usage(at), ...budgets.map(({ id }) => keys.budget(at, id))];
  const amounts = budgets.flatMap(({ entry }) => [
    ...entry.id.split('-'),
    entry.uses,
    entry.costMicrousd ?? 0,
  ]);
  await runTrim(redis, names, [cursor.epoch, ...cursor.lastId.split('-'), ...amounts]);
}

/** Begins a new epoch, closed until the stream is drained. Postgres must have recorded it first. */
export async function reopen(redis: RedisClient, partition: number, epoch: number): Promise<void> {
  await runReopen(redis, [keys.partition(partition), keys.survivors(partition)], [epoch]);
}

async function carry(redis: RedisClient, { partition, epoch }: Cursor, holdIds: readonly string[]) {
  for (let i = 0; i < holdIds.length; i += CARRY_MOST) {
    const ids = holdIds.slice(i, i + CARRY_MOST);
    const names = [keys.partition(partition), keys.leases(partition), keys.survivors(partition)];
    await runCarry(redis, [...names, ...ids.map((id) => keys.hold(partition, id))], [epoch, ...ids]);
  }
}

function readEntry([id, flat]: [string, string[]]): UsageEntry {
  const field = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) field.set(flat[i] as string, flat[i + 1] as string);
  const text = (name: string) => field.get(name) ?? '';
  return {
    id,
    holdId: text('hold'),
    grantId: text('grant'),
    budgetIds: text('budgets').split(','),
    uses: Number(text('uses')),
    costMicrousd: text('cost') === '' ? undefined : Number(text('cost')),
    outcome: text('outcome') as UsageEntry['outcome'],
    record: text('record'),
  };
}
