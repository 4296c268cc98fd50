import type { JumpWatch } from './health.ts';
import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { figure, flag, number, numbers, oneOf, optional, texts } from './reply.ts';
import { script } from './script.ts';

/** `lua/settle.lua`. Both `settle` and `sweep` run it. */
export const settleScript = script('settle', {
  keys: ['partition', 'hold', 'leases', 'usage', 'survivors'],
  args: [
    'holdId',
    'mode',
    'uses',
    'cost',
    'epoch',
    'grantId',
    'budgetIds',
    'record',
    'lastCall',
    'usedTokens',
    'wasSent',
  ],
  each: { keys: ['budget'] },
  reply: oneOf({
    settled: { usesLeft: optional(figure), microusdLeft: optional(figure), isKept: flag },
    gone: {},
    not_due: {},
    other_budgets: {},
  }),
});

const renewScript = script('renew', {
  keys: ['leases'],
  args: ['leaseMs'],
  each: { args: ['holdId'] },
  reply: number,
});
const narrowScript = script('narrow', {
  keys: ['partition', 'hold'],
  args: ['amount', 'budgetIds'],
  each: { keys: ['budget'] },
  reply: number,
});
const dueScript = script('due', {
  args: ['most'],
  each: { keys: ['leases'] },
  reply: oneOf({ due: { nowMs: figure, at: numbers, holdIds: texts } }),
});

/** The epoch of a call whose admission was never answered. The call is refunded if it was counted, and can no longer be counted later. */
export const UNHEARD = '';

/** How a call ended. */
export type Outcome = {
  readonly holdId: string;
  /** Epoch of its admission, or `UNHEARD`. */
  readonly epoch: string;
  /** Uses to keep: the admitted uses, or 0 to return them unless the grant has had too many refunds. */
  readonly uses: number;
  /** Undefined: not known. */
  readonly costMicrousd: number | undefined;
  /** Input and output together. Undefined: unknown, so no tokens of its minute are returned. */
  readonly usedTokens?: number | undefined;
  /** False: the provider certainly never got the call, so its refund does not count toward the grant's bound. */
  readonly wasSent?: boolean;
  /** JSON, for the ledger. */
  readonly record: string;
  /** How the call failed, as JSON, for later refusals. Undefined if it did not fail. */
  readonly lastCall?: string | undefined;
};

/** The uses and money that the grant has left after settling. Undefined: unlimited. */
export type Left = {
  readonly uses: number | undefined;
  readonly microusd: number | undefined;
  /** The call keeps its uses and is charged its hold, because its grant has had too many refunds. */
  readonly isKept: boolean;
};

/**
 * Ends a hold and appends the call to the usage stream, in one atomic step. Settling twice changes nothing. It charges
 * the budgets of the hold, even if the grant has other budgets by now. A call whose admission was never answered is
 * refunded and not added to the stream.
 * @returns undefined if the hold was settled before, by an earlier try or in full when its lease expired, and for a
 * call whose admission was never answered. Throws what ioredis throws.
 */
export async function settle(
  redis: RedisClient,
  grant: GrantRef,
  outcome: Outcome,
): Promise<Left | undefined> {
  const { holdId, costMicrousd: cost, epoch, uses, usedTokens, wasSent = true, record, lastCall } = outcome;
  const { id: grantId, partition } = grant;
  const budgetIds = grant.budgetIds.join(',');
  const { keys, each } = settleKeys(partition, holdId, grant.budgetIds);
  const args = {
    holdId,
    mode: 'settle',
    uses,
    cost,
    epoch,
    grantId,
    budgetIds,
    record,
    lastCall,
    usedTokens,
    wasSent: wasSent && epoch !== UNHEARD ? 1 : 0,
  };
  const reply = await settleScript.run(redis, { keys, each, args });
  if (reply.is === 'other_budgets') {
    const budgetIds = await heldBudgets(redis, partition, holdId);
    return budgetIds && settle(redis, { ...grant, budgetIds }, outcome);
  }
  if (reply.is !== 'settled') return undefined;
  return { uses: reply.usesLeft, microusd: reply.microusdLeft, isKept: reply.isKept };
}

/** Frees the `concurrent_calls` places of a charged call. A second call changes nothing. Throws what ioredis throws. */
export async function leave(redis: RedisClient, grant: GrantRef, chargeId: string): Promise<void> {
  await settleScript.run(redis, {
    ...settleKeys(grant.partition, chargeId, grant.budgetIds),
    args: { ...NOTHING_SAID, holdId: chargeId, mode: 'leave' },
  });
}

/**
 * Lowers the hold of a running call to this amount, if it is higher. If this throws, the caller must still charge no more
 * than the amount, because Redis may have lowered the hold.
 * @returns how many microdollars it freed. Throws what ioredis throws.
 */
