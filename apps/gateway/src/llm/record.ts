import type { CallRecord } from '@presign/schema';
import type { Call } from './call.ts';
import type { Charge } from './judge-end.ts';

/** The model's name is the holder's to write, and is kept with every call under way. */
const NAME_MAX_CHARS = 255;

/** What of a call beside its uses and cost goes into the ledger. */
export function callRecord(
  { policy, grant, plan, beganMs }: Pick<Call, 'policy' | 'grant' | 'plan' | 'beganMs'>,
  status?: number,
  charge?: Charge,
): string {
  const fields: CallRecord = {
    acc: policy.accountId,
    ses: grant.sessionId,
    grt: grant.id,
    prv: grant.provider.id,
    beg: beganMs,
    ...(policy.externalUser === undefined ? {} : { usr: policy.externalUser }),
    ...(plan.model === undefined ? {} : { mod: plan.model.slice(0, NAME_MAX_CHARS) }),
    ...(status === undefined ? {} : { sta: status }),
    ...(charge?.usage === undefined ? {} : tokensOf(charge.usage)),
    ...(charge && charge.overrunMicrousd > 0 ? { ovr: charge.overrunMicrousd } : {}),
  };
  return JSON.stringify(fields);
}

const tokensOf = ({ input_tokens, output_tokens }: Readonly<Record<string, number>>) => ({
  ...(Number.isSafeInteger(input_tokens) ? { inp: input_tokens } : {}),
  ...(Number.isSafeInteger(output_tokens) ? { out: output_tokens } : {}),
});
