import { type Charge, forestall, type GrantRef, type Refund, refund } from '@presign/limits';
import type { Logger } from 'pino';
import { OUTAGE_MS, type RetryDeps, retry } from './retry.ts';

type Deps = RetryDeps & { readonly log: Logger };

/** Redis deletes a charge after 5 minutes, and then no refund can find it. */
const GIVE_UP_MS = 240_000;

/** Refunds a charge or a part of it once. While Redis does not answer, it tries again for 4 minutes. */
export const refundCharge = (deps: Deps, ref: GrantRef, what: Refund): Promise<void> =>
  giveBack(deps, ref, what, () => refund(deps.redis, ref, what), GIVE_UP_MS);

/** Refunds a charge whose answer was lost, because Redis may have counted it. The charge and the refund may arrive in any order. */
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
