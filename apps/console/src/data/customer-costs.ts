import type { UsageReport } from '@presign/client';
import { forecast } from './forecast.ts';
import { isCut } from './usage.ts';

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
  /** The report that has only the customers who spent most. Undefined: none, and the rows are all customers. */
  readonly cut: Cut | undefined;
};

/** How many customers a report has, and how many spent in its time. */
export type Cut = { readonly of: 'month' | 'week'; readonly shown: number; readonly all: number };

/** Reports by customer, of this month so far and of the last seven days, which may have only those who spent most. */
type Reports = { readonly month: UsageReport; readonly week: UsageReport };

const NONE = { cost: 0, calls: 0, failed_calls: 0 };

/**
 * The spending of this month by customer, with a forecast for its end. A customer with calls in the last seven days alone has a forecast,
 * too.
 */
export function customerCosts({ month, week }: Reports, now: number, end: number): CustomerCosts {
  const ofMonth = new Map(month.data.map((row) => [row.external_user ?? null, row]));
  const ofWeek = new Map(week.data.map((row) => [row.external_user ?? null, row]));
  // The spending of a customer that is missing from a cut report is unknown.
  const users = isCut(month) ? [...ofMonth.keys()] : [...ofMonth.keys(), ...ofWeek.keys()];
  const costOf = (user: string | null, sums: typeof NONE, lately: number | undefined): CustomerCost => ({
    ...{ user, spent: sums.cost, calls: sums.calls, failed: sums.failed_calls },
    forecast: lately === undefined ? null : forecast(sums.cost, lately, now, end),
  });
  const rows = [...new Set(users)].map((user) => {
    const lately = ofWeek.get(user)?.cost ?? (isCut(week) ? undefined : 0);
    return costOf(user, ofMonth.get(user) ?? NONE, lately);
  });
  return {
    rows: rows.toSorted((a, b) => (b.forecast ?? b.spent) - (a.forecast ?? a.spent)),
    total: costOf(null, month.total, week.total.cost),
    cut: cutOf({ month, week }),
  };
}

function cutOf(reports: Reports): Cut | undefined {
  const of = (['month', 'week'] as const).find((each) => isCut(reports[each]));
  return of && { of, shown: reports[of].data.length, all: reports[of].groups };
}
