import { count, type RateLimit, type Refusal } from './errors.ts';

/** The rate limits of a call. Undefined: there is none. */
export type RateLimits = {
  readonly rateLimit?: RateLimit | undefined;
  readonly tokenRate?: RateLimit | undefined;
};

/**
 * The headers that state rate limits: a quota of `q` calls, or of another unit `qu`, in `w` seconds, `r` left, and `t` seconds
 * until the full quota is available again (draft-ietf-httpapi-ratelimit-headers-10 §3, §4). Each header is a list, and an upstream
 * may have entries of its own in it. Empty where there is no limit.
 */
export function rateLimitHeaders({ rateLimit, tokenRate }: RateLimits): Readonly<Record<string, string>> {
  const limits = [
    ...(rateLimit ? [{ ...rateLimit, name: '"presign"', unit: '' }] : []),
    ...(tokenRate ? [{ ...tokenRate, name: '"presign-tokens"', unit: ';qu="tokens"' }] : []),
  ];
  if (limits.length === 0) return {};
  return {
    'ratelimit-policy': limits
      .map(({ name, unit, perMinute }) => `${name};q=${perMinute}${unit};w=60`)
      .join(', '),
    ratelimit: limits.map(({ name, left, resetMs }) => `${name};r=${left};t=${seconds(resetMs)}`).join(', '),
  };
}

/**
 * The refusal of a call beyond a rate limit.
 * @param subject begins the message: "This URL", "This API key"
 */
export function rateLimited(
  { rateLimit, waitMs }: { rateLimit: RateLimit; waitMs: number },
  subject: string,
): Refusal {
  const { perMinute } = rateLimit;
  const wait = seconds(waitMs);
  return {
    code: 'rate_limited',
    message: `${subject} has no calls left (${perMinute} a minute). Try again in ${count(wait, 'second')}.`,
    details: { limit: perMinute },
    retryAfterSeconds: wait,
    rateLimit,
  };
}

/** The refusal of a call that may use more tokens than are left of the minute. */
export function tokenRateLimited(at: {
  readonly tokenRate: RateLimit;
  readonly waitMs: number;
  readonly needed: number;
}): Refusal {
  const { tokenRate, needed } = at;
  const { perMinute: limit, left: remaining } = tokenRate;
  const wait = seconds(at.waitMs);
  return {
    code: 'token_rate_limited',
    message: `This call may use ${count(needed, 'token')}, and ${remaining} of ${limit} a minute are left (tokens_per_minute). Try again in ${count(wait, 'second')}.`,
    details: { limit, remaining, needed },
    retryAfterSeconds: wait,
    tokenRate,
  };
}

const seconds = (ms: number): number => Math.ceil(ms / 1000);
