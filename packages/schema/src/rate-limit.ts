import type { Refusal } from './errors.ts';

/** How much of a minute's calls is used up. */
export type RateLimit = NonNullable<Refusal['rateLimit']>;

/**
 * The headers of an answer that counted: a quota of `q` calls in `w` seconds, `r` calls left, and `t` seconds until
 * all are left again. Each is a list, to which an upstream may have added its own entry
 * (draft-ietf-httpapi-ratelimit-headers-10 §3, §4).
 */
export const rateLimitHeaders = (rateLimit: RateLimit) => ({
  'ratelimit-policy': `"presign";q=${rateLimit.perMinute};w=60`,
  ratelimit: `"presign";r=${rateLimit.left};t=${seconds(rateLimit.resetMs)}`,
});

/**
 * The refusal of a call that came too early.
 * @param subject begins the message: "This URL", "This API key"
 */
export function rateLimited(
  { rateLimit, waitMs }: { rateLimit: RateLimit; waitMs: number },
  subject: string,
): Refusal {
  const { perMinute } = rateLimit;
  const wait = seconds(waitMs);
  const times = perMinute === 1 ? 'once' : `${perMinute} times`;
  return {
    code: 'rate_limited',
    message: `${subject} may be used ${times} a minute: try again in ${wait} s.`,
    details: { limit: perMinute },
    retryAfterSeconds: wait,
    rateLimit,
  };
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
