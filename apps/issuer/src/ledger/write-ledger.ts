import type { UsageEntry } from '@presign/limits';
import { callRecord } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets, grants, ledger } from '@presign/schema/tables';
import { and, getTableColumns, gt, inArray, isNull, sql } from 'drizzle-orm';
import { queueTombstones } from '../grants/pending-changes.ts';
import { announceRevoked } from '../webhooks/announce-grants.ts';
import { announceThresholds, type ChangedBudget, recordSettled } from '../webhooks/announce-settled.ts';

/**
 * Writes settled calls to the ledger, each hold once, and adds the new ones to their budgets.
 * @returns the entries that were not written, because the ledger already has their hold
 */
export async function writeLedger(
  tx: Transaction,
  entries: readonly UsageEntry[],
): Promise<readonly UsageEntry[]> {
  const rows = entries.map(ledgerRow);
  const inserted = await tx
    .insert(ledger)
    .values(rows)
    .onConflictDoNothing()
    .returning({ holdId: ledger.holdId, accountId: ledger.accountId });
  const fresh = new Set(inserted.map((row) => row.holdId.replaceAll('-', '')));
  // A batch may contain a hold twice: its first entry counts.
  const isFirst = (entry: UsageEntry) => fresh.delete(entry.holdId);
  const counted: UsageEntry[] = [];
  const repeated: UsageEntry[] = [];
  for (const entry of entries) (isFirst(entry) ? counted : repeated).push(entry);
  await recordSettled(tx, inserted);
  await announceThresholds(tx, await addToBudgets(tx, counted), counted);
  await endOverrun(tx, rows);
  return repeated;
}

/** Adds new entries to their budgets. Returns the budgets after the change. */
async function addToBudgets(tx: Transaction, counted: readonly UsageEntry[]): Promise<ChangedBudget[]> {
  const sums = sumByBudget(counted);
  if (sums.length === 0) return [];
  return tx
    .update(budgets)
    .set({
      used: sql`${budgets.used} + each.used`,
      settledMicrousd: sql`${budgets.settledMicrousd} + each.settled`,
    })
    .from(sql`json_to_recordset(${JSON.stringify(sums)}::json) as each(id uuid, used bigint, settled bigint)`)
    .where(sql`${budgets.id} = each.id`)
    .returning(getTableColumns(budgets));
}

/**
 * Revokes a grant that has not expired and whose call cost more than its worst case: a price or a bound is wrong at its source. The gateway has
 * already ended the grant in Redis, unless it died. It locks grants after everything that locks a session, in the order of a session's
 * revocation, so that the two never deadlock.
 */
async function endOverrun(tx: Transaction, rows: readonly ReturnType<typeof ledgerRow>[]): Promise<void> {
  const over = rows.filter((row) => row.overrunMicrousd > 0).map((row) => row.grantId);
  if (over.length === 0) return;
  const ended = await tx
    .update(grants)
    .set({ revokedAt: sql`now()` })
    .where(and(inArray(grants.id, over), isNull(grants.revokedAt), gt(grants.expiresAt, sql`now()`)))
    .returning({ id: grants.id, accountId: grants.accountId });
  if (ended.length === 0) return;
  await announceRevoked(tx, ended, 'overrun');
  const ids = ended.map(({ id }) => id);
  await queueTombstones(tx, inArray(grants.id, ids), new Date());
}

function sumByBudget(entries: readonly UsageEntry[]): { id: string; used: number; settled: number }[] {
  const sums = new Map<string, { id: string; used: number; settled: number }>();
  for (const entry of entries) {
    for (const id of entry.budgetIds) {
      const sum = sums.get(id) ?? { id, used: 0, settled: 0 };
      sum.used += entry.uses;
      sum.settled += entry.costMicrousd ?? 0;
      sums.set(id, sum);
    }
  }
  // One order for all issuers, so that two transactions never deadlock on budgets.
  return [...sums.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function ledgerRow(entry: UsageEntry) {
  const record = callRecord.parse(JSON.parse(entry.record));
  return {
    holdId: entry.holdId,
    accountId: record.acc,
    sessionId: record.ses,
    grantId: record.grt,
    provider: storable(record.prv),
    model: storableOrNull(record.mod),
    server: storableOrNull(record.srv),
    tool: storableOrNull(record.tol),
    externalUser: record.usr ?? null,
    uses: entry.uses,
    costMicrousd: entry.costMicrousd ?? null,
    overrunMicrousd: record.ovr ?? 0,
    inputTokens: record.inp ?? null,
    outputTokens: record.out ?? null,
    status: record.sta ?? null,
    outcome: entry.outcome,
    startedAt: new Date(record.beg),
    // A stream id starts with the clock of Redis in milliseconds.
    settledAt: new Date(Number(entry.id.split('-')[0])),
  };
}

/**
 * The holder of a URL chooses the name of a model or a tool. It must not stop the ledger: Postgres refuses NUL in a
 * text.
 */
const storable = (text: string) => text.replaceAll('\0', '').slice(0, NAME_MAX_CHARS);

const storableOrNull = (text: string | undefined) => (text === undefined ? null : storable(text));

const NAME_MAX_CHARS = 255;
