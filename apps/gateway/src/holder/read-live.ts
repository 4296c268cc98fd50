import type { IncomingMessage } from 'node:http';
import { type BudgetFigures, findEnds, readEnd, readFigures } from '@presign/limits';
import type { Refusal } from '@presign/schema';
import type { CallReport } from '../call-report.ts';
import type { ClientAddress } from '../grant/bind.ts';
import { LOADS_MAX, loadGrantOnce, loadPolicyFor, type PolicyDeps } from '../grant/load-policy.ts';
import type { Policy } from '../grant/policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import { outageRefusal, UNAVAILABLE } from '../http/refuse.ts';

/** A grant as its holder may see it. */
export type Live = {
  /** The grant's own budget. */
  readonly own: BudgetFigures;
  /** The visible budgets that it shares with other URLs. */
  readonly visible: readonly BudgetFigures[];
  readonly isRevoked: boolean;
  readonly endsMs: number;
};

/** Reads the policy and the live figures of a grant, for a holder whose origin and address may call it. */
export async function readForHolder<G extends VerifiedGrant>(
  deps: PolicyDeps & { readonly clientAddress: ClientAddress },
  report: CallReport,
  incoming: IncomingMessage,
  grant: G,
): Promise<
  { readonly grant: G; readonly policy: Policy; readonly live: Live } | { readonly refusal: Refusal }
> {
  const loaded = await loadPolicyFor(deps, report, incoming, grant);
  if ('refusal' in loaded) return loaded;
  const { policy } = loaded;
  const read = await readLive(deps, report.requestId, grant, policy);
  return 'refusal' in read ? read : { grant, policy, live: read.live };
}

/** Reads the live figures of a grant. They show its own limits, and those of visible budgets alone. */
export async function readLive(
  deps: PolicyDeps,
  requestId: string,
  grant: VerifiedGrant,
  { ref }: Policy,
): Promise<{ live: Live } | { refusal: Refusal }> {
  try {
    for (let i = 0; i < LOADS_MAX; i++) {
      const asked = [
        readFigures(deps.redis, ref),
        findEnds(deps.redis, ref.partition, [ref]),
        readEnd(deps.redis, ref),
      ] as const;
      const [[own, ...others], [end], ends = grant.expiresAtMs] = await Promise.all(asked);
      // After an extension, the token of the old URL ends before the grant.
      const endsMs = Math.min(grant.expiresAtMs, ends);
      // The account may be resumed, so the URL is not revoked.
      if (end?.why === 'suspended') return { refusal: { code: 'account_suspended' } };
      const isOver = (endsMs: number | undefined) => endsMs !== undefined && endsMs <= deps.now();
      const visible = others.flatMap((each) => (each?.visible && !isOver(each.endsMs) ? [each] : []));
      if (own) return { live: { own, visible, isRevoked: end?.why === 'revoked', endsMs } };
      // Redis has lost the grant, or has figures from before a loss of data.
      const loaded = await loadGrantOnce(deps, grant);
      if ('refusal' in loaded) return loaded;
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}
