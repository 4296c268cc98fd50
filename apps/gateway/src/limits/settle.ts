import { type GrantRef, type Left, type Outcome, settle, UNHEARD } from '@presign/limits';
import { causeOf } from '@presign/schema';
import type { GatewayDeps } from '../deps.ts';
import { retry } from './retry.ts';

/**
 * Settles a call. While Redis does not answer, it tries again for as long as the call's lease can be kept. After that
 * the sweep settles the call in full, so a call is never lost.
 * @returns what the grant has left
 */
export async function settleCall(
  { redis, leases, leaseMs, log }: Pick<GatewayDeps, 'redis' | 'leases' | 'leaseMs' | 'log'>,
  requestId: string,
  ref: GrantRef,
  outcome: Outcome,
): Promise<Left | undefined> {
  const named = { request_id: requestId, grant: ref.id, hold: outcome.holdId };
  let left: Left | undefined;
  try {
    left = await retry(() => settle(redis, ref, outcome), leaseMs);
    if (left?.isKept) log.warn(named, 'charged in full: this grant got too many refused calls back');
    // The only sign of a call that Redis lost before the loss was noticed.
    if (!left && outcome.epoch !== UNHEARD) log.warn(named, 'settled before, or lost');
  } catch (error) {
    log.error({ ...named, ...causeOf(error) }, 'not settled: the lease will run out');
  }
  leases.remove(outcome.holdId);
  return left;
}
