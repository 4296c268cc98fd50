import { createHash } from 'node:crypto';
import { type Admission, countCall, fixedHold } from './admit.ts';
import { type GrantRef, keys } from './keys.ts';
import type { RedisClient } from './redis.ts';
import { flag } from './reply.ts';
import { script } from './script.ts';

const refundScript = script('refund', {
  keys: ['partition', 'charge', 'usage'],
  args: ['refundId', 'mostUses', 'mostCost', 'grantId', 'budgetIds', 'record', 'wasSent'],
  each: { keys: ['budget'] },
  reply: flag,
});

/** A call of known price. */
export type Charge = {
  /** 128 random bits, hex: names this charge for good. */
  readonly chargeId: string;
  /** A charge without uses and cost says whether calls may pass, and counts for the rate limit alone. */
  readonly uses: number;
  readonly costMicrousd: number;
  /** How many calls count for the rate limit, free ones included. As many as uses when left out. */
  readonly calls?: number;
  /** The places that it takes among the calls under way. As many as calls when left out. */
  readonly places?: number;
  /** How long its calls stay under way unless the lease is renewed or they `leave`. Left out: they take no place. */
  readonly leaseMs?: number;
  /** JSON, for the ledger. */
  readonly record: string;
};

/** The part of a charge to give back. */
export type Refund = {
  readonly chargeId: string;
  /** The refund's id in the ledger: 128 bits in hex. Every attempt must use the same one. */
  readonly refundId: string;
  /** No more is given back than was charged. */
  readonly uses: number;
  readonly costMicrousd: number;
  /** False: the server certainly never got the call, so this refund does not count toward the grant's bound. */
  readonly wasSent?: boolean;
  /** JSON, for the ledger. */
  readonly record: string;
};

/**
 * Counts a call's uses and charges its cost in all budgets of its grant, or in none, and appends it to the usage
 * stream: one atomic round trip, without a `settle`. The same charge again within 5 minutes counts nothing.
 * Returns what `admit` returns. When it throws, Redis may have made the charge: see `forestall`.
 */
export const charge = (
  redis: RedisClient,
  grant: GrantRef,
  { chargeId, uses, calls = uses, places = calls, leaseMs, costMicrousd, record }: Charge,
): Promise<Admission> =>
  countCall(redis, grant, {
    mode: 'charge',
    id: chargeId,
    leaseMs,
    uses,
    calls,
    places: leaseMs === undefined ? 0 : places,
    hold: fixedHold(costMicrousd),
    worstTokens: 0,
    record,
  });

/**
 * Gives back what a charge took, or a part of it, once, as a ledger entry of its own, within 5 minutes of the
 * charge. For a charge that Redis does not know it gives nothing back, and voids the charge should it arrive late. Nor
 * does it give anything back to a grant that has had too much back: see `lua/shared/give-back.lua`.
 * @returns whether this try gave something back. Throws what ioredis throws.
 */
export const refund = (redis: RedisClient, grant: GrantRef, what: Refund): Promise<boolean> =>
  giveBack(redis, grant, what, what.wasSent === false ? 0 : 1);

function giveBack(redis: RedisClient, grant: GrantRef, what: Refund, wasSent: 0 | 1): Promise<boolean> {
  const at = grant.partition;
  const { chargeId, refundId, uses, costMicrousd, record } = what;
  return refundScript.run(redis, {
    keys: { partition: keys.partition(at), charge: keys.hold(at, chargeId), usage: keys.usage(at) },
    args: {
      refundId,
      mostUses: uses,
      mostCost: costMicrousd,
      grantId: grant.id,
      budgetIds: grant.budgetIds.join(','),
      record,
      wasSent,
    },
    each: grant.budgetIds.map((id) => ({ budget: keys.budget(at, id) })),
  });
}

/**
 * Ends a charge whose answer never came: gives it back if Redis made it, and voids it if it arrives later. The call was
 * not sent, so this does not count among what the grant got back.
 * @returns whether this try gave something back. Throws what ioredis throws.
 */
export const forestall = (redis: RedisClient, grant: GrantRef, what: Charge): Promise<boolean> =>
  giveBack(redis, grant, { ...what, refundId: refundIdOf(what.chargeId) }, 0);

/** Derived from the charge's id, so that the ledger counts two tries once even if Redis lost the first. */
const refundIdOf = (chargeId: string) =>
  createHash('sha256').update(`refund of ${chargeId}`).digest('hex').slice(0, 32);
