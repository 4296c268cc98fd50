import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { type Field, flag, number, numbers, oneOf, texts } from './reply.ts';
import { script } from './script.ts';

const entries: Field<UsageEntry[]> = {
  lua: (value) => value,
  read: (raw) => (raw as [string, string[]][]).map(readEntry),
  isList: true,
};

const lookScript = script('look', {
  each: { keys: ['partition', 'usage'], args: ['epoch', 'lastId'] },
  reply: oneOf({ found: { at: numbers } }),
});
const drainScript = script('drain', {
  keys: ['partition', 'usage', 'leases', 'survivors'],
  args: ['epoch', 'lastId', 'most'],
  reply: oneOf({ ok: { entries }, carry: { holdIds: texts }, lost: {}, epoch: { epoch: number } }),
});
const carryScript = script('carry', {
  keys: ['partition', 'leases', 'survivors'],
  args: ['epoch'],
  each: { keys: ['hold'], args: ['holdId'] },
  reply: flag,
});
export const trimScript = script('trim', {
  keys: ['partition', 'usage'],
  args: ['epoch', 'lastId'],
  each: { keys: ['budget'], args: ['entryId', 'uses', 'cost', 'tokens'] },
  reply: flag,
});
export const reopenScript = script('reopen', {
  keys: ['partition', 'survivors'],
  args: ['epoch'],
  reply: flag,
});

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
  /** Tokens of input and output, as windows of budgets count them. */
  readonly tokens: number;
  /** `ended`: it has no call of its own, and its record says how calls ended that were charged before. */
  readonly outcome: 'settled' | 'expired' | 'refunded' | 'ended';
  /** The gateway's record of the call: JSON. */
  readonly record: string;
};

/** Where the ledger stands in a partition's usage stream. */
export type Cursor = { readonly partition: number; readonly epoch: number; readonly lastId: string };

/**
 * Looks at the partitions of a group (`groupsOf`) in one script, and returns the cursors whose partition may have work: entries that are not
 * drained or not trimmed, or an epoch that is not open in Redis as Postgres knows it. Throws what ioredis throws.
 */
export async function withWork(redis: RedisClient, cursors: readonly Cursor[]): Promise<Cursor[]> {
  if (cursors.length === 0) return [];
  const { at } = await lookScript.run(redis, {
    each: cursors.map(({ partition, epoch, lastId }) => ({
      partition: keys.partition(partition),
      usage: keys.usage(partition),
      epoch,
      lastId,
    })),
  });
  return at.flatMap((place) => cursors[place - 1] ?? []);
}

/**
 * All kinds but `ok` want a new epoch, above those of Redis and Postgres: first in Postgres, then through `reopen`.
 */
export type Drained =
  | { readonly is: 'ok'; readonly entries: readonly UsageEntry[] }
  /** Redis is empty, behind the ledger, or another process than when the epoch began: it may lack data. */
  | { readonly is: 'lost' }
  /** Redis has another epoch than Postgres. */
  | { readonly is: 'epoch'; readonly epoch: number };

/**
 * Reads the next entries after the cursor, at most so many; opens a closed partition that has none left. The cursor
 * must be the one committed last: read it under the lock of its row, and keep that until the entries are committed.
 * Throws what ioredis throws.
 */
export async function drain(redis: RedisClient, cursor: Cursor, most: number): Promise<Drained> {
  const { partition: at, epoch, lastId } = cursor;
  const drained = await drainScript.run(redis, {
    keys: {
      partition: keys.partition(at),
      usage: keys.usage(at),
      leases: keys.leases(at),
      survivors: keys.survivors(at),
    },
    args: { epoch, lastId, most },
  });
  if (drained.is !== 'carry') return drained;
  await carry(redis, cursor, drained.holdIds);
  return drain(redis, cursor, most);
}

/** Holds named in one script call. */
const CARRY_MOST = 1_000;

async function carry(redis: RedisClient, { partition: at, epoch }: Cursor, holdIds: readonly string[]) {
  for (let i = 0; i < holdIds.length; i += CARRY_MOST) {
    await carryScript.run(redis, {
      keys: { partition: keys.partition(at), leases: keys.leases(at), survivors: keys.survivors(at) },
      args: { epoch },
      each: holdIds.slice(i, i + CARRY_MOST).map((holdId) => ({ hold: keys.hold(at, holdId), holdId })),
    });
  }
}

/**
 * Drops the entries up to the cursor, which the ledger has committed. Throws what ioredis throws.
 * @param repeated those of them that the ledger had before, under the same hold id; after a trim that failed, also
 *   those meant for it
 */
export async function trim(
  redis: RedisClient,
  { partition: at, epoch, lastId }: Cursor,
  repeated: readonly UsageEntry[] = [],
): Promise<void> {
  await trimScript.run(redis, {
    keys: { partition: keys.partition(at), usage: keys.usage(at) },
    args: { epoch, lastId },
    each: repeated.flatMap(({ id, budgetIds, uses, costMicrousd: cost = 0, tokens }) =>
      budgetIds.map((budgetId) => ({
        budget: keys.budget(at, budgetId),
        entryId: id,
        uses,
        cost,
        tokens,
      })),
    ),
  });
}

/** Begins a new epoch, closed until the stream is drained. Postgres must have committed it. Throws what ioredis throws. */
export async function reopen(redis: RedisClient, partition: number, epoch: number): Promise<void> {
  await reopenScript.run(redis, {
    keys: { partition: keys.partition(partition), survivors: keys.survivors(partition) },
    args: { epoch },
  });
}

/** The settled calls that are in no ledger yet. */
export type UsageStreams = {
  readonly entries: number;
  /** Those of the partition that has most. */
  readonly fullest: number;
  /** The age of the oldest one by the clock of Redis, in ms; 0 if there is none. */
  readonly oldestMs: number;
};

/** Looks at the usage streams of the partitions 0 to `partitions` - 1. Throws what ioredis throws. */
export async function readUsageStreams(redis: RedisClient, partitions: number): Promise<UsageStreams> {
  const streams = Array.from({ length: partitions }, (_, at) => keys.usage(at));
  const [lengths, firsts, [seconds]] = await Promise.all([
    Promise.all(streams.map((stream) => redis.xlen(stream))),
    Promise.all(streams.map((stream) => redis.xrange(stream, '-', '+', 'COUNT', 1))),
    redis.time(),
  ]);
  // A stream id starts with the clock of Redis in milliseconds.
  const times = firsts.flatMap(([first]) => (first ? [Number.parseInt(first[0], 10)] : []));
  return {
    entries: lengths.reduce((sum, length) => sum + length, 0),
    fullest: Math.max(...lengths),
    oldestMs: times.length === 0 ? 0 : Math.max(0, Number(seconds) * 1_000 - Math.min(...times)),
  };
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
    tokens: Number(text('tokens')),
    outcome: text('outcome') as UsageEntry['outcome'],
    record: text('record'),
  };
}
