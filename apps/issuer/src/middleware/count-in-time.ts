import { countRequest, type RedisClient } from '@presign/limits';
import { choosePartition } from '@presign/schema';
import { inTime } from './in-time.ts';

/** How long a request waits to be counted. */
const COUNTING_MS = 250;

/**
 * Counts a request by the minute, over all issuers.
 * @param owner the id that chooses the partition
 * @param name of the counter
 * @returns undefined while Redis does not answer: such a request is not counted
 */
export const countInTime = (redis: RedisClient, owner: string, name: string, perMinute: number) =>
  inTime(countRequest(redis, choosePartition(owner), name, perMinute), COUNTING_MS).catch(() => undefined);
