import { setTimeout as sleep } from 'node:timers/promises';
import { isJsonObject } from '@presign/schema';
import { boundOrigin } from '../../grant/bind.ts';
import { type FlatHeaders, ownHeaders } from '../../http/headers.ts';
import { type Admitted, newHoldId } from '../../limits/admit.ts';
import { refundCharge } from '../../limits/refund.ts';
import { inexact, type RpcId } from '../ids/rpc-id.ts';
import type { McpDeps } from '../request/mcp-deps.ts';
import { type Message, type RpcAnswer, UNRUN_CODES } from '../request/messages.ts';
import { type Amount, type Charged, NOTHING } from '../request/price.ts';
import { mcpRecord } from '../request/record.ts';
import type { McpCall } from '../request/request.ts';

/** How long an answer waits for a refund, so that an immediate retry sees the returned use. */
const REFUND_WAIT_MS = 1_000;

type RefundDeps = Pick<McpDeps, 'redis' | 'log' | 'underWay' | 'doubts' | 'waiting' | 'closing'>;

/** The refund of one call's charge, or of the state of its round. */
export class ChargeRefund {
  readonly requests: UnrunRequests;
  readonly #deps: RefundDeps;
  #call: McpCall;
  #given: Promise<void> | undefined;

  constructor(deps: RefundDeps, call: McpCall) {
    this.#deps = deps;
    this.#call = call;
    const { charged, round, messages } = call;
    this.requests = new UnrunRequests(charged, messages?.all, round && messages?.all);
  }

  /** Sets the charged call, with the budgets that it used. */
  belongsTo(charged: McpCall): void {
    this.#call = charged;
  }

  /** Refunds this amount, only once. Waits for Redis for at most `REFUND_WAIT_MS`. */
  give(amount: Amount, how: { readonly status?: number; readonly wasSent?: boolean } = {}): Promise<void> {
    this.#given ??= this.#give(amount, how.status, how.wasSent ?? true);
    return this.#given;
  }

  /** Refunds the requests that are known so far not to have run. */
  async giveUnrun(): Promise<void> {
    if (this.requests.hasUnrun) await this.give(this.requests.unrun);
  }

  async #give({ uses, costMicrousd }: Amount, status: number | undefined, wasSent: boolean): Promise<void> {
    const { chargeId, policy, round } = this.#call;
    await round?.giveBack();
    if (uses === 0) return;
    const record = mcpRecord(this.#call, { sta: status });
    const what = { chargeId, refundId: newHoldId(), uses, costMicrousd, wasSent, record };
    const work = refundCharge(this.#deps, policy.ref, what);
    this.#deps.underWay.track(work);
    await Promise.race([work, sleep(REFUND_WAIT_MS, undefined, { ref: false })]);
  }
}

/** A request whose answer may say that it did not run. */
type Awaited = Amount & { readonly message: Message };

/**
 * Finds in a POST's own answer which of its requests certainly did not run: those answered with one of `UNRUN_CODES`.
 * Servers send -32602 from tools that ran, and proxies send -32700 and -32600 for answers that they cannot read.
 */
export class UnrunRequests {
  readonly #waiting: Map<RpcId | undefined, Awaited>;
  readonly #all: Amount;
  #unrun: Amount = NOTHING;
  #hasUnrun = false;

  /**
   * @param sent all messages of the POST, free ones too
   * @param rounds the request that was charged in an earlier round; it costs nothing, and its state may pass again
   */
  constructor(
    charged: readonly Charged[],
    sent: readonly Message[] = charged.map(({ message }) => message),
    rounds: readonly Message[] = [],
  ) {
    const all: Awaited[] = [
      ...charged.map(({ message, costMicrousd }) => ({ message, uses: 1, costMicrousd })),
      ...rounds.map((message) => ({ message, uses: 0, costMicrousd: 0 })),
    ];
    const distinct = sent.length === 1 ? all : withOwnIds(all, sent);
    this.#waiting = new Map(distinct.map((each) => [each.message.id, each]));
    this.#all = {
      uses: charged.length,
      costMicrousd: charged.reduce((sum, each) => sum + each.costMicrousd, 0),
    };
  }

  /** Everything that was charged. */
  get all(): Amount {
    return this.#all;
  }

  /** The requests that are known so far not to have run. */
  get unrun(): Amount {
    return this.#unrun;
  }

  /** The uses and cost that stay charged, as far as they are known. */
  get kept(): Amount {
    const { uses, costMicrousd } = this.#all;
    return { uses: uses - this.#unrun.uses, costMicrousd: costMicrousd - this.#unrun.costMicrousd };
  }

  /** Whether some request is known not to have run. */
  get hasUnrun(): boolean {
    return this.#hasUnrun;
  }

  /** Whether all requests are answered, and some of them did not run. */
  get isDone(): boolean {
    return this.#hasUnrun && this.#waiting.size === 0;
  }

  /** Takes note of answers to the POST. */
  see(answers: readonly RpcAnswer[]): void {
    for (const { id, error } of answers) {
      // A charged notification has no id, so no answer refers to it.
      const answered = id && this.#waiting.get(id);
      if (!answered) continue;
      this.#waiting.delete(id);
      if (!isJsonObject(error) || !UNRUN_CODES.has(error.code)) continue;
      this.#hasUnrun = true;
      this.#unrun = {
        uses: this.#unrun.uses + answered.uses,
        costMicrousd: this.#unrun.costMicrousd + answered.costMicrousd,
      };
    }
  }
}

/** An answer to a repeated id may belong to either request. */
function withOwnIds(all: readonly Awaited[], sent: readonly Message[]): readonly Awaited[] {
  const read = ({ id }: Message) => id && inexact(id);
  const ids = sent.map(read);
  return all.filter(({ message }) => ids.indexOf(read(message)) === ids.lastIndexOf(read(message)));
}

/**
 * The gateway's own headers of an answer, with the cost that is known so far.
 * @param all the charged requests, of which `unrun` did not run
 */
export function callHeaders(
  call: McpCall,
  admitted: Admitted,
  all: Amount,
  unrun: Amount | undefined,
): FlatHeaders {
  const { usesLeft, microusdLeft, isReturnable } = admitted;
  const refunded = (isReturnable ? unrun : undefined) ?? NOTHING;
  const origin = boundOrigin(call.policy, call.incoming.headers);
  const headers = ownHeaders(call.requestId, admitted.rateLimits, origin);
  if (usesLeft !== undefined) headers.push('x-presign-uses-remaining', String(usesLeft + refunded.uses));
  if (microusdLeft !== undefined)
    headers.push('x-presign-cost-remaining', String(microusdLeft + refunded.costMicrousd));
  if (all.uses > 0) headers.push('x-presign-cost', String(all.costMicrousd - refunded.costMicrousd));
  return headers;
}
