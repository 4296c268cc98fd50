import { type Charge, forestall, type GrantRef, type Refund, refund } from '@presign/limits';
import type { Logger } from 'pino';
import { OUTAGE_MS, type RetryDeps, retry } from './retry.ts';

type Deps = RetryDeps & { readonly log: Logger };

/** Redis forgets a charge after 5 minutes: by then no refund can find it. */
const GIVE_UP_MS = 240_000;

/** Gives a charge back, or part of it, once. While Redis does not answer, it tries again for 4 minutes. */
export const refundCharge = (deps: Deps, ref: GrantRef, what: Refund): Promise<void> =>
  giveBack(deps, ref, what, () => refund(deps.redis, ref, what), GIVE_UP_MS);

/** Redis may have counted a charge whose answer never came: gives it back, whichever arrives first. */
export const forestallCharge = (deps: Deps, ref: GrantRef, what: Charge): Promise<void> =>
  giveBack(deps, ref, what, () => forestall(deps.redis, ref, what), OUTAGE_MS);

async function giveBack(
  deps: Deps,
  ref: GrantRef,
  { chargeId, record }: Pick<Charge, 'chargeId' | 'record'>,
  run: () => Promise<boolean>,
  giveUpMs: number,
) {
  try {
    await retry(deps, ref, { run, giveUpMs, bytes: record.length });
  } catch {
    deps.log.error({ grant: ref.id, charge: chargeId }, 'a charge was not given back');
  }
}
