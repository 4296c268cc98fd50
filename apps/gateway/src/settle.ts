import { setTimeout as sleep } from 'node:timers/promises';
import { type GrantRef, type Left, type Outcome, settle, UNHEARD } from '@presign/limits';
import { causeOf } from '@presign/schema';
import type { GatewayDeps } from './app.ts';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 5_000;

/**
 * Settles a call, and goes on trying while Redis does not answer, for as long as its lease could still be
 * kept alive; after that the sweep settles it in full, so a call is never lost.
 * @returns what the grant has left
 */
export async function settleCall(
  { redis, leases, leaseMs, log }: Pick<GatewayDeps, 'redis' | 'leases' | 'leaseMs' | 'log'>,
  requestId: string,
  ref: GrantRef,
  outcome: Outcome,
): Promise<Left | undefined> {
  const giveUpAt = Date.now() + leaseMs;
  const named = { request_id: requestId, grant: ref.id, hold: outcome.holdId };
  let left: Left | undefined;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      left = await settle(redis, ref, outcome);
      // The only sign of a call that Redis lost before the loss was noticed.
      if (!left && outcome.epoch !== UNHEARD) log.warn(named, 'settled before, or lost');
      break;
    } catch (error) {
      if (Date.now() + wait > giveUpAt) {
        log.error({ ...named, ...causeOf(error) }, 'not settled: the lease will run out');
        break;
      }
      await sleep(wait);
    }
  }
  leases.remove(ref.partition, outcome.holdId);
  return left;
}
