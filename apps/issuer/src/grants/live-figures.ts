import { type RedisClient, readFigures } from '@presign/limits';
import type { Budget } from '@presign/schema';
import type { budgets } from '@presign/schema/tables';

/**
 * The uses, microdollars spent and microdollars held of a budget now, calls under way included. A budget that Redis
 * does not have yet has the figures of the ledger.
 * @returns null when Redis does not answer
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
