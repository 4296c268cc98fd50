import { type RedisClient, readFigures } from '@presign/limits';
import type { Budget } from '@presign/schema';
import type { budgets } from '@presign/schema/tables';

/**
 * What of a budget is used, spent and held now; null when Redis does not answer. A budget that no call has opened yet has
 * used what the ledger says.
 */
export async function liveFigures(
  redis: RedisClient,
  budget: typeof budgets.$inferSelect,
): Promise<Budget['live']> {
  const where = { partition: budget.partition, budgetIds: [budget.id] };
  const found = await readFigures(redis, where).catch(() => 'unknown' as const);
  if (found === 'unknown') return null;
  const [live] = found;
  if (!live) return { used: budget.used, spent: budget.settledMicrousd, held: 0 };
  return { used: live.used, spent: live.settledMicrousd, held: live.heldMicrousd };
}
