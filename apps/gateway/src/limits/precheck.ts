import { checkGrant } from '@presign/limits';
import type { Refusal } from '@presign/schema';
import type { GatewayDeps } from '../deps.ts';
import type { Policy, PolicyDeps } from '../grant/policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import { checkQuota } from '../workers/read-quota.ts';
import { count } from './admit.ts';

type Asked = {
  readonly grant: VerifiedGrant;
  readonly policy: Policy;
  readonly uses: 0 | 1;
  /** A large body would be read, or one of unknown size. */
  readonly readsMuch: boolean;
};

/**
 * Refuses a call before its body is read: the URL has sent too much to read, or a large body would be refused in the end.
 * Asking Redis takes a round trip, so only large bodies are worth it. It counts nothing.
 */
export async function precheck(
  deps: PolicyDeps & Pick<GatewayDeps, 'readQuota'>,
  requestId: string,
  { grant, policy, uses, readsMuch }: Asked,
): Promise<Refusal | undefined> {
  const early = checkQuota(deps.readQuota, grant);
  if (early || !readsMuch) return early;
  const ask = { uses, spends: policy.costLimited && uses > 0 };
  const counted = await count(deps, requestId, grant, () => checkGrant(deps.redis, policy.ref, ask));
  return 'refusal' in counted ? counted.refusal : undefined;
}
