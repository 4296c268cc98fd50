import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const runDrain = script('drain');
const runTrim = script('trim');
const runReopen = script('reopen');

/** One settled call as the usage stream has it. */
export type UsageEntry = {
  readonly id: string;
  readonly holdId: string;
  readonly grantId: string;
  readonly potIds: readonly string[];
  readonly uses: number;
  /** Undefined: not known. */
  readonly costMicrousd: number | undefined;
  readonly outcome: 'settled' | 'expired';
  /** The gateway's record of the call: JSON. */
  readonly record: string;
};

/** Where the ledger stands in a partition's usage stream. */
export type Cursor = { readonly partition: number; readonly epoch: number; readonly lastId: string };

export type Drained =
  | { readonly is: 'ok'; readonly entries: readonly UsageEntry[] }
  /** Redis is empty or behind the ledger: it lost data. */
  | { readonly is: 'lost' }
  /** Redis has another epoch than Postgres. */
  | { readonly is: 'epoch'; readonly epoch: number };

/** Reads the next entries after the cursor; opens a closed partition that has none left. */
export async function drain(redis: RedisClient, cursor: Cursor, most: number): Promise<Drained> {
  const names = [keys.partition(cursor.partition), keys.usage(cursor.partition)];
  const [is, value] = (await runDrain(redis, names, [cursor.epoch, cursor.lastId, most])) as [string, unknown];
  if (is === 'lost') return { is };
  if (is === 'epoch') return { is, epoch: value as number };
  return { is: 'ok', entries: (value as [string, string[]][]).map(readEntry) };
}

/** Drops the entries up to the cursor, which the ledger has committed. */
export async function trim(redis: RedisClient, cursor: Cursor): Promise<void> {
  const names = [keys.partition(cursor.partition), keys.usage(cursor.partition)];
  await runTrim(redis, names, [cursor.epoch, ...cursor.lastId.split('-')]);
}

/** Begins a new epoch, closed until the stream is drained. Postgres must have recorded it first. */
export async function reopen(redis: RedisClient, partition: number, epoch: number): Promise<void> {
  await runReopen(redis, [keys.partition(partition)], [epoch]);
}

function readEntry([id, flat]: [string, string[]]): UsageEntry {
  const field = new Map<string, string>();
  for (let i = 0; i < flat.length; i += 2) field.set(flat[i] as string, flat[i + 1] as string);
  const text = (name: string) => field.get(name) ?? '';
  return {
    id,
    holdId: text('hold'),
    grantId: text('grant'),
    potIds: text('pots').split(','),
    uses: Number(text('uses')),
    costMicrousd: text('cost') === '' ? undefined : Number(text('cost')),
    outcome: text('outcome') === 'expired' ? 'expired' : 'settled',
    record: text('record'),
  };
}
