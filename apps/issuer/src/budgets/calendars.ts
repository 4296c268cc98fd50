import type { BudgetWindow } from '@presign/schema';
import { budgetCalendars, budgetWindows } from '@presign/schema/budget-tables';
import { budgets, pendingChanges } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, inArray, isNotNull, lt, notExists, type SQL, sql } from 'drizzle-orm';
import { Temporal } from 'temporal-polyfill';
import type { RouteDeps } from '../middleware/route-deps.ts';

/** Windows that are stored before they begin. So gateways go on for weeks without an issuer. */
const AHEAD: Readonly<Record<BudgetWindow, number>> = {
  lifetime: 1,
  hour: 14 * 24,
  day: 120,
  week: 60,
  month: 36,
};

type Row = typeof budgetCalendars.$inferSelect;

/** Stores a calendar with its next windows, unless it is stored. Returns its id. */
export async function storeCalendar(tx: Transaction, calendar: Calendar, nowMs: number): Promise<string> {
  const { kind, timeZone, anchorMs } = calendar;
  const id =
    kind === 'lifetime' ? kind : [kind, timeZone, ...(anchorMs === undefined ? [] : [anchorMs])].join(' ');
  const row = { id, kind, timeZone, anchor: anchorMs === undefined ? null : new Date(anchorMs) };
  const [made] = await tx.insert(budgetCalendars).values(row).onConflictDoNothing().returning();
  // A window more, because the clock of Redis may be behind.
  if (made) await storeWindows(tx, made, before(calendar, nowMs));
  return id;
}

/** The start of the window before the present one. */
function before(calendar: Calendar, nowMs: number): number {
  const [{ startsMs } = { startsMs: 0 }] = windowsFrom(calendar, nowMs);
  const [earlier] = windowsFrom(calendar, startsMs - 1);
  return earlier?.startsMs ?? startsMs;
}

const HALF = sql`case ${budgetCalendars.kind} when 'hour' then interval '7 days' when 'day' then interval '60 days'
  when 'week' then interval '30 weeks' else interval '18 months' end`;
/** Calendars that one transaction extends. */
const BATCH = 20;

/**
 * Stores further windows of calendars before half of those that are known have ended. Any number of issuers may run it.
 * @returns whether there may be more
 */
export function extendCalendars(db: Database, now: () => number): Promise<boolean> {
  return db.transaction(async (tx) => {
    const at = sql`${new Date(now()).toISOString()}::timestamptz`;
    const due = await tx
      .select()
      .from(budgetCalendars)
      .where(sql`${budgetCalendars.knownUntil} < ${at} + ${HALF}`)
      .limit(BATCH)
      .for('update', { skipLocked: true });
    for (const row of due) if (row.knownUntil) await storeWindows(tx, row, row.knownUntil.getTime(), now());
    return due.length === BATCH;
  });
}

/** Stores the windows from a moment at which one begins, as many as are kept ahead of now. */
async function storeWindows(tx: Transaction, row: Row, fromMs: number, nowMs = fromMs): Promise<void> {
  const calendar = { kind: row.kind, timeZone: row.timeZone, anchorMs: row.anchor?.getTime() };
  const windows: Bounds[] = [];
  let ahead = 0;
  for (const { startsMs, endsMs } of windowsFrom(calendar, fromMs)) {
    // If the rules of a time zone have changed since, the next window begins where the last one ended.
    windows.push({ startsMs: Math.max(startsMs, row.kind === 'lifetime' ? 0 : fromMs), endsMs });
    if (endsMs === undefined || endsMs > nowMs) ahead++;
    if (ahead > AHEAD[row.kind] + 1) break;
  }
  const rows = windows.map(({ startsMs, endsMs }) => ({
    calendarId: row.id,
    startsAt: new Date(startsMs),
    endsAt: endsMs === undefined ? null : new Date(endsMs),
  }));
  await tx.insert(budgetWindows).values(rows).onConflictDoNothing();
  const knownUntil = rows.at(-1)?.endsAt ?? null;
  await tx.update(budgetCalendars).set({ knownUntil }).where(eq(budgetCalendars.id, row.id));
}

