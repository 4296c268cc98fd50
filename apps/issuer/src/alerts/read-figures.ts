import { type AlertCondition, JUMP_WINDOWS, OF_PROVIDER_OR_GATEWAY } from '@presign/schema';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets } from '@presign/schema/tables';
import type { TextRow, Transaction } from '@presign/service/database';
import { and, desc, eq, gt, isNull, lte, or, sql } from 'drizzle-orm';
import { Temporal } from 'temporal-polyfill';
import { windowsFrom } from '../budgets/calendars.ts';
import { outcomeInSql } from '../usage/outcome-in-sql.ts';
import { divideAsked, findMarks, selectUsage } from '../usage/sum-calls.ts';
import type { Reading, Readings } from './judge.ts';

/** The account of an alert, and the moment of which its figures are wanted: the ledger has all calls that settled before. */
export type Asked = {
  readonly accountId: string;
  readonly nowMs: number;
  /** That moment of the evaluation before. Undefined: the alert is new, and only the present window counts. */
  readonly checkedMs: number | undefined;
};

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/**
 * Reads the figures of a condition: of the present window, of the one before it, whose calls may have come late, and of those that ended
 * while nothing was evaluated.
 */
export function readFigures(tx: Transaction, condition: AlertCondition, asked: Asked): Promise<Readings> {
  const { budget, spend, spend_jump: jump, errors } = condition;
  if (budget) return readBudget(tx, budget, asked);
  if (spend) return readSpend(tx, spend, asked, async () => spend.amount);
  if (jump)
    return readSpend(tx, jump, asked, async (window) =>
      Math.max(jump.at_least, Math.ceil(jump.factor * (await meanBefore(tx, jump, asked, window)))),
    );
  if (errors) return readErrors(tx, errors, asked);
  throw new Error('an alert without a condition');
}

/** Calls of a window of a budget settle up to so much after its end. */
const LATE_MS = HOUR_MS;

async function readBudget(
  tx: Transaction,
  { budget: id, percent }: NonNullable<AlertCondition['budget']>,
  { accountId, nowMs, checkedMs = nowMs }: Asked,
): Promise<Readings> {
  const own = and(eq(sharedBudgets.id, id), eq(sharedBudgets.accountId, accountId));
  const rows = await tx
    .select({ window: budgets })
    .from(sharedBudgets)
    .innerJoin(budgets, eq(budgets.sharedId, sharedBudgets.id))
    .where(
      and(
        own,
        isNull(sharedBudgets.deletedAt),
        lte(budgets.startsAt, new Date(nowMs)),
        or(isNull(budgets.endsAt), gt(budgets.endsAt, new Date(checkedMs - LATE_MS))),
      ),
    )
    .orderBy(desc(budgets.startsAt))
    .limit(WINDOWS_MAX);
  const readings = rows.toReversed().flatMap(({ window }) => readingOf(window, percent));
  const isOver = ({ endsAt }: Reading) => endsAt !== null && endsAt.getTime() <= nowMs;
  return { past: readings.filter(isOver), present: readings.find((each) => !isOver(each)) };
}

/** The fullest limit of a window. Without a limit there is no reading. */
function readingOf(window: typeof budgets.$inferSelect, percent: number): Reading[] {
  const { used, maxUses, settledMicrousd, costLimitMicrousd, usedTokens, tokenLimit, startsAt, endsAt } =
    window;
  const parts = [
    { figure: used, most: maxUses },
    { figure: settledMicrousd, most: costLimitMicrousd },
    { figure: usedTokens, most: tokenLimit },
  ].flatMap(({ figure, most }) => (most ? Number((BigInt(figure) * 10_000n) / BigInt(most)) / 100 : []));
  if (parts.length === 0) return [];
  const value = Math.max(...parts);
  return [
    {
      window: startsAt?.getTime() ?? 0,
      startsAt,
      endsAt,
      value,
      threshold: percent,
      holds: value >= percent,
    },
  ];
}

type SpendWindow = { readonly window: 'hour' | 'day'; readonly time_zone: string };
type Bounds = { readonly from: number; readonly to: number };

/** Windows that one evaluation reads at most, those of a long pause included. */
const WINDOWS_MAX = 26;
/** Past windows are read for so long, the newest first. Older ones are left out. */
const READING_MAX_MS = 10_000;
const ABOUT_MS = { hour: HOUR_MS, day: DAY_MS } as const;

async function readSpend(
  tx: Transaction,
  asked: SpendWindow,
  { accountId, nowMs, checkedMs }: Asked,
  thresholdOf: (window: Bounds) => Promise<number>,
): Promise<Readings> {
  const about = ABOUT_MS[asked.window];
  const since = checkedMs === undefined ? nowMs : checkedMs - about;
  const oldest = Math.max(since, nowMs - (WINDOWS_MAX - 2) * about);
  const readings: Reading[] = [];
  const began = performance.now();
  for (const { from, to } of windowsBetween(asked, oldest, nowMs).toReversed()) {
    if (readings.length > 0 && performance.now() - began > READING_MAX_MS) break;
    const threshold = await thresholdOf({ from, to });
    const value = await spentBetween(tx, accountId, { from, to });
    const bounds = { window: from, startsAt: new Date(from), endsAt: new Date(to) };
    readings.unshift({ ...bounds, value, threshold, holds: value >= threshold });
  }
  return { past: readings.slice(0, -1), present: readings.at(-1) };
}

