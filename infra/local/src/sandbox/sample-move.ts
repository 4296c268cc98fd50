import { addLateCalls, addToHours, holdMarks, refusedDays } from '@presign/issuer';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { callHours, ledger, refusalDays, refusedCalls } from '@presign/schema/ledger-tables';
import { grants, sessions } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { eq, inArray, min, type SQL, sql } from 'drizzle-orm';
import { mixed } from './sample-people.ts';

/** A call, and when it is to have ended. */
export type Moved = { readonly requestId: string; readonly atMs: number };

/**
 * Moves the calls of an account, passed, failed and refused, to other times, its URLs to before their first call, and its budgets to before
 * its URLs.
 */
export async function moveCalls(
  db: Database,
  accountId: string,
  calls: readonly Moved[],
  refused: readonly Moved[],
): Promise<void> {
  await refusedDays(db).make(refused.map(({ atMs }) => new Date(atMs)));
  await db.transaction(async (tx) => {
    // Sums by day must not move on between the steps.
    await holdMarks(tx);
    for (let at = 0; at < calls.length; at += BATCH) await moveSome(tx, calls.slice(at, at + BATCH), at);
    await moveRefused(tx, accountId, refused);
    await moveUrls(tx, accountId);
    await moveBudgets(tx, accountId);
    const rows = await tx.select().from(ledger).where(eq(ledger.accountId, accountId));
    await addLateCalls(
      tx,
      rows.map(({ holdId }) => holdId),
    );
    await tx.delete(callHours).where(eq(callHours.accountId, accountId));
    await addToHours(tx, rows);
  });
}

/** Calls of one statement. */
const BATCH = 200;

/** The sandbox answers within milliseconds, so durations are written, too. */
async function moveSome(tx: Transaction, calls: readonly Moved[], from: number): Promise<void> {
  const values = calls.map(({ requestId, atMs }, at) => {
    const first = 150 + (mixed(from + at) % 900);
    const all = first + 100 + (mixed(from + at + 7) % 2_400);
    return sql`(${requestId}::uuid, ${new Date(atMs).toISOString()}::timestamptz, ${first}::int, ${all}::int)`;
  });
  await tx.execute(sql`update ${ledger} set settled_at = each.at, first_byte_ms = each.first, total_ms = each.total,
      started_at = each.at - each.total * interval '1 ms', status = coalesce(status, 200)
    from (values ${sql.join(values, sql`, `)}) as each(id, at, first, total) where request_id = each.id`);
}

async function moveRefused(tx: Transaction, accountId: string, calls: readonly Moved[]): Promise<void> {
  for (const { requestId, atMs } of calls)
    await tx
      .update(refusedCalls)
      .set({ refusedAt: new Date(atMs) })
      .where(eq(refusedCalls.requestId, requestId));
  // A call with a name counts for its code, too.
  await tx.delete(refusalDays).where(eq(refusalDays.accountId, accountId));
  await tx.execute(sql`insert into ${refusalDays} (account_id, day, code, name, calls)
    select account_id, (refused_at at time zone 'UTC')::date, code, each.name, count(*) from ${refusedCalls}
    cross join lateral (select '' as name union select coalesce(${refusedCalls.name}, '')) as each
    where account_id = ${accountId}::uuid group by 1, 2, 3, 4`);
}

async function moveUrls(tx: Transaction, accountId: string): Promise<void> {
  const firstCalls = tx
    .select({ grantId: ledger.grantId, first: min(ledger.startedAt).as('first') })
    .from(ledger)
    .where(eq(ledger.accountId, accountId))
    .groupBy(ledger.grantId)
    .as('calls');
  const before = (first: SQL) => sql`least(${grants.issuedAt}, ${first} - interval '10 minutes')`;
  await tx
    .update(grants)
    .set({ issuedAt: before(sql`${firstCalls.first}`) })
    .from(firstCalls)
    .where(eq(grants.id, firstCalls.grantId));
  const own = tx.select({ id: grants.sessionId }).from(grants).where(eq(grants.accountId, accountId));
  await tx
    .update(sessions)
    .set({ createdAt: sql`(select min(issued_at) from ${grants} where session_id = ${sessions.id})` })
    .where(inArray(sessions.id, own));
}

async function moveBudgets(tx: Transaction, accountId: string): Promise<void> {
  await tx
    .update(sharedBudgets)
    .set({ createdAt: sql`(select min(issued_at) from ${grants} where account_id = ${accountId}::uuid)` })
    .where(eq(sharedBudgets.accountId, accountId));
}
