import type { UsageReport } from '@presign/client';
import { forecast } from './forecast.ts';

export type CustomerCost = {
  readonly user: string | null;
  readonly spent: number;
  readonly calls: number;
  readonly failed: number;
  /** The spending at the end of the month. Null: the last seven days of this customer were not read. */
  readonly forecast: number | null;
};

export type CustomerCosts = {
  readonly rows: readonly CustomerCost[];
  readonly total: CustomerCost;
  /** Whether there are more customers than the reports have, which are cut by name. */
  readonly isCut: boolean;
};

/** Reports by customer, of this month so far and of the last seven days. */
type Reports = { readonly month: UsageReport; readonly week: UsageReport };

const NONE = { cost: 0, calls: 0, failed_calls: 0 };

/**
 * The spending of this month by customer, with a forecast for its end. A customer with calls in the last seven days alone has a forecast,
 * too.
 */
export function customerCosts({ month, week }: Reports, now: number, end: number): CustomerCosts {
  const ofMonth = new Map(month.data.map((row) => [row.external_user ?? null, row]));
  const ofWeek = new Map(week.data.map((row) => [row.external_user ?? null, row]));
  // A customer that is missing from a cut report may be beyond its end.
  const users = month.next_cursor === null ? [...ofMonth.keys(), ...ofWeek.keys()] : [...ofMonth.keys()];
  const costOf = (user: string | null, sums: typeof NONE, lately: number | undefined): CustomerCost => ({
    ...{ user, spent: sums.cost, calls: sums.calls, failed: sums.failed_calls },
    forecast: lately === undefined ? null : forecast(sums.cost, lately, now, end),
  });
  const rows = [...new Set(users)].map((user) => {
    const lately = ofWeek.get(user)?.cost ?? (week.next_cursor === null ? 0 : undefined);
    return costOf(user, ofMonth.get(user) ?? NONE, lately);
  });
  return {
    rows: rows.toSorted((a, b) => (b.forecast ?? b.spent) - (a.forecast ?? a.spent)),
    total: costOf(null, month.total, week.total.cost),
    isCut: month.next_cursor !== null || week.next_cursor !== null,
  };
}
