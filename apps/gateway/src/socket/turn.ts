import { randomUUID } from 'node:crypto';
import { revokeGrant } from '@presign/limits';
import {
  errorFactsIn,
  type JsonObject,
  STATED_TWICE,
  type StreamReader,
  statesTwice,
} from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { CallReport } from '../call-report.ts';
import type { Asking } from '../grant/bind.ts';
import { loadPolicyFor, withLimitsOfNow } from '../grant/load-policy.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { inOnePiece, isInMemory, tooLarge } from '../http/body.ts';
import { LIMITS_CHANGED, newHoldId } from '../limits/admit.ts';
import { checkPrice } from '../llm/disproved.ts';
import { type Ending, endCall } from '../llm/end-call.ts';
import type { Unplannable } from '../llm/hold.ts';
import { endRefusal } from '../llm/judge-end.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import type { Target } from '../llm/match.ts';
import type { Metered } from '../llm/meter.ts';
import { type Planned, planBody } from '../llm/plan-body.ts';
import { callRecord } from '../llm/record.ts';
import type { Sent } from '../llm/send.ts';
import { admitTightly, type Tight } from '../llm/tight-hold.ts';
import { llmOperation } from '../traces.ts';
import type { Create, Running } from './dialects/dialect.ts';
import { KEY_ROTATED, NO_JSON } from './dialects/end.ts';
import { isOfResponse, isReadable } from './dialects/event.ts';

/** The socket that turns are on. */
export type SocketOf = {
  /** Its id, which is the request id of its handshake. */
  readonly connectionId: string;
  readonly incoming: Asking;
  readonly grant: LlmGrant;
  readonly target: Target;
  /** The version of the provider's key that the socket was opened with. */
  readonly credentialVersion: number;
  readonly hasLeft: () => boolean;
};

/** The cause for which a turn is not sent. `others`: the provider, an event of the holder, or a fault. A holder could repeat these endlessly. */
export type UnsentBy = 'holder' | 'gateway' | 'others';

/** A turn that was refused before it was sent. */
export type RefusedTurn = { readonly refusal: Refusal; readonly requestId: string };

/** An admitted turn, and its event to send. */
export type Begun = { readonly turn: Turn; readonly frame: Buffer };

/**
 * Starts a turn like a call: load the policy, judge the body, plan, admit. It takes no `concurrent_calls` place, because its connection has
 * one, and no memory, because its event has reserved it.
 * @param frameBytes of its event
 */
export async function beginTurn(
  deps: LlmDeps,
  of: SocketOf,
  number: number,
  create: Create,
  frameBytes: number,
): Promise<Begun | RefusedTurn> {
  const { grant, incoming } = of;
  const requestId = randomUUID();
  const report = new CallReport('llm', requestId, { method: grant.method, headers: incoming.headers });
  Object.assign(report, { grant, connection: of.connectionId, turn: number, provider: grant.provider.id });
  report.knowledge = grant.provider.knowledge;
  let refusal: Refusal | undefined = { code: 'internal_error' };
  try {
    const begun = await begin(deps, of, { report, requestId, create, frameBytes });
    refusal = 'refusal' in begun ? begun.refusal : undefined;
    return 'refusal' in begun ? { refusal: begun.refusal, requestId } : begun;
  } finally {
    // A turn that was admitted has reported its end.
    if (refusal && !report.end) deps.report(report, refusal);
  }
}

type Beginning = {
  readonly report: CallReport;
  readonly requestId: string;
  readonly create: Create;
  readonly frameBytes: number;
};

