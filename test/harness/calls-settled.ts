import { keys } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { eventually } from './eventually.ts';
import type { Stack } from './stack.ts';

/**
 * Waits until no call is under way, and all are in the ledger. The answer of a call without a spend limit ends before the call has
 * settled, so the ledger may lack it when its caller has it whole.
 */
export async function callsSettled({ redis, issuer }: Pick<Stack, 'redis' | 'issuer'>): Promise<void> {
  const partitions = Array.from({ length: PARTITIONS }, (_, id) => id);
  await eventually(async () => {
    const held = await Promise.all(partitions.map((id) => redis.zcard(keys.leases(id))));
    return held.every((count) => count === 0);
  });
  await issuer.ledger.drainAll();
}
