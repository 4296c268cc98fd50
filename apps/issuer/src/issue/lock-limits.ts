import { sharedBudgets } from '@presign/schema/budget-tables';
import { budgets } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { asc, eq, inArray, or } from 'drizzle-orm';

/** The budgets that a new URL draws on next to its own: that of its virtual key, and the shared ones. */
type Drawn = { readonly budgetId: string | undefined; readonly sharedIds: readonly string[] | undefined };

/**
 * Locks the limits of these budgets until the URL is written, and reads what they limit. A first limit that is set meanwhile waits and
 * finds the URL, or is found here. Only a URL that such a limit would end needs this, so that budgets of many URLs are not
 * locked for each of them.
 */
export async function lockLimits(tx: Transaction, { budgetId, sharedIds = [] }: Drawn) {
  // Postgres returns the newest version of a row that it locks, so each statement locks all that it reads.
  const ofKey =
    budgetId === undefined
      ? []
      : await tx.select().from(budgets).where(eq(budgets.id, budgetId)).for('share');
  const own = inArray(sharedBudgets.id, [...sharedIds]);
  const templates = tx.select({ id: sharedBudgets.templateId }).from(sharedBudgets).where(own);
  const shared =
    sharedIds.length === 0
      ? []
      : await tx
          .select()
          .from(sharedBudgets)
          .where(or(own, inArray(sharedBudgets.id, templates)))
          .orderBy(asc(sharedBudgets.id))
          .for('share');
  const byId = new Map(shared.map((each) => [each.id, each]));
  const present = sharedIds.flatMap((id) => {
    const budget = byId.get(id);
    const source = budget?.inherits ? byId.get(budget.templateId ?? '') : budget;
    return budget && !budget.deletedAt && source ? [source] : [];
  });
  return {
    cost: [...ofKey, ...present].some(({ costLimitMicrousd }) => costLimitMicrousd !== null),
    tokens: present.some(({ tokenLimit }) => tokenLimit !== null),
  };
}
