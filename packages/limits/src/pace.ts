import { keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('pace', 'bucket');

/** How far a limit of calls by the minute is used up. */
export type Pace = {
  readonly perMinute: number;
  /** Calls that may be made at once. */
  readonly left: number;
  /** Until all of a minute's calls may be made again; of a refusal, until the call may be. */
  readonly resetMs: number;
};

/** Counts one request of `id`, unless it must wait. */
export async function countRequest(
  redis: RedisClient,
  partition: number,
  id: string,
  perMinute: number,
): Promise<Pace & { readonly passes: boolean }> {
  const [is, left, ms] = (await run(redis, [keys.pace(partition, id)], [perMinute])) as [
    string,
    number,
    number,
  ];
  return { passes: is === 'ok', perMinute, left, resetMs: ms };
}
