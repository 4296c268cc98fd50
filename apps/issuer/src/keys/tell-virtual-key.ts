import type { RedisClient } from '@presign/limits';
import { type Budget, RefusedError, type VirtualKeyAnswer } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { budgets, credentials, virtualKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import { liveFigures } from '../grants/live-figures.ts';
import { micros } from '../page.ts';

/** A virtual key with what belongs to it. */
export type VirtualKeyRow = {
  readonly key: typeof virtualKeys.$inferSelect;
  readonly version: number;
  readonly budget: typeof budgets.$inferSelect | null;
};

/** What an account is told of its virtual key: nothing of the key itself. */
export async function tellVirtualKey(
  redis: RedisClient,
  { key, version, budget }: VirtualKeyRow,
): Promise<VirtualKeyAnswer> {
  return {
    id: key.id,
    name: key.name,
    provider: key.provider,
    config: key.config,
    budget: budget && (await tellBudget(redis, budget)),
    version,
    created_at: key.createdAt.getTime() / 1000,
    revoked_at: key.revokedAt && key.revokedAt.getTime() / 1000,
  };
}

/**
 * A virtual key of the account.
 * @throws RefusedError `not_found`
 */
export async function readVirtualKey(db: Database, accountId: string, id: string): Promise<VirtualKeyRow> {
  const [row] = await selectVirtualKeys(db).where(ownVirtualKey(accountId, id));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

/** Virtual keys with what belongs to them, and their place in the list. */
export const selectVirtualKeys = (db: Database | Transaction) =>
  db
    .select({
      id: virtualKeys.id,
      micros: micros(virtualKeys.createdAt),
      key: virtualKeys,
      version: credentials.version,
      budget: budgets,
    })
    .from(virtualKeys)
    .innerJoin(credentials, eq(credentials.id, virtualKeys.credentialId))
    .leftJoin(budgets, eq(budgets.id, virtualKeys.budgetId));

export const ownVirtualKey = (accountId: string, id: string) =>
  and(eq(virtualKeys.accountId, accountId), eq(virtualKeys.id, id));

async function tellBudget(redis: RedisClient, budget: typeof budgets.$inferSelect): Promise<Budget> {
  return {
    max_uses: budget.maxUses ?? -1,
    cost_limit: budget.costLimitMicrousd,
    settled: { used: budget.used, spent: budget.settledMicrousd },
    live: await liveFigures(redis, budget),
  };
}
