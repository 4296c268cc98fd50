import { budgetWindows } from '@presign/schema/budget-tables';
import { budgets, pendingChanges } from '@presign/schema/tables';
import { and, eq, inArray, isNotNull, lt, notExists, type SQL, sql } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';

/** Rows that one statement deletes. */
const BATCH = 5_000;
/** Longer than a call can take, and the ledger be behind. */
const LEAST_DAYS = 7;

/**
 * Deletes windows of budgets some days after their end, and those of calendars. Their calls stay in the ledger. Any number of issuers may
 * run it.
 * @returns whether there may be more
 */
export async function forgetWindows(
  { db, now }: Pick<IssuerDeps, 'db' | 'now'>,
  keptDays: number,
): Promise<boolean> {
  const days = Math.max(keptDays, LEAST_DAYS);
  const cutoff: SQL = sql`${new Date(now()).toISOString()}::timestamptz - ${days} * interval '1 day'`;
  const pending = db.select().from(pendingChanges).where(eq(pendingChanges.budgetId, budgets.id));
  const old = db
    .select({ id: budgets.id })
    .from(budgets)
    .where(and(isNotNull(budgets.sharedId), lt(budgets.endsAt, cutoff), notExists(pending)))
    .limit(BATCH)
    .for('update', { skipLocked: true });
  const gone = await db.delete(budgets).where(inArray(budgets.id, old)).returning({ id: budgets.id });
  await db.delete(budgetWindows).where(lt(budgetWindows.endsAt, cutoff));
  return gone.length === BATCH;
}
