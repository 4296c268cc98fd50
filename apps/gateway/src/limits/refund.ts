import { type Charge, forestall, type GrantRef, type Refund, refund } from '@presign/limits';
import type { GatewayDeps } from '../deps.ts';
import { retry } from './retry.ts';

type Deps = Pick<GatewayDeps, 'redis' | 'log'>;

/** Redis forgets a charge after 5 minutes: by then no refund can find it. */
const GIVE_UP_MS = 240_000;

/** Gives a charge back, or part of it, once. While Redis does not answer, it tries again for 4 minutes. */
export const refundCharge = (deps: Deps, ref: GrantRef, what: Refund): Promise<void> =>
  giveBack(deps, ref, what.chargeId, () => refund(deps.redis, ref, what));

/** Redis may have counted a charge whose answer never came: gives it back, whichever arrives first. */
export const forestallCharge = (deps: Deps, ref: GrantRef, what: Charge): Promise<void> =>
  giveBack(deps, ref, what.chargeId, () => forestall(deps.redis, ref, what));

async function giveBack({ log }: Deps, ref: GrantRef, chargeId: string, run: () => Promise<boolean>) {
  try {
    await retry(run, GIVE_UP_MS);
  } catch {
    log.error({ grant: ref.id, charge: chargeId }, 'a charge was not given back');
  }
}
