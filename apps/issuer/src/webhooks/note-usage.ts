import type { SettledCall } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { ledger } from '@presign/schema/tables';
import { pendingUsage } from '@presign/schema/webhook-tables';
import { asc, inArray } from 'drizzle-orm';
import { listenersOf, type Noted, noteEvents } from './events.ts';

/** A call is about 400 bytes: an event stays below the 20 kB that Standard Webhooks recommends. */
const CALLS_PER_EVENT = 40;
/** Calls that one transaction tells of. */
const BATCH = 1_000;

/** Notes settled calls for a later `usage.settled`, which tells of many. */
export async function noteSettled(
  tx: Transaction,
  calls: readonly { readonly holdId: string; readonly accountId: string }[],
): Promise<void> {
  const accountIds = calls.map((call) => call.accountId);
  const listening = await listenersOf(tx, accountIds, 'usage.settled');
  const wanted = calls
    .filter((call) => listening.has(call.accountId))
    .map(({ holdId, accountId }) => ({ holdId, accountId }));
  if (wanted.length > 0) await tx.insert(pendingUsage).values(wanted).onConflictDoNothing();
}

/**
 * Makes events of the calls that were noted since; any number of issuers may, and each call is in one event.
 * @returns whether there may be more
 */
export async function tellUsage(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const open = tx.select({ id: pendingUsage.holdId }).from(pendingUsage).limit(BATCH);
    const next = tx.$with('next').as(open.for('update', { skipLocked: true }));
    const taken = await tx
      .with(next)
      .delete(pendingUsage)
      .where(inArray(pendingUsage.holdId, tx.select({ id: next.id }).from(next)))
      .returning({ id: pendingUsage.holdId });
    if (taken.length === 0) return false;
    const ids = taken.map((row) => row.id);
    const calls = await tx
      .select()
      .from(ledger)
      .where(inArray(ledger.holdId, ids))
      .orderBy(asc(ledger.settledAt));
    await noteEvents(tx, toEvents(calls));
    return taken.length === BATCH;
  });
}

type Row = typeof ledger.$inferSelect;

function toEvents(rows: readonly Row[]): Noted[] {
  const byAccount = new Map<string, SettledCall[]>();
  for (const row of rows) {
    const calls = byAccount.get(row.accountId);
    if (calls) calls.push(toCall(row));
    else byAccount.set(row.accountId, [toCall(row)]);
  }
  return Array.from(byAccount).flatMap(([accountId, calls]) =>
    inParts(calls).map((part): Noted => {
      const last = part.at(-1)?.settled_at ?? 0;
      const timestamp = new Date(last * 1000).toISOString();
      return { accountId, event: { type: 'usage.settled', timestamp, data: { calls: part } } };
    }),
  );
}

const inParts = (calls: SettledCall[]): SettledCall[][] =>
  Array.from({ length: Math.ceil(calls.length / CALLS_PER_EVENT) }, (_, i) =>
    calls.slice(i * CALLS_PER_EVENT, (i + 1) * CALLS_PER_EVENT),
  );

const toCall = (row: Row): SettledCall => ({
  id: row.holdId,
  session_id: row.sessionId,
  grant_id: row.grantId,
  external_user: row.externalUser,
  provider: row.provider,
  model: row.model,
  server: row.server,
  tool: row.tool,
  uses: row.uses,
  cost: row.costMicrousd,
  overrun: row.overrunMicrousd,
  input_tokens: row.inputTokens,
  output_tokens: row.outputTokens,
  status: row.status,
  outcome: row.outcome,
  started_at: row.startedAt.getTime() / 1000,
  settled_at: row.settledAt.getTime() / 1000,
});
