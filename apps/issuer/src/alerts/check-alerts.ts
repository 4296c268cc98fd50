import { alertFirings, alerts } from '@presign/schema/alert-tables';
import { accounts } from '@presign/schema/tables';
import { type Database, sqlState, type Transaction } from '@presign/service/database';
import { and, asc, eq, lte, sql } from 'drizzle-orm';
import { judge } from './judge.ts';
import { readFigures } from './read-figures.ts';
import { type AlertRow, turnAlert } from './turn-alert.ts';

/** How long after an evaluation the next one is due. */
const EVERY_MS = 30_000;
/** An evaluation that takes long is due again later, so that alerts of a busy account take a twentieth of one connection at most. */
const REST_OF_WORK = 20;
/** The same after a failure, and while the account is suspended. Other alerts go on. */
const PUT_OFF_MS = 300_000;

/**
 * Makes a task that evaluates the alert that is due longest. Its row is locked meanwhile, and the same transaction stores its state and writes
 * its events. So of any number of issuers one evaluates it at a time, and a crossing is announced once.
 * @returns whether there may be more
 */
export function checkAlerts(db: Database): () => Promise<boolean> {
  return async () => {
    // Saves the transaction of most rounds.
    const some = await db.select({ id: alerts.id }).from(alerts).where(IS_DUE).limit(1);
    if (some.length === 0) return false;
    let taken: string | undefined;
    try {
      // One snapshot, because sums move on meanwhile.
      return await db.transaction(
        async (tx) => {
          const due = await takeDue(tx);
          taken = due?.alert.id;
          if (due) await evaluate(tx, due);
          return due !== undefined;
        },
        { isolationLevel: 'repeatable read' },
      );
    } catch (error) {
      // 40001, serialization_failure: another issuer has just evaluated it.
      if (sqlState(error) === '40001') return true;
      if (taken !== undefined)
        await db
          .update(alerts)
          .set({ dueAt: sql`now() + ${PUT_OFF_MS} * interval '1 ms'` })
          .where(eq(alerts.id, taken));
      throw error;
    }
  };
}

const IS_DUE = and(eq(alerts.isEnabled, true), lte(alerts.dueAt, sql`now()`));

/** A due alert, locked, with the time of Postgres: no clock of an issuer decides which window it is. */
type Due = { readonly alert: AlertRow; readonly isSuspended: boolean; readonly now: Date };

async function takeDue(tx: Transaction): Promise<Due | undefined> {
  const [due] = await tx
    .select({
      alert: alerts,
      isSuspended: sql<boolean>`${accounts.suspendedAt} is not null`,
      now: sql`now()`.mapWith(alerts.dueAt),
    })
    .from(alerts)
    .innerJoin(accounts, eq(accounts.id, alerts.accountId))
    .where(IS_DUE)
    .orderBy(asc(alerts.dueAt))
    .limit(1)
    .for('update', { of: alerts, skipLocked: true });
  return due;
}

async function evaluate(tx: Transaction, { alert, isSuspended, now }: Due): Promise<void> {
  const began = performance.now();
  const own = eq(alerts.id, alert.id);
  const after = (ms: number) => new Date(now.getTime() + ms);
  if (isSuspended)
    return void (await tx
      .update(alerts)
      .set({ dueAt: after(PUT_OFF_MS) })
      .where(own));
  const { accountId, condition, conditionSince } = alert;
  const asked = { accountId, nowMs: now.getTime(), checkedMs: alert.checkedAt?.getTime() };
  const { past, present } = await readFigures(tx, condition, asked);
  const standing = {
    isFiring: alert.firingId !== null,
    heldWindow: alert.heldWindow?.getTime() ?? Number.NEGATIVE_INFINITY,
    heldAt: alert.heldAt?.getTime() ?? Number.NEGATIVE_INFINITY,
  };
  const since = past.filter(({ endsAt }) => endsAt !== null && endsAt > conditionSince);
  const times = { nowMs: now.getTime(), restMs: (condition.errors?.minutes ?? 0) * 60_000 };
  const { turns, after: next } = judge(standing, { past: since, present }, times);
  const firingId = await turnAlert(tx, alert, turns, now);
  const workMs = performance.now() - began;
  await tx
    .update(alerts)
    .set({
      firingId,
      firingSince: firingId === null ? null : firingId === alert.firingId ? alert.firingSince : now,
      value: present?.value ?? null,
      threshold: present?.threshold ?? null,
      heldWindow: dateOf(next.heldWindow),
      heldAt: dateOf(next.heldAt),
      checkedAt: now,
      dueAt: after(Math.max(EVERY_MS, REST_OF_WORK * workMs)),
    })
    .where(own);
}

const dateOf = (ms: number) => (Number.isFinite(ms) ? new Date(ms) : null);

/** How long firings stay in the history after their end, as deliveries do. */
const KEPT_DAYS = 30;
/** Rows that one statement deletes. */
const BATCH = 1_000;

/**
 * Deletes firings that ended long ago.
 * @returns whether there may be more
 */
export async function forgetFirings(db: Database): Promise<boolean> {
  const old = lte(alertFirings.resolvedAt, sql`now() - ${KEPT_DAYS} * interval '1 day'`);
  const some = sql`ctid in (select ctid from ${alertFirings} where ${old} limit ${BATCH})`;
  const gone = await db.delete(alertFirings).where(some).returning({ id: alertFirings.id });
  return gone.length === BATCH;
}
