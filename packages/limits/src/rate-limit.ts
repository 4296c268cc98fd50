import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('pace', 'bucket');

/** How far a limit of calls by the minute is used up. */
export type Pace = {
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
): Promise<{ readonly pace: Pace /** 0: it passes. */; readonly waitMs: number }> {
  const [, left, resetMs, waitMs] = (await run(redis, [keys.pace(partition, id)], [perMinute])) as [
    string,
    number,
    number,
    number,
  ];
  return { pace: { perMinute, left, resetMs }, waitMs };
}
