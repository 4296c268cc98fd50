import type { Refusal } from './errors.ts';
import { count } from './figures.ts';
import type { RateLimit } from './limit-kinds.ts';
import { rateKind } from './limit-kinds.ts';

const NO_HEADERS: Readonly<Record<string, string>> = {};

/**
 * The headers that state rate limits: a quota of `q` calls, or of another unit `qu`, in `w` seconds, `r` left, and `t` seconds
 * until the full quota is available again (draft-ietf-httpapi-ratelimit-headers-10 §3, §4). Each header is a list, and an upstream
 * may have entries of its own in it. Empty where there is no limit.
 */
export function rateLimitHeaders(limits: readonly RateLimit[] = []): Readonly<Record<string, string>> {
  if (limits.length === 0) return NO_HEADERS;
  return { 'ratelimit-policy': limits.map(policyOf).join(', '), ratelimit: limits.map(stateOf).join(', ') };
}

function policyOf({ name, limit }: RateLimit): string {
  const { header, unit, seconds } = rateKind(name);
  return `"${header}";q=${limit}${unit === undefined ? '' : `;qu="${unit}"`};w=${seconds}`;
}

const stateOf = ({ name, left, resetMs }: RateLimit): string =>
  `"${rateKind(name).header}";r=${left};t=${wholeSeconds(resetMs)}`;

/** A call that a rate limit refuses. */
export type RateRefusal = {
  readonly rateLimit: RateLimit;
  /** Until the call may pass. */
  readonly waitMs: number;
  /** How much the call needs. Undefined: it counts as itself. */
  readonly needed?: number | undefined;
};

/**
 * The refusal of a call beyond a rate limit.
 * @param subject begins the message: "This URL", "This API key"
 */
export function rateLimited({ rateLimit, waitMs, needed }: RateRefusal, subject: string): Refusal {
  const { name, limit, left: remaining } = rateLimit;
  const { code, each, unit } = rateKind(name);
  const wait = wholeSeconds(waitMs);
  const why =
    needed === undefined
      ? `${subject} has no ${unit ?? 'calls'} left (${limit} ${each}).`
      : `This call may use ${count(needed, 'token')}, and ${remaining} of ${limit} ${each} are left (${name}).`;
  return {
    code,
    message: `${why} Try again in ${count(wait, 'second')}.`,
    details: needed === undefined ? { limit } : { limit, remaining, needed },
    retryAfterSeconds: wait,
    rateLimits: [rateLimit],
  };
}

/** The refusal of a batch with more calls than the window of a rate limit holds. */
export function batchOverRate(rateLimit: RateLimit, needed: number): Refusal {
  const { name, limit } = rateLimit;
  const { code, each } = rateKind(name);
  return {
    code,
    message: `This batch has ${count(needed, 'call')}, and ${name} of this URL is ${limit}, so it never passes. Send at most ${limit} in a batch, and as many ${each}.`,
    details: { limit, needed },
    rateLimits: [rateLimit],
    shouldRetry: false,
  };
}

const wholeSeconds = (ms: number): number => Math.ceil(ms / 1000);
