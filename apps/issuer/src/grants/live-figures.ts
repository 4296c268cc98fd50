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
  const live = await liveWindow(redis, budget);
  return live && { used: live.used, spent: live.spent, held: live.held };
}

/** As `liveFigures`, with tokens, which only windows of shared budgets count. */
export async function liveWindow(
  redis: RedisClient,
  { id, partition, used, settledMicrousd: spent, usedTokens: tokens }: typeof budgets.$inferSelect,
) {
  const found = await readFigures(redis, { partition, budgetIds: [id] }).catch(() => 'unknown' as const);
  if (found === 'unknown') return null;
  const [live] = found;
  if (!live) return { used, spent, held: 0, tokens, tokens_held: 0 };
  const { settledMicrousd, heldMicrousd: held, tokensHeld } = live;
  return { used: live.used, spent: settledMicrousd, held, tokens: live.tokens, tokens_held: tokensHeld };
}

type Row = { readonly budgets: typeof budgets.$inferSelect };

/**
 * The live figures of the grants of a page, at once. The grants of a bundle share one budget, which is read only once.
 * @returns those of a row; null when Redis does not answer
 */
export async function liveFiguresOf(
  redis: RedisClient,
  rows: readonly Row[],
): Promise<(row: Row) => Budget['live']> {
  const byId = new Map(rows.map(({ budgets: budget }) => [budget.id, budget]));
  const read = Array.from(byId, async ([id, budget]) => [id, await liveFigures(redis, budget)] as const);
  const live = new Map(await Promise.all(read));
  return ({ budgets: { id } }) => live.get(id) ?? null;
}
