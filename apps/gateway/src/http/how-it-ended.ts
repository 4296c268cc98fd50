import type { IncomingHttpHeaders } from 'node:http';
import { type CallEnd, type CallRecord, RETRY_COUNT_MAX, USER_AGENT_MAX_CHARS } from '@presign/schema';
import type { Ended, Why } from './forward.ts';

/**
 * The failures that the ledger records for a missing or incomplete answer. A refusal may say less, because a holder who has disconnected
 * gets no refusal.
 */
const FAILURES: Readonly<Record<Exclude<Why, 'failure'>, string | undefined>> = {
  timeout: 'upstream_timeout',
  left: 'holder_left',
  revoked: 'grant_revoked',
  suspended: 'account_suspended',
  expired: 'token_expired',
  closing: 'overloaded',
  unleased: 'limits_unavailable',
  unread: 'answer_broken',
  // Each of its requests was answered or cancelled.
  over: undefined,
};

/**
 * How a call failed, for the ledger. Undefined: its holder got a whole answer below 400.
 * @param code of its refusal, or of its incomplete answer
 * @param hasLeft whether its holder had disconnected before its answer ended
 */
export function failureOf(
  sent: Ended | { readonly is: 'unavailable' | 'unsealable' | 'unauthorized' | 'failed' },
  code: string | undefined,
  hasLeft = false,
): string | undefined {
  if (sent.is === 'unsent') return sent.cut ? FAILURES[sent.cut] : code;
  if (sent.is !== 'broken' && sent.is !== 'unanswered') return code;
  if (hasLeft && (sent.why === 'failure' || sent.why === 'timeout')) return 'holder_left';
  if (sent.why !== 'failure') return FAILURES[sent.why];
  return sent.is === 'broken' ? 'answer_broken' : 'upstream_unreachable';
}

type Times = Pick<CallEnd, 'fby' | 'tot' | 'own'>;

/** Moments of `performance.now()`, 0 for none, and how long the provider and the body took, in ms. */
type Timed = {
  readonly beganAt: number;
  readonly firstByteAt: number;
  readonly upstreamMs: number;
  readonly bodyMs: number;
};

/** The times of a call that has ended, for the ledger. */
export function timesOf({ beganAt, firstByteAt, upstreamMs, bodyMs }: Timed): {
  readonly [F in keyof Times]: Times[F] | undefined;
} {
  const ms = performance.now() - beganAt;
  return {
    fby: firstByteAt === 0 ? undefined : Math.round(firstByteAt - beganAt),
    tot: Math.round(ms),
    own: Math.max(0, Math.round((ms - upstreamMs - bodyMs) * 1_000)),
  };
}

/** The retry count of a call, as its SDK states it. */
export function retryCountOf(headers: IncomingHttpHeaders): CallRecord['rty'] {
  const stated = headers['x-stainless-retry-count'];
  if (typeof stated !== 'string' || !/^\d{1,3}$/.test(stated)) return undefined;
  return Math.min(Number(stated), RETRY_COUNT_MAX);
}

/** The beginning of `User-Agent`: the holder writes it, and Redis and the ledger store it with every call. */
export const userAgentOf = (headers: IncomingHttpHeaders): CallRecord['agt'] =>
  headers['user-agent']?.slice(0, USER_AGENT_MAX_CHARS);
