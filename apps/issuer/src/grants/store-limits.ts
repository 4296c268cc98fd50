import { changeLimits, moveEnd, type RedisClient } from '@presign/limits';
import { type BudgetLimits, RefusedError } from '@presign/schema';
import { budgets, grants } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { asc, eq, inArray } from 'drizzle-orm';
import { announcedUnder } from '../events/levels.ts';

type Budget = typeof budgets.$inferSelect;

/** Locks a budget before the grants of it are locked, as the ledger does. */
export async function lockBudget(tx: Transaction, id: string): Promise<Budget> {
  const [budget] = await lockBudgets(tx, [id]);
  if (!budget) throw new RefusedError({ code: 'not_found' });
  return budget;
}

/** Locks budgets in the order in which the ledger adds to them. */
export const lockBudgets = (tx: Transaction, ids: readonly string[]): Promise<Budget[]> =>
  tx
    .select()
    .from(budgets)
    .where(inArray(budgets.id, [...ids]))
    .orderBy(asc(budgets.id))
    .for('no key update');

/** Stores the next revision of a locked budget. A threshold that the new limits raise above the use is announced again. */
export async function storeLimits(tx: Transaction, budget: Budget, limits: BudgetLimits): Promise<void> {
  await tx
    .update(budgets)
    .set({
      ...limits,
      revision: budget.revision + 1,
      ...announcedUnder(budget, { ...limits, tokenLimit: budget.tokenLimit }),
    })
    .where(eq(budgets.id, budget.id));
}

/**
 * Writes the newest limits of a budget to Redis, and the ends of the grants that own this budget. One statement reads all of them, so
 * they have the same revision. Calls may repeat and run in any order: Redis keeps the highest revision.
 */
export async function writeLimits(db: Database, redis: RedisClient, budgetId: string): Promise<void> {
  const { id, credentialId, expiresAt, signedUntil } = grants;
  const rows = await db
    .select({ budget: budgets, grant: { id, credentialId, expiresAt, signedUntil } })
    .from(budgets)
    .leftJoin(grants, eq(grants.budgetId, budgets.id))
    .where(eq(budgets.id, budgetId));
  const budget = rows[0]?.budget;
  if (!budget) return;
  const own = rows.flatMap(({ grant }) => grant ?? []);
  const ends = own.map((grant) => (grant.signedUntil ?? grant.expiresAt).getTime());
  // A window outlives every call that was admitted in it.
  if (budget.endsAt) ends.push(budget.endsAt.getTime());
  const { partition, revision } = budget;
  // First the budget, so that it never ends before its grants.
  await changeLimits(redis, partition, budget, ends.length === 0 ? undefined : Math.max(...ends));
  await Promise.all(
    own.map(async (grant) => {
      if (grant.signedUntil === null || grant.credentialId === null) return;
      const expiresAtMs = grant.expiresAt.getTime();
      const signedUntilMs = grant.signedUntil.getTime();
      const moved = { id: grant.id, credentialId: grant.credentialId, revision, expiresAtMs, signedUntilMs };
      await moveEnd(redis, partition, moved);
    }),
  );
}
