import { type GrantRef, type Left, leave, type Outcome, settle, UNHEARD } from '@presign/limits';
import { causeOf } from '@presign/schema';
import type { GatewayDeps } from '../deps.ts';
import { retry, UNHEARD_MS } from './retry.ts';

/**
 * Settles a call. While Redis does not answer, it tries again for as long as the call's lease can be kept. After that
 * the sweep settles the call in full, so a call is never lost. A call whose admission was never answered has no lease yet
 * while Redis is frozen, so it is tried for an hour.
 * @returns what the grant has left
 */
export async function settleCall(
  deps: Pick<GatewayDeps, 'redis' | 'leases' | 'leaseMs' | 'log' | 'doubts' | 'closing'>,
  requestId: string,
  ref: GrantRef,
  outcome: Outcome,
): Promise<Left | undefined> {
  const { redis, leases, leaseMs, log } = deps;
  const isHeard = outcome.epoch !== UNHEARD;
  const named = { request_id: requestId, grant: ref.id, hold: outcome.holdId };
  let left: Left | undefined;
  try {
    left = await retry(deps, ref, () => settle(redis, ref, outcome), isHeard ? leaseMs : UNHEARD_MS);
    if (left?.isKept) log.warn(named, 'charged in full: this grant got too many refused calls back');
    // The only sign of a call that Redis lost before the loss was noticed.
    if (!left && isHeard) log.warn(named, 'settled before, or lost');
  } catch (error) {
    log.error({ ...named, ...causeOf(error) }, 'not settled: the lease will run out');
  }
  leases.remove(outcome.holdId);
  return left;
}

/** Frees the places of a charged call. While Redis does not answer, it tries again until their lease ends. */
export async function leaveCall(
  deps: Pick<GatewayDeps, 'redis' | 'leases' | 'leaseMs' | 'log' | 'doubts' | 'closing'>,
  ref: GrantRef,
  chargeId: string,
): Promise<void> {
  const { redis, leases, leaseMs, log } = deps;
  await retry(deps, ref, () => leave(redis, ref, chargeId), leaseMs).catch((error) =>
    log.error({ grant: ref.id, hold: chargeId, ...causeOf(error) }, 'not left: the lease will run out'),
  );
  leases.remove(chargeId);
}
