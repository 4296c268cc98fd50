import type { UsageReport } from '@presign/client';
import { forecast, lastWeek } from '../data/forecast.ts';
import { cents, count, money } from '../data/format.ts';
import { useNow, useUsage } from '../data/queries.ts';
import { monthOf } from '../data/range.ts';
import { User } from './facts.tsx';
import { useRange } from './range.tsx';
import { type Column, Table } from './table.tsx';

export type CustomerCost = {
  readonly user: string | null;
  readonly spent: number;
  readonly calls: number;
  readonly failed: number;
  /** The spending at the end of the month. */
  readonly forecast: number;
};

/** The spending of this month by customer, with a forecast for its end. Undefined: not read yet. */
export function useMonthCosts():
  | { readonly rows: readonly CustomerCost[]; readonly total: CustomerCost }
  | undefined {
  const { isLive: _, ...shown } = useRange();
  const now = useNow();
  const month = monthOf(now, shown.zone);
  const soFar = useUsage({ range: { ...month, to: Math.max(month.from, now) }, groupBy: ['external_user'] });
  const week = useUsage({ range: lastWeek(now, shown.zone), groupBy: ['external_user'] });
  if (!soFar.data || !week.data) return undefined;
  const ofWeek = new Map(week.data.data.map((row) => [row.external_user ?? null, row.cost]));
  const costOf = (user: string | null, sums: UsageReport['total'], lately: number): CustomerCost => ({
    ...{ user, spent: sums.cost, calls: sums.calls, failed: sums.failed_calls },
    forecast: forecast(sums.cost, lately, now, month.to),
  });
  const rows = soFar.data.data.map((row) => {
    const user = row.external_user ?? null;
    return costOf(user, row, ofWeek.get(user) ?? 0);
  });
  return {
    rows: rows.toSorted((a, b) => b.forecast - a.forecast),
    total: costOf(null, soFar.data.total, week.data.total.cost),
  };
}

const COLUMNS: readonly Column<CustomerCost>[] = [
  {
    head: 'Customer',
    cell: ({ user }) => (user === null ? 'no user' : <User of={user} />),
    sort: ({ user }) => user ?? '',
  },
  { head: 'This month', figure: true, cell: ({ spent }) => money(spent), sort: ({ spent }) => spent },
  {
    head: 'Forecast',
    figure: true,
    cell: ({ forecast }) => cents(forecast),
    sort: ({ forecast }) => forecast,
  },
  { head: 'Calls', figure: true, cell: ({ calls }) => count(calls), sort: ({ calls }) => calls },
  { head: 'Failed', figure: true, cell: ({ failed }) => count(failed), sort: ({ failed }) => failed },
];

type Costs = NonNullable<ReturnType<typeof useMonthCosts>>;

/** The cost of this month so far and at its end, by customer. */
export const CustomerCosts = ({ of: { rows, total }, most }: { of: Costs; most?: number }) => (
  <Table
    caption="This month by customer"
    rows={rows.slice(0, most)}
    keyOf={({ user }) => user ?? '\0none'}
    empty="No calls this month."
    columns={COLUMNS}
    foot={[
      'All customers',
      money(total.spent),
      cents(total.forecast),
      count(total.calls),
      count(total.failed),
    ]}
  />
);
