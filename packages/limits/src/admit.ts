import { type Admission, countCall, type Hold } from './admission.ts';
import type { GrantRef } from './keys.ts';
import type { RedisClient } from './script.ts';

/** What a call asks for. */
export type Ask = {
  /** 128 random bits, hex: names this admission for good. */
  readonly holdId: string;
  readonly uses: number;
  /** The most the call can cost, held until it is settled; undefined where no bound is known. */
  readonly hold: Hold | undefined;
  /** Until when the hold stands unless renewed. */
  readonly leaseMs: number;
  /** Kept with the hold, for the ledger, should this gateway die: JSON. */
  readonly record: string;
};

/**
 * Counts a call's uses and holds its worst cost in all budgets of its grant, or in none: one atomic round trip.
 * `unknown` asks for `openGrant` first. Throws what ioredis throws; the call must then not be let through.
 */
export const admit = (redis: RedisClient, grant: GrantRef, { holdId, ...ask }: Ask): Promise<Admission> =>
  countCall(redis, grant, { id: holdId, ...ask });
