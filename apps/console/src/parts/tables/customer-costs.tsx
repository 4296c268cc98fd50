import { useNow, useUsage } from '../../api/queries.ts';
import { type CustomerCosts as Costs, type CustomerCost, customerCosts } from '../../data/customer-costs.ts';
import { lastWeek } from '../../data/forecast.ts';
import { cents, count, money } from '../../data/format/format.ts';
import { monthOf } from '../../data/format/range.ts';
import { User } from '../page/facts.tsx';
import { useRange } from '../page/range.tsx';
import { type Column, Table } from './table.tsx';

/** The spending of this month by customer, with a forecast for its end. Undefined: not read yet. */
export function useMonthCosts(): Costs | undefined {
  const { zone } = useRange();
  const now = useNow();
  const { month, whole } = monthUntil(now, zone);
  const soFar = useUsage({ range: month, groupBy: ['external_user'] });
  const week = useUsage({ range: lastWeek(now, zone), groupBy: ['external_user'] });
  if (!soFar.data || !week.data) return undefined;
  return customerCosts({ month: soFar.data, week: week.data }, now, whole.to);
}

/** The spending of one customer, which a list of very many customers may omit. */
export function useMonthCost(user: string): CustomerCost | undefined {
  const { zone } = useRange();
  const now = useNow();
  const { month, whole } = monthUntil(now, zone);
  const filters = { external_user: user };
  const soFar = useUsage({ range: month, groupBy: [], filters });
  const week = useUsage({ range: lastWeek(now, zone), groupBy: [], filters });
  if (!soFar.data || !week.data) return undefined;
  return customerCosts({ month: soFar.data, week: week.data }, now, whole.to).total;
}

function monthUntil(now: number, zone: string) {
  const whole = monthOf(now, zone);
  return { whole, month: { ...whole, to: Math.max(whole.from, now) } };
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
    sort: ({ forecast }) => forecast ?? -1,
  },
  { head: 'Calls', figure: true, cell: ({ calls }) => count(calls), sort: ({ calls }) => calls },
  { head: 'Failed', figure: true, cell: ({ failed }) => count(failed), sort: ({ failed }) => failed },
];

const NO_CALLS = 'No calls this month or in the last seven days.';

type CustomerCostsProps = {
  readonly of: Costs;
  /** The first rows alone, in half the width. */
  readonly most?: number;
  readonly empty?: string | undefined;
};

/** The cost of this month so far and at its end, by customer. */
export const CustomerCosts = ({ of: { rows, total, cut }, most, empty = NO_CALLS }: CustomerCostsProps) => (
  <Table
    caption="This month by customer"
    rows={rows.slice(0, most)}
    keyOf={({ user }) => user ?? '\0none'}
    empty={empty}
    columns={most === undefined ? COLUMNS : COLUMNS.filter(({ head }) => head !== 'Failed')}
    isCut={cut !== undefined}
    foot={[
      'All customers',
      money(total.spent),
      cents(total.forecast),
      count(total.calls),
      count(total.failed),
    ]}
  />
);