async function begin(
  deps: LlmDeps,
  of: SocketOf,
  { report, requestId, create, frameBytes }: Beginning,
): Promise<Begun | { readonly refusal: Refusal }> {
  const { grant, incoming, target } = of;
  const beganMs = deps.now();
  if (grant.expiresAtMs <= beganMs) return { refusal: { code: 'token_expired' } };
  const found = await loadPolicyFor(deps, report, incoming, grant);
  if ('refusal' in found) return found;
  const most = found.policy.conditions?.max_body_bytes;
  if (most !== undefined && frameBytes > most) return { refusal: tooLarge({ maxBodyBytes: most }) };
  const known = create.isStated ? withoutRules(found.policy) : found.policy;
  const ready = await planTurn(deps, of, { create, beganMs }, known);
  if ('refusal' in ready) {
    report.model = ready.model;
    report.unbounded = ready.unbounded;
    const isPlain = ready.refusal.code === 'invalid_json' && ready.refusal.message === undefined;
    return isPlain ? { refusal: NO_JSON } : ready;
  }
  const { planned, policy } = ready;
  const { plan } = planned;
  report.model = plan.pricing && plan.model;
  report.policy = policy;
  const holdId = newHoldId();
  const place = { con: of.connectionId, trn: report.turn };
  const record = callRecord({ requestId, policy, grant, plan, beganMs, place });
  const ask = { holdId, uses: 1, places: 0, leaseMs: deps.leaseMs, record };
  const askedAt = performance.now();
  const tight = await admitTightly(deps, { requestId, grant, policy, ask }, planned);
  report.admitMs = performance.now() - askedAt;
  if ('refusal' in tight) return tight;
  const { partition } = grant;
  const microusd = tight.admitted.heldMicrousd;
  deps.leases.add({ partition, holdId, microusd, longestMs: deps.upstreamTimeoutMs });
  const outgoing = {
    get destroyed() {
      return of.hasLeft();
    },
  };
  const call = {
    requestId,
    report,
    incoming,
    outgoing,
    grant,
    target,
    policy: tight.policy,
    plan,
    holdId,
    record,
  };
  const turn = new Turn(deps, call, tight, create);
  if (tight.admitted.credentialVersion !== of.credentialVersion) return giveUp(turn, KEY_ROTATED);
  try {
    const bound = plan.hold ? Math.min(tight.admitted.tokens, plan.askedTokens) : plan.askedTokens;
    const body = plan.bodyFor(bound);
    return {
      turn,
      frame: create.withBody(isInMemory(body) ? inOnePiece(body) : Buffer.from('{}'), requestId),
    };
  } catch (error) {
    await turn.unsent({ code: 'internal_error' }, 'others');
    throw error;
  }
}

const withoutRules = ({ conditions: _, ...policy }: Policy): Policy => ({
  ...policy,
  config: undefined,
  models: undefined,
});

/** Ends a turn that the gateway does not send. */
async function giveUp(turn: Turn, refusal: Refusal): Promise<{ readonly refusal: Refusal }> {
  await turn.unsent(refusal, 'gateway');
  return { refusal };
}

type Ready = { readonly planned: Planned; readonly policy: Policy };

/** Plans a turn. A removed limit refuses no turn, because cached limits that refuse a turn are loaded again. */
export async function planTurn(
  deps: LlmDeps,
  { grant, target, incoming }: Pick<SocketOf, 'grant' | 'target' | 'incoming'>,
  { create, beganMs }: { readonly create: Create; readonly beganMs: number },
  known: Policy,
): Promise<Ready | Unplannable> {
  const planWith = async (policy: Policy): Promise<Ready | Unplannable> => {
    const arrived = { raw: create.body, isJson: true };
    const asked = { grant, target, policy, need: 'must' as const, arrived, headers: incoming.headers };
    const planned = await planBody(deps, { ...asked, now: beganMs });
    if ('refusal' in planned) return planned;
    return checkPrice(deps, { grant, policy, plan: planned.plan }) ?? { planned, policy };
  };
  const first = await planWith(known);
  if (!('refusal' in first) || !(known.costLimited || known.tokenLimited)) return first;
  const policy = await withLimitsOfNow(deps, grant, known);
  if (!policy) return first;
  // The bytes of a large body have been moved to a worker.
  return create.body.length > 0 ? planWith(policy) : { refusal: LIMITS_CHANGED };
}

const NOTHING: Metered = { rest: undefined, reported: undefined, ownError: false, error: undefined };

/** An admitted turn. It is settled in any case. */
export class Turn implements Running {
  readonly lane: string;
  readonly label: string;
  /** The response's id, once the API has stated it. */
  responseId: string | undefined;
  hasAnswered = false;
  readonly #deps: LlmDeps;
  readonly #call: Ending;
  readonly #tight: Tight;
  readonly #reader: StreamReader | undefined;
  /** No other turn of its socket has run at the same time. */
  isAlone = true;
  #sentAt = 0;
  #wait: ReturnType<LlmDeps['waits']['begin']> | undefined;
  #isEnding = false;
  #isLost = false;
  #isStatedTwice = false;

