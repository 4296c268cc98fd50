import { type RedisClient, readFigures } from '@presign/limits';
import type { Budget } from '@presign/schema';
import type { pots } from '@presign/schema/tables';

/**
 * What of a pot is used, spent and held now; null when Redis does not answer. A pot that no call has opened yet has
 * used what the ledger says.
 */
export async function liveFigures(
  redis: RedisClient,
  pot: typeof pots.$inferSelect,
): Promise<Budget['live']> {
  const where = { partition: pot.partition, potIds: [pot.id] };
  const found = await readFigures(redis, where).catch(() => 'unknown' as const);
  if (found === 'unknown') return null;
  const [live] = found;
  if (!live) return { used: pot.used, spent: pot.settledMicrousd, held: 0 };
  return { used: live.used, spent: live.settledMicrousd, held: live.heldMicrousd };
}
