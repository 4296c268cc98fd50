import { type Admission, countCall, fixedHold } from './admission.ts';
import type { GrantRef } from './keys.ts';
import type { RedisClient } from './script.ts';

/** A call of known price. */
export type Charge = {
  /** 128 random bits, hex: names this charge for good. */
  readonly chargeId: string;
  /** With no uses and no cost nothing is counted: the answer tells whether calls may pass at all. */
  readonly uses: number;
  readonly costMicrousd: number;
  /** For the ledger: JSON. */
  readonly record: string;
};

/**
 * Counts a call's uses and charges its cost in all budgets of its grant, or in none, and appends it to the usage
 * stream: one atomic round trip that no `settle` follows. Sent again within 5 minutes it counts nothing.
 * Answers as `admit`; where this throws, the charge may have been made: see `forestall`.
 */
export const charge = (
  redis: RedisClient,
  grant: GrantRef,
  { chargeId, uses, costMicrousd, record }: Charge,
): Promise<Admission> =>
  countCall(redis, grant, {
    id: chargeId,
    leaseMs: undefined,
    uses,
    hold: fixedHold(costMicrousd),
    record,
  });