/** The windows of one kind in one time zone. */
export type Calendar = {
  readonly kind: BudgetWindow;
  readonly timeZone: string;
  /** A moment at which a window begins, in Unix ms. Undefined: windows begin with the hour, the day, Monday or the month. */
  readonly anchorMs: number | undefined;
};

/** A window, in Unix ms. */
type Bounds = { readonly startsMs: number; readonly endsMs: number | undefined };

/** A Monday, and the first day of a month. */
const ORIGIN = Temporal.PlainDateTime.from('2001-01-01T00:00');

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const STEPS = {
  hour: { about: HOUR_MS, step: (n: number) => ({ hours: n }) },
  day: { about: DAY_MS, step: (n: number) => ({ days: n }) },
  week: { about: 7 * DAY_MS, step: (n: number) => ({ weeks: n }) },
  month: { about: 30.436875 * DAY_MS, step: (n: number) => ({ months: n }) },
};

/**
 * The windows from the one that contains a moment, without end and without gaps. Each boundary is counted from the first one, so
 * that a month that begins on the 31st does so again after February. A local time that daylight saving time skips is the one
 * after it, and the first of two is taken. An hour is always as long.
 */
export function* windowsFrom(calendar: Calendar, atMs: number): Generator<Bounds> {
  if (calendar.kind === 'lifetime') {
    yield { startsMs: 0, endsMs: undefined };
    return;
  }
  const { at, about } = boundaries(calendar.kind, calendar);
  let n = Math.floor((atMs - at(0)) / about) - 2;
  while (at(n + 1) <= atMs) n++;
  for (; ; n++) {
    const [startsMs, endsMs] = [at(n), at(n + 1)];
    // A zone may skip a whole day.
    if (startsMs < endsMs) yield { startsMs, endsMs };
  }
}

/** The n-th boundary in Unix ms, and how far two are apart, about. */
function boundaries(kind: Exclude<BudgetWindow, 'lifetime'>, { timeZone, anchorMs }: Calendar) {
  const { about, step } = STEPS[kind];
  const local =
    anchorMs === undefined
      ? ORIGIN
      : Temporal.Instant.fromEpochMilliseconds(anchorMs).toZonedDateTimeISO(timeZone).toPlainDateTime();
  const firstMs = anchorMs ?? local.toZonedDateTime(timeZone).epochMilliseconds;
  const at = (n: number) =>
    kind === 'hour' || n === 0
      ? firstMs + n * HOUR_MS
      : local.add(step(n)).toZonedDateTime(timeZone).epochMilliseconds;
  return { at, about };
}

/** Rows that one statement deletes. */
const DELETED_AT_ONCE = 5_000;
/** Longer than a call can take, and the ledger be behind. */
const LEAST_DAYS = 7;

/**
 * Deletes windows of budgets some days after their end, and those of calendars. Their calls stay in the ledger. Any number of issuers may
 * run it.
 * @returns whether there may be more
 */
export async function forgetWindows(
  { db, now }: Pick<RouteDeps, 'db' | 'now'>,
  keptDays: number,
): Promise<boolean> {
  const days = Math.max(keptDays, LEAST_DAYS);
  const cutoff: SQL = sql`${new Date(now()).toISOString()}::timestamptz - ${days} * interval '1 day'`;
  const pending = db.select().from(pendingChanges).where(eq(pendingChanges.budgetId, budgets.id));
  const old = db
    .select({ id: budgets.id })
    .from(budgets)
    .where(and(isNotNull(budgets.sharedId), lt(budgets.endsAt, cutoff), notExists(pending)))
    .limit(DELETED_AT_ONCE)
    .for('update', { skipLocked: true });
  const gone = await db.delete(budgets).where(inArray(budgets.id, old)).returning({ id: budgets.id });
  await db.delete(budgetWindows).where(lt(budgetWindows.endsAt, cutoff));
  return gone.length === DELETED_AT_ONCE;
}
