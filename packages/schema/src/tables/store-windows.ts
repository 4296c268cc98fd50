import { type SQL, sql } from 'drizzle-orm';
import { budgetWindows, sharedBudgets } from './budget-tables.ts';
import { budgets } from './tables.ts';

/** A database, or a transaction of it. */
type Statements = { readonly execute: (statement: SQL) => PromiseLike<unknown> };

/**
 * Stores the windows in which these shared budgets are at a time, with their present limits, unless they are stored. A window is
 * stored once, whoever asks first: its row in `budgets` is never reset. A calendar that ends before that time gives no window.
 */
export async function storeWindows(
  db: Statements,
  sharedIds: readonly string[],
  atMs: number,
): Promise<void> {
  const ids = sql.join(
    sharedIds.map((id) => sql`${id}::uuid`),
    sql`, `,
  );
  const at = sql`${new Date(atMs).toISOString()}::timestamptz`;
  // With the lock, a PATCH waits and then finds this window, or this statement waits and then finds the limits of the PATCH.
  await db.execute(sql`
    insert into ${budgets} (id, partition, shared_id, starts_at, ends_at, max_uses, cost_limit_microusd, token_limit,
      visible)
    select gen_random_uuid(), d.partition, d.id, w.starts_at, w.ends_at,
      case when d.inherits then t.max_uses else d.max_uses end,
      case when d.inherits then t.cost_limit_microusd else d.cost_limit_microusd end,
      case when d.inherits then t.token_limit else d.token_limit end,
      case when d.inherits then t.visible else d.visible end
    from ${sharedBudgets} d
      join ${budgetWindows} w on w.calendar_id = d.calendar_id and w.starts_at <= ${at}
        and (w.ends_at is null or w.ends_at > ${at})
      left join ${sharedBudgets} t on t.id = d.template_id
    where d.id in (${ids}) and d.deleted_at is null
    order by d.id
    for share of d
    on conflict do nothing`);
}
