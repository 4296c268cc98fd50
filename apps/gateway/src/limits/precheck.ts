import { checkGrant } from '@presign/limits';
import type { Refusal } from '@presign/schema';
import type { Policy } from '../grant/policy.ts';
import type { VerifiedGrant } from '../grant/verify.ts';
import type { Turns } from '../share/turns.ts';
import { type CountDeps, count } from './admit.ts';

type Asked = {
  readonly grant: VerifiedGrant;
  readonly policy: Policy;
  readonly uses: 0 | 1;
  /** The call has a large body to read, or one of unknown size. */
  readonly readsMuch: boolean;
};

/**
 * Refuses a call before its body is read, if too many answers of the URL wait or a large body would be refused anyway. Asking Redis takes a
 * round trip, so it is done only for large bodies. It counts nothing.
 */
export function precheck(
  deps: CountDeps & { readonly turns: Turns },
  requestId: string,
  { grant, policy, uses, readsMuch }: Asked,
): Refusal | undefined | Promise<Refusal | undefined> {
  const early = deps.turns.check(grant.id);
  if (early || !readsMuch) return early;
  const ask = { uses, spends: policy.costLimited && uses > 0 };
  return count(deps, requestId, grant, policy, (ref) => checkGrant(deps.redis, ref, ask)).then((counted) =>
    'refusal' in counted ? counted.refusal : undefined,
  );
}
