import { keys } from './keys.ts';
import type { RedisClient } from './redis.ts';

/**
 * Appends how charged calls ended to the usage stream of their partition, behind their charges. It counts in no budget.
 * @param record JSON, for the ledger. Throws what ioredis throws.
 */
export async function addEnded(redis: RedisClient, partition: number, record: string): Promise<void> {
  const entry = { hold: '', grant: '', budgets: '', uses: '0', cost: '0', outcome: 'ended', record };
  await redis.xadd(keys.usage(partition), '*', ...Object.entries(entry).flat());
}
