import { changeLimits, moveEnd, type RedisClient } from '@presign/limits';
import type { Database } from '@presign/schema/database';
import { budgets, grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';

/**
 * Writes the newest limits of a budget to Redis, and the ends of the grants whose own budget it is. One statement reads all of
 * them, so that they are of one revision. It is safe to repeat, and to overtake: Redis keeps the later revision.
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
