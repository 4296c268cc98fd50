import { Cluster } from 'ioredis';
import type { RedisClient } from './script.ts';

/**
 * What in Redis' settings would lose uses and money, in sentences for its operator: `INFO` of every master. A service
 * that hides a setting is not judged by it.
 */
export async function findRisks(redis: RedisClient): Promise<readonly string[]> {
  const masters = redis instanceof Cluster ? redis.nodes('master') : [redis];
  const infos = await Promise.all(
    masters.map(async (each) => `${await each.info('persistence')}${await each.info('memory')}`),
  );
  return RISKS.filter(([sign]) => infos.some((info) => sign.test(info))).map(([, says]) => says);
}

const RISKS: readonly (readonly [sign: RegExp, says: string])[] = [
  [
    /^aof_enabled:0/m,
    'Redis has no append-only file (appendonly no): a restart loses what is not yet in the ledger',
  ],
  [
    /^maxmemory_policy:(?!noeviction)/m,
    'Redis may drop keys when its memory is full (maxmemory-policy): set it to noeviction',
  ],
];
