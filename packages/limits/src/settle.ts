import { type GrantRef, keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('settle');

/** For a call whose admission was never answered: it is given back if it was counted, and shall not be later. */
export const UNHEARD = '';

/** What a call came to. */
export type Outcome = {
  readonly holdId: string;
  /** Epoch of its admission, or `UNHEARD`. */
  readonly epoch: string;
  /** Uses to keep: those admitted, or 0 to give them back. */
  readonly uses: number;
  /** Undefined: not known. */
  readonly costMicrousd: number | undefined;
  /** For the ledger: JSON. */
  readonly record: string;
};

/** What the grant has left after settling; undefined: unlimited. */
export type Left = { readonly uses: number | undefined; readonly microusd: number | undefined };

/**
 * Ends a hold and appends the call to the usage stream, in one atomic step. Settling twice changes nothing.
 * @returns undefined when the hold was settled before (by an earlier try, or in full when its lease ran out).
 */
export async function settle(
  redis: RedisClient,
  grant: GrantRef,
  outcome: Outcome,
): Promise<Left | undefined> {
  const { holdId, uses, costMicrousd, epoch, record } = outcome;
  const cost = costMicrousd ?? '';
  const args = [holdId, 'settle', uses, cost, epoch, grant.id, grant.budgetIds.join(','), record];
  const names = settleKeys(grant.partition, holdId, grant.budgetIds);
  const [is, usesLeft, microusd] = (await run(redis, names, args)) as [string, string, string];
  return is === 'settled' ? { uses: limited(usesLeft), microusd: limited(microusd) } : undefined;
}

const limited = (left: string) => (Number(left) < 0 ? undefined : Number(left));

/**
 * Settles a hold in full if its lease has run out by Redis' own clock.
 * @returns whether it did.
 */
export async function expire(redis: RedisClient, partition: number, holdId: string): Promise<boolean> {
  const budgets = await redis.hget(keys.hold(partition, holdId), 'budgets');
  const names = settleKeys(partition, holdId, budgets?.split(',') ?? []);
  const [is] = (await run(redis, names, [holdId, 'expire', '', '', '', '', '', ''])) as [string];
  return is === 'settled';
}

const settleKeys = (partition: number, holdId: string, budgetIds: readonly string[]) => [
  keys.partition(partition),
  keys.hold(partition, holdId),
  keys.leases(partition),
  keys.usage(partition),
  keys.survivors(partition),
  ...budgetIds.map((id) => keys.budget(partition, id)),
];
