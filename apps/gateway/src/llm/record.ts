import type { CallRecord, LastCall } from '@presign/schema';
import type { CallReport } from '../call-report.ts';
import { BLOCKED_HINT } from '../http/forward.ts';
import { failureOf, retryCountOf, timesOf, userAgentOf } from '../http/how-it-ended.ts';
import type { Charge } from './judge-end.ts';
import type { Call } from './plan.ts';
import type { Sent } from './send.ts';

/** The holder writes the model's name, and Redis stores it with every call under way. */
const NAME_MAX_CHARS = 255;

/** How an admitted call ended. */
type Ended = {
  readonly sent: Sent;
  readonly failure: LastCall | undefined;
  readonly charge: Charge;
  /** Held at its admission. */
  readonly heldMicrousd: number;
};

/** Fields that the ledger stores for a call in addition to its uses and cost. JSON omits undefined fields. */
type Fields = { readonly [F in keyof CallRecord]?: CallRecord[F] | undefined };

/** A call's record while it is in flight, as JSON. If its gateway dies, the ledger has only these fields. */
export function callRecord({
  requestId,
  policy,
  grant,
  plan,
  beganMs,
  place,
}: Pick<Call, 'requestId' | 'policy' | 'grant' | 'plan'> & {
  readonly beganMs: number;
  /** For a turn: its socket, and its number on the socket. */
  readonly place?: Pick<Fields, 'con' | 'trn'>;
}): string {
  const fields: Fields = {
    acc: policy.accountId,
    ses: grant.sessionId,
    grt: grant.id,
    rid: requestId,
    prv: grant.provider.id,
    knw: plan.knowledge,
    beg: beganMs,
    usr: policy.externalUser,
    mod: plan.model?.slice(0, NAME_MAX_CHARS),
    con: place?.con,
    trn: place?.trn,
  };
  return JSON.stringify(fields);
}

/** The record of a call that has ended: the record of the call in flight, plus how it ended. */
export function endedRecord(
  call: Pick<Call, 'record' | 'plan' | 'report'> & {
    readonly incoming: Pick<Call['incoming'], 'headers'>;
    readonly outgoing: Pick<Call['outgoing'], 'destroyed'>;
  },
  { sent, failure, charge, heldMicrousd }: Ended,
): string {
  const { record, report, incoming, outgoing } = call;
  const { fby, tot, own } = timesOf(report);
  // One literal without spreads, because V8 would reallocate the object for each field after a spread.
  const fields: Fields = {
    sta: 'status' in sent ? sent.status : undefined,
    inp: wholeNumber(charge.usage?.input_tokens),
    out: wholeNumber(charge.usage?.output_tokens),
    ovr: charge.overrunMicrousd > 0 ? charge.overrunMicrousd : undefined,
    hld: call.plan.hold && heldMicrousd,
    prc: charge.pricing && `${charge.pricing.origin.source}:${charge.pricing.origin.list ?? ''}`,
    lin: charge.lines?.map(({ unit, count, rate }) => [unit, count, rate] as [string, number, number]),
    cod: failureOf(sent, failure?.code, outgoing.destroyed),
    fby,
    tot,
    own,
    rty: retryCountOf(incoming.headers),
    agt: userAgentOf(incoming.headers),
  };
  const end = JSON.stringify(fields);
  const begun = charge.model === undefined ? record : withModel(record, charge.model);
  return `${begun.slice(0, -1)},${end.slice(1)}`;
}

/** The record of a call that a different model answered. */
const withModel = (record: string, model: string): string =>
  JSON.stringify({ ...(JSON.parse(record) as object), mod: model.slice(0, NAME_MAX_CHARS) });

const wholeNumber = (value: number | undefined) => (Number.isSafeInteger(value) ? value : undefined);

/** Reports how an admitted call ended: a fault when the provider was not reached, or when its key cannot be decrypted. */
export function endOf(
  { grant, plan }: Pick<Call, 'grant' | 'plan'>,
  sent: Sent,
  failure: LastCall | undefined,
  charge: Charge,
  heldMicrousd: number,
): CallReport['end'] {
  return {
    ended: sent.is,
    error: endError(sent),
    upstreamStatus: 'status' in sent ? sent.status : undefined,
    code: failure?.code,
    uses: charge.uses,
    costMicrousd: charge.costMicrousd,
    heldMicrousd: plan.hold && heldMicrousd,
    overrunMicrousd: charge.overrunMicrousd,
    inputTokens: charge.usage?.input_tokens,
    outputTokens: charge.usage?.output_tokens,
    doubt: charge.doubt,
    ...faultOf(sent, failure, grant.origin),
  };
}

function faultOf(
  sent: Sent,
  failure: LastCall | undefined,
  upstream: string,
): Pick<NonNullable<CallReport['end']>, 'fault'> {
  if (sent.is === 'unsealable') return { fault: { level: 'error', hint: UNSEALABLE_HINT } };
  const isEnded = sent.is === 'unanswered' && (sent.why === 'revoked' || sent.why === 'suspended');
  const isUnsent = sent.is === 'unsent' && failure?.code === 'upstream_unreachable';
  const isUnreached = isUnsent || (sent.is === 'unanswered' && !isEnded);
  const hint = sent.is === 'unsent' && sent.blocked ? BLOCKED_HINT : undefined;
  return isUnreached ? { fault: { level: 'warn', upstream, hint } } : {};
}

const UNSEALABLE_HINT = 'the provider key was sealed with a key that is not in ENCRYPTION_KEYS here';

function endError(sent: Sent): string | undefined {
  if (sent.is === 'unanswered' || sent.is === 'broken') return sent.why;
  return sent.is === 'unsent' ? sent.code : undefined;
}
