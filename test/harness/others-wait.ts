import type { Transaction } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { eventually } from './eventually.ts';
import type { Stack } from './stack.ts';

/**
 * Resolves once other connections wait for locks of this transaction. The embedded engine has one connection, which
 * the transaction keeps, so there everything waits.
 */
export async function othersWait(stack: Stack, tx: Transaction, count = 1): Promise<void> {
  if (stack.databaseUrl === undefined) return;
  await eventually(async () => {
    const [found] = (await tx.execute(
      sql`select count(*)::int as waiting from pg_stat_activity
        where datname = current_database() and pg_backend_pid() = any(pg_blocking_pids(pid))`,
    )) as unknown as { readonly waiting: number }[];
    return (found?.waiting ?? 0) >= count ? true : undefined;
  });
}
