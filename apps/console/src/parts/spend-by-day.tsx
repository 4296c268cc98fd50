import type { UsageReport } from '@presign/client';
import { useMemo } from 'preact/hooks';
import { count } from '../data/format.ts';
import { type Dimension, MOST_NAMED, OTHERS } from '../data/usage.ts';
import { type Series, SpendChart } from './chart.tsx';

type Row = UsageReport['data'][number];

/** Identifies the group of a row in one dimension. */
export const groupOf = (row: Row, by: Dimension): string => row[by] ?? NONE;
/** As `OTHERS`, no name of a user. */
const NONE = '\0none';

/** The text of a group. */
export const groupName = (group: string): string => group.replace('\0', '');

/** A report by day and one more dimension as a chart. */
export function SpendByDay({ report, by }: { report: UsageReport; by: Dimension }) {
  const { days, series } = useMemo(() => stack(report, by), [report, by]);
  return (
    <>
      <SpendChart
        label={`Spending of each day (UTC) by ${by.replace('_', ' ')}`}
        days={days}
        series={series}
      />
      {report.next_cursor !== null && (
        <p class="soft">
          The chart is cut: it has the first {count(report.data.length)} groups, and lacks the last days.
        </p>
      )}
    </>
  );
}

/** A report by day alone is one series. */
const seriesOf = (row: Row, by: Dimension): string => (by === 'day' ? 'all calls' : groupOf(row, by));

function stack({ data, from, to }: UsageReport, by: Dimension): { days: number[]; series: Series[] } {
  const first = Math.floor(from / DAY);
  const length = Math.floor(to / DAY) - first + 1;
  const days = Array.from({ length }, (_, at) => (first + at) * DAY);
  const sums = new Map<string, number>();
  for (const row of data) sums.set(seriesOf(row, by), (sums.get(seriesOf(row, by)) ?? 0) + row.cost);
  const named = [...sums].filter(([name]) => name !== OTHERS).sort(([, a], [, b]) => b - a);
  const names = named.slice(0, MOST_NAMED).map(([name]) => name);
  if (sums.size > names.length) names.push(OTHERS);
  const series = names.map((name) => ({ name: groupName(name), microusd: days.map(() => 0) }));
  for (const row of data) {
    const at = names.indexOf(seriesOf(row, by));
    const { microusd } = series[at === -1 ? series.length - 1 : at] ?? {};
    const day = Date.parse(`${row.day}T00:00:00Z`) / 1000 / DAY - first;
    if (microusd) microusd[day] = (microusd[day] ?? 0) + row.cost;
  }
  return { days, series };
}

const DAY = 86_400;