  constructor(deps: LlmDeps, call: Ending, tight: Tight, { lane, label }: Create) {
    this.#deps = deps;
    this.#call = call;
    this.#tight = tight;
    this.lane = lane;
    this.label = label;
    this.#reader = call.plan.spend?.readStream?.();
  }

  get requestId(): string {
    return this.#call.requestId;
  }

  /** Whether its end is being settled, or has been settled. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** `performance.now()` when it was sent. */
  get sentAt(): number {
    return this.#sentAt;
  }

  get hasBegun(): boolean {
    return this.#call.report.firstByteAt > 0;
  }

  sent(): void {
    const { report, target, grant } = this.#call;
    this.#sentAt = performance.now();
    this.#wait = this.#deps.waits.begin(grant.provider.id);
    this.#deps.traces?.toUpstream(report, llmOperation(target.path, grant.provider, report.model));
  }

  /** Whether an event may contain its usage. */
  matters(frame: Buffer): boolean {
    return this.#reader?.matters?.(frame) ?? true;
  }

  /** Takes an event of its response. */
  heard(frame: Buffer): void {
    if (!this.hasBegun) this.#call.report.firstByteAt = performance.now();
    this.#wait?.answered();
    this.hasAnswered ||= isOfResponse(frame);
    if (!this.matters(frame)) return;
    try {
      this.#isLost ||= !isReadable(frame);
      this.#isStatedTwice ||= statesTwice(frame);
      if (!this.#isLost) this.#reader?.event(frame.toString(), undefined);
    } catch {
      // Unreadable usage is unknown.
      this.#isLost = true;
    }
  }

  /** Ends a turn whose response has ended. Its usage is the stated one. */
  over(): Promise<Refusal | undefined> {
    let reported: Metered['reported'];
    try {
      reported = this.#isStatedTwice ? STATED_TWICE : this.#isLost ? undefined : this.#reader?.end();
    } catch {
      reported = undefined;
    }
    return this.#end({ is: 'complete', status: 200 }, { ...NOTHING, reported });
  }

  /** Ends a turn that the API refused with an error event, before a response. */
  refused(status: number, event: JsonObject): Promise<Refusal | undefined> {
    const metered = { ...NOTHING, ownError: true, error: errorFactsIn(event) };
    return this.#end({ is: 'complete', status }, metered);
  }

  /** Ends a turn that was cut, or whose upstream disconnected. */
  broken(why: Extract<Sent, { is: 'broken' }>['why']): Promise<Refusal | undefined> {
    return this.#end(this.hasBegun ? { is: 'broken', status: 200, why } : { is: 'unanswered', why }, NOTHING);
  }

  /** Ends a turn that was never sent, with the refusal by which its socket ends. Undefined: a peer has gone. */
  unsent(refusal: Refusal | undefined, by: UnsentBy): Promise<Refusal | undefined> {
    const cut = by === 'holder' ? 'left' : undefined;
    const why = { blocked: false, code: undefined, cut, refusal } as const;
    return this.#end({ is: 'unsent', isBounded: by !== 'gateway', ...why }, NOTHING);
  }

  async #end(sent: Sent, metered: Metered): Promise<Refusal | undefined> {
    this.#isEnding = true;
    this.#wait?.ended();
    const { report } = this.#call;
    if (this.#sentAt > 0) report.upstreamMs = performance.now() - this.#sentAt;
    const { admitted } = this.#tight;
    const refusal = endRefusal(sent);
    const ended = endCall(this.#deps, this.#call, this.#tight, { sent, metered, admitted });
    this.#deps.underWay.track(ended);
    await ended;
    this.#deps.report(report, refusal);
    return refusal;
  }
}

/** Charges the maximum cost of a response that no turn started. If it cannot be charged, its URL ends, as after an overrun. */
export async function chargeUnasked(
  deps: LlmDeps,
  of: SocketOf,
  number: number,
  most: Create | undefined,
): Promise<void> {
  const { grant } = of;
  const begun = most && (await beginTurn(deps, of, number, most, 0));
  if (begun && 'turn' in begun) {
    begun.turn.sent();
    await begun.turn.broken('failure');
    return;
  }
  await revokeGrant(deps.redis, grant).catch(() =>
    deps.log.error({ grant: grant.id }, 'grant not ended after an overrun'),
  );
  deps.log.error({ grant: grant.id, provider: grant.provider.id }, 'cost over its hold');
}
