import { setTimeout as sleep } from 'node:timers/promises';
import { type GrantRef, keys, type RedisClient, readFigures } from '@presign/limits';
import { budgets, grants } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { eq } from 'drizzle-orm';

/** The observed states of a budget while calls were under way. */
export type Samples = {
  readonly count: number;
  /** The most that was settled and held together, in microdollars. */
  readonly most: number;
  /** Moments at which settled and held together were above the limit. */
  readonly over: number;
  /** The most settled calls that waited in Redis for the ledger, in this URL's partition. */
  readonly backlog: number;
  /** The amounts held, by hold id. */
  readonly held: ReadonlyMap<string, number>;
  /** When each epoch of the partition was first seen, Unix ms: a new one begins when a loss is detected. */
  readonly epochs: ReadonlyMap<string, number>;
};

export type Sampler = { readonly samples: Samples; readonly stop: () => Promise<void> };

/** Where the figures of an issued URL stand. */
export async function refOf(db: Database, url: string): Promise<GrantRef> {
  const id = grantIdOf(url);
  const [row] = await db
    .select()
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(eq(grants.id, id));
  if (!row) throw new Error('no such grant');
  return {
    id,
    partition: row.budgets.partition,
    accountId: row.grants.accountId,
    credentialId: row.grants.credentialId ?? '',
    budgetIds: [row.budgets.id],
  };
}

/** The grant that a URL's token names; its payload is followed by a signature of 64 bytes. */
export function grantIdOf(url: string): string {
  const [payload = ''] = (url.split('/t/v4.public.')[1] ?? '').split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').subarray(0, -64).toString()) as { jti: string }).jti;
}

/** Reads a budget again and again, as fast as Redis answers; through an outage it goes on trying. */
export function startSampler(redis: RedisClient, ref: GrantRef): Sampler {
  const held = new Map<string, number>();
  const epochs = new Map<string, number>();
  const samples = { count: 0, most: 0, over: 0, backlog: 0, held, epochs };
  let stopped = false;
  const look = async () => {
    const [budget] = await readFigures(redis, ref);
    if (!budget) return;
    samples.count++;
    const sum = budget.settledMicrousd + budget.heldMicrousd;
    samples.most = Math.max(samples.most, sum);
    if (sum > (budget.costLimitMicrousd ?? Number.MAX_SAFE_INTEGER)) samples.over++;
  };
  const lookAside = async () => {
    const epoch = await redis.hget(keys.partition(ref.partition), 'epoch');
    if (epoch !== null && !epochs.has(epoch)) epochs.set(epoch, Date.now());
    samples.backlog = Math.max(samples.backlog, await redis.xlen(keys.usage(ref.partition)));
    await noteHolds(redis, ref, held);
  };
  const again = async (work: () => Promise<void>, pauseMs: number) => {
    while (!stopped) {
      await work().catch(() => {});
      await sleep(pauseMs);
    }
  };
  const running = Promise.all([again(look, 1), again(lookAside, 10)]);
  return {
    samples,
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}

async function noteHolds(
  redis: RedisClient,
  { partition }: GrantRef,
  held: Map<string, number>,
): Promise<void> {
  const ids = await redis.zrange(keys.leases(partition), 0, '-1');
  const fresh = ids.filter((id) => !held.has(id));
  const amounts = await Promise.all(fresh.map((id) => redis.hget(keys.hold(partition, id), 'amount')));
  for (const [i, id] of fresh.entries()) {
    if (amounts[i] !== null) held.set(id, Number(amounts[i]));
  }
}
