import type { Left } from '@presign/limits';
import { revokeGrant } from '@presign/limits';
import type { LastCall } from '@presign/schema';
import type { Admitted } from '../limits/admit.ts';
import { settleCall } from '../limits/settle.ts';
import { surelyUnsent } from '../limits/unsent.ts';
import { takeUnsent } from '../share/read-quota.ts';
import { disprove } from './disproved.ts';
import { type Charge, judge, lastCallOf } from './judge-end.ts';
import type { LlmDeps } from './llm-deps.ts';
import type { Metered } from './meter.ts';
import { type Call, givesBack, type Plan } from './plan.ts';
import { endedRecord, endOf } from './record.ts';
import type { Sent } from './send.ts';
import { checkCount, type Tight } from './tight-hold.ts';

/** How long an answer waits for the return of its use, so that an immediate retry sees it. */
const GIVING_BACK_MS = 1_000;

/** How long the last byte waits for settling under a spend limit. */
const SETTLING_MS = 50;

/** The parts of an admitted call that are needed at its end. */
export type Ending = Omit<Call, 'incoming' | 'outgoing' | 'bodyMemory' | 'isDecoded'> & {
  readonly incoming: Pick<Call['incoming'], 'headers'>;
  readonly outgoing: Pick<Call['outgoing'], 'destroyed'>;
};

type Ended = { readonly sent: Sent; readonly metered: Metered; readonly admitted: Admitted };

/** Charges, settles and records a call that has ended. It waits for the settle as long as the end of an answer waits. */
export async function endCall(
  deps: LlmDeps,
  call: Ending,
  tight: Tight,
  { sent, metered, admitted }: Ended,
): Promise<{ readonly charge: Charge; readonly left: Left | undefined }> {
  const { grant, policy, holdId, plan, outgoing } = call;
  const { heldMicrousd } = tight.admitted;
  const charge = judge(call, admitted, sent, metered);
  checkCount(deps, grant, plan, tight, charge);
  const { uses, costMicrousd, usedTokens } = charge;
  const failure = lastCallOf(sent, outgoing.destroyed, deps.now());
  const record = endedRecord(call, { sent, failure, charge, heldMicrousd });
  const lastCall = failure && JSON.stringify(failure);
  const wasSent = !surelyUnsent(sent);
  if (!wasSent) takeUnsent(deps.readQuota, grant);
  // biome-ignore format: one line
  const outcome = { holdId, epoch: admitted.epoch, uses, costMicrousd, usedTokens, wasSent, record, lastCall };
  const settled = settleCall(deps, call.requestId, policy.ref, outcome);
  if (charge.overrunMicrousd > 0) deps.underWay.track(endOverrun(deps, call, charge));
  const left = await inTime(settled, waitForSettle(deps, plan, uses, failure));
  // The call no longer waits for it.
  if (!left) deps.underWay.track(settled);
  const charged = left?.isKept
    ? { ...charge, uses: 1 as const, costMicrousd: admitted.heldMicrousd }
    : charge;
  call.report.end = endOf(call, sent, failure, charged, heldMicrousd);
  return { charge, left };
}

/**
 * How long an answer's end waits for settling, in ms. A holder with a returned use or a spend limit may call again at once, and must not be
 * refused because of this call's own hold. A refused retry must find the reason why this call failed.
 */
function waitForSettle(
  { settlingMs = SETTLING_MS }: LlmDeps,
  plan: Plan,
  uses: number,
  failure: LastCall | undefined,
): number {
  if (uses === 0) return Math.max(GIVING_BACK_MS, settlingMs);
  return givesBack(plan) || failure ? settlingMs : 0;
}

/** Clears its timer when the work ends. Otherwise thousands of timers a second would each wake the event loop (2 µs of a call). */
function inTime<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  if (ms === 0) return Promise.resolve(undefined);
  return new Promise((resolve, reject) => {
    const late = setTimeout(resolve, ms, undefined);
    const end =
      <R>(settle: (result: R) => void) =>
      (result: R) => {
        clearTimeout(late);
        settle(result);
      };
    work.then(end(resolve), end(reject));
  });
}

/** Revokes a grant whose call cost more than its hold, because then a price or a bound is wrong. */
async function endOverrun(
  deps: LlmDeps,
  call: Ending,
  { overrunMicrousd, disproves }: Charge,
): Promise<void> {
  const { grant, plan } = call;
  const { id, provider } = grant;
  if (disproves) disprove(deps, call);
  deps.log.error(
    { grant: id, provider: provider.id, model: plan.model, overrun: overrunMicrousd },
    'cost over its hold',
  );
  await revokeGrant(deps.redis, grant).catch(() =>
    deps.log.error({ grant: id }, 'grant not ended after an overrun'),
  );
}
