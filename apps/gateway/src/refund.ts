import { setTimeout as sleep } from 'node:timers/promises';
import { type Charge, forestall, type GrantRef, type Refund, refund } from '@presign/limits';
import type { GatewayDeps } from './app.ts';

type Deps = Pick<GatewayDeps, 'redis' | 'log'>;

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 5_000;
/** After this the scripts know no more of the charge. */
const GIVE_UP_MS = 240_000;

/** Gives a charge back, or part of it. Twice is once. */
export const refundCharge = (deps: Deps, ref: GrantRef, what: Refund): Promise<void> =>
  insist(deps, ref, what.chargeId, () => refund(deps.redis, ref, what));

/** Redis may have counted a charge whose answer we never heard: it is given back, whichever arrives first. */
export const forestallCharge = (deps: Deps, ref: GrantRef, what: Charge): Promise<void> =>
  insist(deps, ref, what.chargeId, () => forestall(deps.redis, ref, what));

/** Goes on trying while Redis does not answer. */
async function insist(
  { log }: Deps,
  ref: GrantRef,
  chargeId: string,
  ask: () => Promise<unknown>,
): Promise<void> {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      await ask();
      return;
    } catch {
      if (Date.now() + wait > giveUpAt) break;
      await sleep(wait);
    }
  }
  log.error({ grant: ref.id, charge: chargeId }, 'a charge was not given back');
}
