import { type BudgetLimits, RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets } from '@presign/schema/tables';
import { asc, eq, inArray } from 'drizzle-orm';
import type { Context } from 'hono';
import type { IssuerEnv } from '../deps.ts';
import { announcedUnder } from '../webhooks/levels.ts';

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

/** Stores the next revision of a locked budget. Levels that the new limits leave behind are announced again. */
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

const etagOf = ({ revision }: { readonly revision: number }) => `"${revision}"`;

/** Sends the revision of an answer, which a later change may require. */
export const sendRevision = (c: Context<IssuerEnv>, budget: { readonly revision: number }) =>
  c.header('etag', etagOf(budget));

/**
 * Refuses a change that was meant for another revision (RFC 9110 §13.1.1).
 * @throws RefusedError `revision_mismatch`
 */
export function checkRevision(c: Context<IssuerEnv>, budget: { readonly revision: number }): void {
  const wanted = c.req.header('if-match')?.split(',');
  if (wanted === undefined || wanted.some((tag) => ['*', etagOf(budget)].includes(tag.trim()))) return;
  throw new RefusedError({ code: 'revision_mismatch', param: 'If-Match' });
}
