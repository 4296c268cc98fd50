import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { revokeGrant } from '@presign/limits';
import { costsNothing, dialectOf } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { Handler } from 'hono';
import type { GatewayDeps, GatewayEnv } from '../app.ts';
import type { LlmGrant } from '../grant/llm-grant.ts';
import type { GrantMemory, Policy } from '../grant/policy.ts';
import type { Verifier } from '../grant/verify.ts';
import type { HeldBytes } from '../http/body-memory.ts';
import { answerRefusal } from '../http/refuse.ts';
import { type Admitted, admitCall, getPolicy } from '../limits/admit.ts';
import { newHoldId } from '../limits/new-hold-id.ts';
import { settleCall } from '../limits/settle.ts';
import { Answer } from './answer.ts';
import { answerPlan, costHeaders } from './answer-headers.ts';
import { type Need, namesRead, readBody } from './body.ts';
import { type Charge, judge, refusalOf } from './judge-end.ts';
import { logCall } from './log.ts';
import { match, type Target } from './match.ts';
import { type Plan, planCall } from './plan.ts';
import { callRecord } from './record.ts';
import { send } from './send.ts';
import { splitUrl } from './split-url.ts';

export type LlmDeps = GatewayDeps & { readonly verify: Verifier<LlmGrant>; readonly memory: GrantMemory };

/** One call under way, as far as it has come. */
export type Call = {
  readonly requestId: string;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly grant: LlmGrant;
  readonly target: Target;
  readonly policy: Policy;
  readonly plan: Plan;
  /** What its body takes of the memory for bodies. */
  readonly held: HeldBytes;
  readonly holdId: string;
  readonly beganMs: number;
};

/** How long an answer waits for its use to be given back: who calls again at once must find it. */
const GIVING_BACK_MS = 1_000;

/** How long the last byte waits for settling under a spend limit. */
const SETTLING_MS = 50;

/**
 * `ANY /llm/t/<token>/<path>`: verify → match → plan → admit → forward → meter → settle. Works on Node's own
 * request and answer, because a `Request`/`Response` pair with a body costs more than all the rest.
 */
export function llmCall(deps: LlmDeps): Handler<GatewayEnv> {
  return async (c) => {
    const incoming = c.env.incoming as IncomingMessage;
    const outgoing = c.env.outgoing as ServerResponse;
    const held = deps.bodyBudget.open();
    const serving = serve(deps, c.get('requestId'), incoming, outgoing, held);
    const refusal = await serving.finally(held.giveBack);
    // A holder who has left, or has half an answer, can be told nothing more.
    if (!refusal || outgoing.headersSent || outgoing.destroyed) return RESPONSE_ALREADY_SENT;
    return answerRefusal(c, refusal);
  };
}

/** Serves one call; a refusal is returned only while nothing has been written. */
async function serve(
  deps: LlmDeps,
  requestId: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  held: HeldBytes,
): Promise<Refusal | undefined> {
  const beganMs = deps.now();
  const unservable = unservableHeader(incoming);
  if (unservable) return unservable;
  const { token, path, query } = splitUrl(incoming.url ?? '');
  const verified = deps.verify(token);
  if ('refusal' in verified) return verified.refusal;
  const { grant } = verified;
  const matched = match(grant, incoming.method ?? '', path, query);
  if ('refusal' in matched) return matched.refusal;
  const { target } = matched;
  const found = await getPolicy(deps, requestId, grant);
  if ('refusal' in found) return found.refusal;
  const { policy } = found;

  const read = await readBody(incoming, needOf(grant, target, policy), held);
  if ('refusal' in read) return read.refusal;
  const planned = planCall({ grant, target, policy, content: read.content, now: beganMs });
  if ('refusal' in planned) return planned.refusal;
  const { plan } = planned;
  const holdId = newHoldId();
  const call: Call = { requestId, incoming, outgoing, grant, target, policy, plan, held, holdId, beganMs };
  const ask = { holdId, uses: 1, hold: plan.hold, leaseMs: deps.leaseMs, record: callRecord(call) };
  const counted = await admitCall(deps, requestId, grant, policy, ask);
  if ('refusal' in counted) return counted.refusal;
  const running = run(deps, call, counted.admitted);
  deps.underWay.track(running);
  return running;
}

/** What HTTP allows but no call here has a meaning for. */
function unservableHeader({ headers }: IncomingMessage): Refusal | undefined {
  if (headers.upgrade !== undefined) {
    return { code: 'invalid_request', param: 'Upgrade', message: 'Upgrade: this URL cannot be upgraded.' };
  }
  // RFC 9112 §6.1: codings beside chunked would have to be undone here, and none is offered.
  if ((headers['transfer-encoding'] ?? 'chunked').toLowerCase() !== 'chunked') {
    const message = 'Transfer-Encoding: only chunked is understood.';
    return { code: 'invalid_request', param: 'Transfer-Encoding', message };
  }
  return undefined;
}

/** From here on the call is counted: whatever happens, it is settled. */
async function run(deps: LlmDeps, call: Call, admitted: Admitted): Promise<Refusal | undefined> {
  const { grant, policy, holdId, plan, outgoing } = call;
  deps.leases.add(grant.partition, holdId);
  const answer = new Answer(outgoing, answerPlan(call, admitted));
  const sent = await send(deps, call, admitted, answer);
  const told = await answer.end();
  const charge = judge(sent, told, plan, admitted);
  logCall(deps, call, sent, charge);
  const record = callRecord(call, 'status' in sent ? sent.status : undefined, charge);
  const { uses, costMicrousd } = charge;
  const outcome = { holdId, epoch: admitted.epoch, uses, costMicrousd, record };
  const settled = settleCall(deps, call.requestId, policy.ref, outcome);
  deps.underWay.track(settled);
  if (charge.overrunMicrousd > 0) deps.underWay.track(endOverrun(deps, call, charge));
  const left = await inTime(settled, waitForSettle(plan, uses));
  if (sent.is === 'complete') answer.finish(told, costHeaders(charge, left));
  if (sent.is === 'broken') answer.abort();
  return refusalOf(sent);
}

/** A body is read when a config or a limit acts on it, or when its usage can be metered. */
function needOf(grant: LlmGrant, { path }: Target, policy: Policy): Need {
  const dialect = dialectOf(grant.provider, path);
  if (policy.config) return { is: 'must', names: namesRead(dialect, policy.config) };
  if (policy.costLimited && !costsNothing(grant.provider, grant.method, path))
    return { is: 'must', names: new Set() };
  return { is: dialect?.spend ? 'may' : 'none' };
}

/**
 * How long an answer's end waits for its settling, in ms. Who got a use back, or may spend only so much, may
 * call again at once and must not meet this call's own hold.
 */
function waitForSettle(plan: Plan, uses: number): number {
  if (uses === 0) return GIVING_BACK_MS;
  return plan.hold === undefined ? 0 : SETTLING_MS;
}

const inTime = async <T>(work: Promise<T>, ms: number): Promise<T | undefined> =>
  ms === 0 ? undefined : Promise.race([work, sleep(ms, undefined, { ref: false })]);

/** More was used than the worst case said: prices or bounds are wrong at their source, so the grant ends. */
async function endOverrun(deps: LlmDeps, { grant, plan }: Call, { overrunMicrousd }: Charge): Promise<void> {
  const { id, provider } = grant;
  deps.log.error(
    { grant: id, provider: provider.id, model: plan.model, overrun: overrunMicrousd },
    'cost over its hold',
  );
  await revokeGrant(deps.redis, grant).catch(() =>
    deps.log.error({ grant: id }, 'grant not ended after an overrun'),
  );
}
