import { RefusedError } from '@presign/schema';
import { type Database, isDatabaseOutage } from '@presign/schema/database';
import { partitions } from '@presign/schema/ledger-tables';
import { accounts, budgets, credentials, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';

export type GrantReader = ReturnType<typeof grantReader>;

/**
 * Reads a grant with its limits. One statement reads one snapshot: the budgets' sums belong to the partition's cursor. It is
 * built once, because building it takes 400 µs of CPU.
 */
export function grantReader(db: Database) {
  let statement: ReturnType<typeof grantStatement> | undefined;
  return async (id: string) => {
    statement ??= grantStatement(db);
    const [row] = await statement.execute({ id }).catch((error: unknown) => {
      throw isDatabaseOutage(error)
        ? new RefusedError({ code: 'database_unavailable', retryAfterSeconds: 1 }, { cause: error })
        : error;
    });
    return row;
  };
}

function grantStatement(db: Database) {
  const shared = alias(budgets, 'shared');
  return db
    .select()
    .from(grants)
    .innerJoin(accounts, eq(accounts.id, grants.accountId))
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(credentials, eq(credentials.id, grants.credentialId))
    .innerJoin(partitions, eq(partitions.id, budgets.partition))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .leftJoin(shared, eq(shared.id, virtualKeys.budgetId))
    .where(eq(grants.id, sql.placeholder('id')))
    .prepare('read_grant');
}