/** The windows from that of a moment to that of another. */
function windowsBetween(
  { window, time_zone: timeZone }: SpendWindow,
  fromMs: number,
  toMs: number,
): Bounds[] {
  const windows: Bounds[] = [];
  for (const { startsMs, endsMs = toMs } of windowsFrom(
    { kind: window, timeZone, anchorMs: undefined },
    fromMs,
  )) {
    if (startsMs > toMs) break;
    windows.push({ from: startsMs, to: endsMs });
  }
  return windows;
}

/** The mean of the days before a day, or of the same hour of the days before in the time zone. Days without a call count as 0. */
async function meanBefore(
  tx: Transaction,
  asked: SpendWindow,
  { accountId }: Asked,
  { from, to }: Bounds,
): Promise<number> {
  if (asked.window === 'day') {
    // A day that daylight saving time makes longer or shorter is one day all the same.
    const days = windowsBetween(asked, from - JUMP_WINDOWS * DAY_MS, from - 1).slice(-JUMP_WINDOWS);
    return (await spentBetween(tx, accountId, { from: days[0]?.from ?? from, to: from })) / JUMP_WINDOWS;
  }
  const begin = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(asked.time_zone);
  let sum = 0;
  for (let days = 1; days <= JUMP_WINDOWS; days++) {
    const start = begin.subtract({ days }).epochMilliseconds;
    sum += await spentBetween(tx, accountId, { from: start, to: start + (to - from) });
  }
  return sum / JUMP_WINDOWS;
}

/** Microdollars of the calls that settled in a range, from the sums that `GET /v1/usage` reads. */
async function spentBetween(tx: Transaction, accountId: string, { from, to }: Bounds): Promise<number> {
  const asked = {
    ...{ from: new Date(from), to: new Date(to), timezone: 'UTC', group_by: [], limit: 1 },
  };
  const divided = divideAsked(asked, await findMarks(tx, accountId));
  const [total] = await tx.execute<TextRow>(selectUsage(accountId, asked, divided));
  return Number(total?.['cost'] ?? 0);
}

/** Calls of an account that one evaluation reads at most, the newest ones. */
const CALLS_MAX = 20_000;
/** A longer pause is not made up for. */
const PAUSE_MAX_MS = DAY_MS;

const FAULTS = sql.raw(OF_PROVIDER_OR_GATEWAY.map((name) => `'${name}'`).join(', '));
/** Calls that have ended. */
const NO_CALLS = sql.raw(`'under_way', 'refunded'`);

async function readErrors(
  tx: Transaction,
  { percent, calls: least, minutes, provider }: NonNullable<AlertCondition['errors']>,
  { accountId, nowMs, checkedMs }: Asked,
): Promise<Readings> {
  const length = minutes * MINUTE_MS;
  const begin = nowMs - length;
  const since =
    checkedMs === undefined || checkedMs >= begin ? begin : sinceInPause(checkedMs, nowMs, length);
  const at = (ms: number) => sql`${new Date(ms).toISOString()}::timestamptz`;
  const newest = sql`select ${ledger.settledAt} as settled_at, ${ledger.provider} as provider, ${outcomeInSql} as outcome from ${ledger}
    where ${ledger.accountId} = ${accountId} and ${ledger.settledAt} between ${at(since)} and ${at(nowMs)}
    order by ${ledger.settledAt} desc limit ${CALLS_MAX}`;
  const rows = await tx.execute<TextRow>(sql`
    with newest as materialized (${newest})
    select (floor(extract(epoch from settled_at) / ${minutes * 60}))::bigint::text as piece, (settled_at >= ${at(begin)})::text as present,
      count(*)::text as calls, (count(*) filter (where outcome in (${FAULTS})))::text as failed,
      (select count(*) from newest)::text as all_calls, (select extract(epoch from min(settled_at)) * 1000 from newest)::text as oldest
    from newest where outcome not in (${NO_CALLS}) ${provider === undefined ? sql`` : sql`and provider = ${provider}`}
    group by 1, 2`);
  const counted = rows.map((row) => ({
    window: Number(row['piece']) * length,
    isPresent: row['present'] === 'true',
    calls: Number(row['calls']),
    failed: Number(row['failed']),
    // A piece that begins before the oldest call read lacks calls.
    isWhole: Number(row['all_calls']) < CALLS_MAX || Number(row['piece']) * length > Number(row['oldest']),
  }));
  const reading = (some: typeof counted, window: number, from: number): Reading => {
    const [calls, failed] = [sum(some, 'calls'), sum(some, 'failed')];
    const value = calls === 0 ? 0 : Math.floor((failed * 10_000) / calls) / 100;
    const bounds = { window, startsAt: new Date(from), endsAt: new Date(from + length) };
    return { ...bounds, value, threshold: percent, holds: calls >= least && value >= percent };
  };
  const current = Math.floor(nowMs / length) * length;
  const pieces = counted.filter(({ window, isWhole }) => isWhole && window >= since && window < current);
  const past = [...new Set(pieces.map(({ window }) => window))]
    .sort((a, b) => a - b)
    .map((each) =>
      reading(
        pieces.filter(({ window }) => window === each),
        each,
        each,
      ),
    );
  const present = reading(
    counted.filter(({ isPresent }) => isPresent),
    current,
    begin,
  );
  return { past, present };
}

/** Where the pieces begin that were in no evaluation: with the piece of the evaluation before. */
const sinceInPause = (checkedMs: number, nowMs: number, length: number): number =>
  Math.max(Math.floor(checkedMs / length) * length, Math.ceil((nowMs - PAUSE_MAX_MS) / length) * length);

const sum = <Name extends string>(rows: readonly Readonly<Record<Name, number>>[], name: Name): number =>
  rows.reduce((total, row) => total + row[name], 0);
