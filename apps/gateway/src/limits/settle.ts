import { type GrantRef, type Left, leave, type Outcome, settle, UNHEARD } from '@presign/limits';
import { causeOf } from '@presign/service';
import type { Logger } from 'pino';
import type { Leases } from './leases.ts';
import { OUTAGE_MS, type RetryDeps, retry } from './retry.ts';

type Deps = RetryDeps & { readonly leases: Leases; readonly log: Logger };

/**
 * Settles a call. While Redis does not answer, it tries again for an hour, and the lease of the hold is renewed meanwhile. Right after
 * Redis answers again, no sweep ends a hold (see `watchForJumps`), so the settle arrives first. After that hour a sweep settles the call in
 * full, so a call is never lost.
 * @returns what the grant has left
 */
export async function settleCall(
  deps: Deps,
  requestId: string,
  ref: GrantRef,
  outcome: Outcome,
): Promise<Left | undefined> {
  const { redis, leases, log } = deps;
  const isHeard = outcome.epoch !== UNHEARD;
  const named = { request_id: requestId, grant: ref.id, hold: outcome.holdId };
  let left: Left | undefined;
  try {
    const run = () => settle(redis, ref, outcome);
    left = await retry(deps, ref, { run, giveUpMs: OUTAGE_MS, bytes: outcome.record.length });
    if (left?.isKept) log.warn(named, 'charged in full: this grant got too many refused calls back');
    // This is the only sign of a call that Redis lost before the loss was detected.
    if (!left && isHeard) log.warn(named, 'settled before, or lost');
  } catch (error) {
    log.error({ ...named, ...causeOf(error) }, 'not settled: the lease will run out');
  }
  leases.remove(outcome.holdId);
  return left;
}

/** Frees the `concurrent_calls` places of a charged call. While Redis does not answer, it tries again for an hour. */
export async function leaveCall(deps: Deps, ref: GrantRef, chargeId: string): Promise<void> {
  const { redis, leases, log } = deps;
  const run = () => leave(redis, ref, chargeId);
  await retry(deps, ref, { run, giveUpMs: OUTAGE_MS, bytes: 0 }).catch((error) =>
    log.error({ grant: ref.id, hold: chargeId, ...causeOf(error) }, 'not left: the lease will run out'),
  );
  leases.remove(chargeId);
}