export const narrow = (
  redis: RedisClient,
  { partition, budgetIds }: GrantRef,
  holdId: string,
  amountMicrousd: number,
): Promise<number> =>
  narrowScript.run(redis, {
    keys: { partition: keys.partition(partition), hold: keys.hold(partition, holdId) },
    args: { amount: amountMicrousd, budgetIds: budgetIds.join(',') },
    each: budgetIds.map((id) => ({ budget: keys.budget(partition, id) })),
  });

/** Extends the leases of one partition's holds; returns how many of them are still held. */
export const renew = (
  redis: RedisClient,
  partition: number,
  leaseMs: number,
  holdIds: readonly string[],
): Promise<number> =>
  renewScript.run(redis, {
    keys: { leases: keys.leases(partition) },
    args: { leaseMs },
    each: holdIds.map((holdId) => ({ holdId })),
  });

/**
 * Extends the leases of these holds, by partition, with one script a partition.
 * @param renewed gets each partition that answered
 * @returns how many partitions did not answer
 */
export async function renewAll(
  redis: RedisClient,
  leaseMs: number,
  held: Iterable<readonly [partition: number, holdIds: Iterable<string>]>,
  renewed: (partition: number) => void = () => {},
): Promise<number> {
  const turns = Array.from(held, async ([at, holdIds]) => {
    await renew(redis, at, leaseMs, [...holdIds]);
    renewed(at);
  });
  const done = await Promise.allSettled(turns);
  return done.filter((each) => each.status === 'rejected').length;
}

/** The number of holds of a partition that are settled at once. It is small, so that calls do not wait long. */
const SWEEP_BATCH = 100;

/**
 * Settles in full the holds of a group of partitions (`groupsOf`) whose lease has expired by Redis' clock, unless `watch` detects that the
 * clock has just jumped. A hold that cannot be settled stays for the next sweep, and does not block others. Returns how many it settled.
 */
export async function sweep(
  redis: RedisClient,
  partitions: readonly number[],
  watch: JumpWatch = () => true,
): Promise<number> {
  let count = 0;
  for (let left = partitions; left.length > 0; ) {
    const askedMs = performance.now();
    const { nowMs, at, holdIds } = await dueScript.run(redis, {
      args: { most: SWEEP_BATCH },
      each: left.map((partition) => ({ leases: keys.leases(partition) })),
    });
    const mayEnd = new Set(left.filter((partition) => watch(partition, { askedMs, redisMs: nowMs })));
    const due = holdIds
      .map((holdId, i) => ({ holdId, partition: left[(at[i] ?? 0) - 1] ?? -1 }))
      .filter(({ partition }) => mayEnd.has(partition));
    const ended = await Promise.allSettled(
      due.map(({ partition, holdId }) => expire(redis, partition, holdId)),
    );
    count += ended.filter((each) => each.status === 'fulfilled' && each.value).length;
    const settled = new Map<number, number>();
    for (const [i, { partition }] of due.entries())
      if (ended[i]?.status === 'fulfilled') settled.set(partition, (settled.get(partition) ?? 0) + 1);
    left = left.filter((partition) => settled.get(partition) === SWEEP_BATCH);
  }
  return count;
}

/** Settles a hold in full if its lease has expired by Redis' clock; returns whether it did. */
export async function expire(redis: RedisClient, partition: number, holdId: string): Promise<boolean> {
  const budgetIds = (await heldBudgets(redis, partition, holdId)) ?? [];
  const { is } = await settleScript.run(redis, {
    ...settleKeys(partition, holdId, budgetIds),
    // The script reads everything else from the hold itself.
    args: { ...NOTHING_SAID, holdId, mode: 'expire' },
  });
  return is === 'settled';
}

/** The budgets of a hold. Undefined if Redis has no such hold. */
async function heldBudgets(redis: RedisClient, partition: number, holdId: string) {
  const budgetIds = await redis.hget(keys.hold(partition, holdId), 'budgets');
  return budgetIds?.split(',');
}

const NOTHING_SAID = {
  uses: undefined,
  cost: undefined,
  epoch: undefined,
  grantId: undefined,
  budgetIds: undefined,
  record: undefined,
  lastCall: undefined,
  usedTokens: undefined,
  wasSent: undefined,
};

const settleKeys = (partition: number, holdId: string, budgetIds: readonly string[]) => ({
  keys: {
    partition: keys.partition(partition),
    hold: keys.hold(partition, holdId),
    leases: keys.leases(partition),
    usage: keys.usage(partition),
    survivors: keys.survivors(partition),
  },
  each: budgetIds.map((id) => ({ budget: keys.budget(partition, id) })),
});
