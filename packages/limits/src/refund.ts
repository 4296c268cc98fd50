import { createHash } from 'node:crypto';
import type { Charge } from './charge.ts';
import { type GrantRef, keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('refund');

/** What is to be given back of a charge. */
export type Refund = {
  readonly chargeId: string;
  /** 128 bits, hex, the same at every try: names the refund in the ledger for good. */
  readonly refundId: string;
  /** No more is given back than was charged. */
  readonly uses: number;
  readonly costMicrousd: number;
  /** For the ledger: JSON. */
  readonly record: string;
};

/**
 * Gives back what a charge took, or a part of it, once, as a ledger entry of its own, within 5 minutes of the
 * charge. A charge that Redis does not know, or no longer, gives nothing back, and is void should it arrive late.
 * @returns whether this try gave something back.
 */
export async function refund(redis: RedisClient, grant: GrantRef, what: Refund): Promise<boolean> {
  const at = grant.partition;
  const names = [
    keys.partition(at),
    keys.hold(at, what.chargeId),
    keys.usage(at),
    ...grant.budgetIds.map((id) => keys.budget(at, id)),
  ];
  const { refundId, uses, costMicrousd, record } = what;
  const args = [refundId, uses, costMicrousd, grant.id, grant.budgetIds.join(','), record];
  return (await run(redis, names, args)) === 1;
}

/**
 * For a charge whose answer never came: it is given back if it was made, and counts nothing if it arrives later.
 * @returns whether this try gave something back.
 */
export const forestall = (redis: RedisClient, grant: GrantRef, what: Charge): Promise<boolean> =>
  refund(redis, grant, { ...what, refundId: refundIdOf(what.chargeId) });

/** Made from the charge's, so that the ledger counts two tries once even if Redis lost the first of them. */
const refundIdOf = (chargeId: string) =>
  createHash('sha256').update(`refund of ${chargeId}`).digest('hex').slice(0, 32);
