import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('rate-limit', 'bucket');

/** How far a limit of calls by the minute is used up. */
export type RateLimit = {
  readonly perMinute: number;
  /** Calls that may be made at once. */
  readonly left: number;
  /** Until all of a minute's calls may be made at once again. */
  readonly resetMs: number;
};

/** Counts one request of `id`, unless it must wait. */
export async function countRequest(
  redis: RedisClient,
  partition: number,
  id: string,
  perMinute: number,
): Promise<{ readonly rateLimit: RateLimit /** 0: it passes. */; readonly waitMs: number }> {
  const [, left, resetMs, waitMs] = (await run(redis, [keys.rateLimit(partition, id)], [perMinute])) as [
    string,
    number,
    number,
    number,
  ];
  return { rateLimit: { perMinute, left, resetMs }, waitMs };
}
