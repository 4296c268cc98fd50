import { type RedisClient, readUsageStreams } from '@presign/limits';
import { PARTITIONS, REQUEST_LIMITS } from '@presign/schema';
import { alertFirings, alerts } from '@presign/schema/alert-tables';
import { accounts } from '@presign/schema/tables';
import { causeOf } from '@presign/service';
import { type Database, sqlState, type Transaction } from '@presign/service/database';
import { and, asc, eq, lte, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { judge } from './judge.ts';
import { readFigures } from './read-figures.ts';
import { type AlertRow, turnAlert } from './turn-alert.ts';

/** How long after an evaluation the next one is due. */
const EVERY_MS = 30_000;
/** The alerts of an account rest so many times as long as an evaluation took, so they take a twentieth of one connection at most. */
const REST_OF_WORK = 20;
/** All alerts of an account together may be evaluated so fast without a rest. */
const LIGHT_MS = EVERY_MS / REST_OF_WORK / REQUEST_LIMITS.alerts;
/** The same after a failure, and while the account is suspended. Other alerts go on. */
const PUT_OFF_MS = 300_000;

type Needs = { readonly db: Database; readonly redis: RedisClient; readonly log: Logger };

/**
 * Makes a task that evaluates the alert that is due longest. Its row is locked meanwhile, and the same transaction stores its state and writes
 * its events. So of any number of issuers one evaluates it at a time, and a crossing is announced once.
 * @returns whether there may be more
 */
export function checkAlerts({ db, redis, log }: Needs): () => Promise<boolean> {
  const readLag = lagReader(redis);
  return async () => {
    // Saves the transaction of most rounds.
    const some = await db.select({ id: alerts.id }).from(alerts).where(IS_DUE).limit(1);
    if (some.length === 0) return false;
    // It is read before the snapshot, so that a call that has left its stream is in the snapshot.
    const lagMs = await readLag();
    let taken: AlertRow | undefined;
    const began = performance.now();
    try {
      // One snapshot, because sums move on meanwhile.
      await db.transaction(
        async (tx) => {
          // Compiling a sum takes Postgres longer than reading it.
          await tx.execute(sql`set local jit = off`);
          const due = await takeDue(tx);
          taken = due?.alert;
          if (due) await evaluate(tx, due, lagMs);
        },
        { isolationLevel: 'repeatable read' },
      );
    } catch (error) {
      // 40001, serialization_failure: another issuer has just evaluated it.
      if (sqlState(error) === '40001') return true;
      if (taken === undefined) throw error;
      const { id, accountId } = taken;
      log.warn({ alert: id, account: accountId, ...causeOf(error) }, 'alert put off');
      await db
        .update(alerts)
        .set({ dueAt: sql`now() + ${PUT_OFF_MS} * interval '1 ms'` })
        .where(eq(alerts.id, id));
      await restAlerts(db, taken, performance.now() - began);
      throw error;
    }
    if (taken) await restAlerts(db, taken, performance.now() - began);
    return taken !== undefined;
  };
}

/** How long one look at the streams serves. A call that settles meanwhile is late by so much, and the next evaluation reads its window again. */
const LOOK_MS = 1_000;

/** Reads how far the ledger is behind: the age of the oldest settled call that it does not have. */
function lagReader(redis: RedisClient): () => Promise<number> {
  let looked: { readonly at: number; readonly lagMs: number } | undefined;
  return async () => {
    const at = performance.now();
    if (looked === undefined || at - looked.at > LOOK_MS)
      looked = { at, lagMs: (await readUsageStreams(redis, PARTITIONS)).oldestMs };
    return looked.lagMs;
  };
}

/** Puts off the alerts of an account after an evaluation that took long. They keep their order, and the one evaluated is the last. */
async function restAlerts(db: Database, { id, accountId }: AlertRow, workMs: number): Promise<void> {
  if (workMs <= LIGHT_MS) return;
  const until = sql`now() + ${REST_OF_WORK * workMs}::float8 * interval '1 ms'`;
  await db.execute(sql`
    update alerts set due_at = ${until} + later.place * interval '1 ms'
    from (
      select id, row_number() over (order by id = ${id}, due_at) as place from (
        select id, due_at from alerts where account_id = ${accountId} and is_enabled and due_at < ${until}
        for update skip locked
      ) as own
    ) as later
    where alerts.id = later.id`);
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

/** Evaluates an alert as of the moment that the ledger has reached, so that no call is too late for its window. */
async function evaluate(tx: Transaction, { alert, isSuspended, now }: Due, lagMs: number): Promise<void> {
  const own = eq(alerts.id, alert.id);
  const after = (ms: number) => new Date(now.getTime() + ms);
  if (isSuspended)
    return void (await tx
      .update(alerts)
      .set({ dueAt: after(PUT_OFF_MS) })
      .where(own));
  const { accountId, condition, conditionSince, checkedAt } = alert;
  const reached = new Date(Math.max(now.getTime() - lagMs, (checkedAt ?? conditionSince).getTime()));
  const asked = { accountId, nowMs: reached.getTime(), checkedMs: checkedAt?.getTime() };
  const { past, present } = await readFigures(tx, condition, asked);
  const standing = {
    isFiring: alert.firingId !== null,
    heldWindow: alert.heldWindow?.getTime() ?? Number.NEGATIVE_INFINITY,
    heldAt: alert.heldAt?.getTime() ?? Number.NEGATIVE_INFINITY,
  };
  const since = past.filter(({ endsAt }) => endsAt !== null && endsAt > conditionSince);
  const times = { nowMs: reached.getTime(), restMs: (condition.errors?.minutes ?? 0) * 60_000 };
  const { turns, after: next } = judge(standing, { past: since, present }, times);
  const firingId = await turnAlert(tx, alert, turns, now);
  await tx
    .update(alerts)
    .set({
      firingId,
      firingSince: firingId === null ? null : firingId === alert.firingId ? alert.firingSince : now,
      value: present?.value ?? null,
      threshold: present?.threshold ?? null,
      heldWindow: dateOf(next.heldWindow),
      heldAt: dateOf(next.heldAt),
      checkedAt: reached,
      dueAt: after(EVERY_MS),
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
