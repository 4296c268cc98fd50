import type { BudgetWindow } from '@presign/schema';
import { budgetCalendars, budgetWindows } from '@presign/schema/budget-tables';
import type { Database, Transaction } from '@presign/schema/database';
import { eq, sql } from 'drizzle-orm';
import { type Bounds, type Calendar, windowsFrom } from './window-bounds.ts';

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
