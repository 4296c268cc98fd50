import type { Refusal } from './errors.ts';

/** How far a limit of calls by the minute is used up. */
export type Pace = NonNullable<Refusal['pace']>;

const seconds = (ms: number): number => Math.ceil(ms / 1000);

/**
 * What answers tell of it: a quota of `q` in `w` seconds, of which `r` are left and which is whole again in `t`
 * seconds (a list, to which a provider may have put its own; draft-ietf-httpapi-ratelimit-headers-10 §3, §4).
 */
export const paceHeaders = (pace: Pace) => ({
  'ratelimit-policy': `"presign";q=${pace.perMinute};w=60`,
  ratelimit: `"presign";r=${pace.left};t=${seconds(pace.resetMs)}`,
});

/** The refusal of a call that came too early. */
export function rateLimited({ pace, waitMs }: { pace: Pace; waitMs: number }, who: string): Refusal {
  const wait = seconds(waitMs);
  return {
    code: 'rate_limited',
    message: `${who} may be used ${pace.perMinute} times a minute: try again in ${wait} s.`,
    details: { limit: pace.perMinute },
    retryAfterSeconds: wait,
    pace,
  };
}
