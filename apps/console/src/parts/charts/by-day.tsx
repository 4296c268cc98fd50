import type { UsageReport } from '@presign/client';
import { useMemo } from 'preact/hooks';
import { useLimits } from '../../api/queries.ts';
import { cents, count } from '../../data/format/format.ts';
import { daysOf, type Range, rangeOfDay } from '../../data/format/range.ts';
import {
  type Dimension,
  dimensionName,
  isCut,
  MOST_NAMED,
  OTHERS,
  type UsageFilters,
  valueIn,
} from '../../data/usage.ts';
import { NO_NAME } from '../page/facts.tsx';
import { href } from '../page/place.ts';
import { Bars, type Series } from './bars.tsx';

type Row = UsageReport['data'][number];

/** Identifies the group of a row in one dimension. */
export const groupOf = (row: Row, by: Dimension): string => valueIn(row, by) ?? NONE;
/** Like `OTHERS`, this is never the name of a user. */
const NONE = '\0none';

/** The text of a group. */
export const groupName = (group: string): string => (group === '' ? NO_NAME : group.replace('\0', ''));

/** The requests of one day, with the filters of a report. */
export function hrefOfDay(day: string, zone: string, filters: UsageFilters): string {
  const { from, to } = rangeOfDay(day, zone);
  return href('requests', { ...filters, time: undefined, from: iso(from), to: iso(to) });
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString();

/** Says which rows a table of a report has, if it lacks some. */
export function CutNote({ report }: { report: UsageReport }) {
  const { data: limits } = useLimits();
  if (!isCut(report)) return null;
  const most = limits?.requests.usage_groups ?? report.groups;
  return (
    <p class="soft">
      The table has the {count(report.data.length)} rows that cost most of {count(report.groups)}. The CSV has{' '}
      {report.groups > most ? `the first ${count(most)} by name` : 'all'}.
    </p>
  );
}

type SpendProps = {
  readonly report: UsageReport;
  readonly by: Dimension;
  readonly range: Range;
  /** The filters of the report. */
  readonly filters?: UsageFilters;
};

/** A chart of a report by day and one more dimension. A click on a day opens its requests. */
export function SpendByDay({ report, by, range, filters = {} }: SpendProps) {
  const days = daysOf(range).join();
  const series = useMemo(() => stack(report, by, days.split(',')), [report, by, days]);
  return (
    <>
      <Bars
        label={`Spending of each day (${range.zone}) by ${dimensionName(by)}`}
        times={days}
        series={series}
        show={cents}
        onPick={(at) => {
          location.hash = hrefOfDay(days.split(',')[at] ?? '', range.zone, filters);
        }}
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

function stack({ data }: UsageReport, by: Dimension, days: readonly string[]): Series[] {
  const sums = new Map<string, number>();
  for (const row of data) sums.set(seriesOf(row, by), (sums.get(seriesOf(row, by)) ?? 0) + row.cost);
  const named = [...sums].filter(([name]) => name !== OTHERS).sort(([, a], [, b]) => b - a);
  const names = named.slice(0, MOST_NAMED).map(([name]) => name);
  if (sums.size > names.length) names.push(OTHERS);
  const places = new Map(days.map((day, at) => [day, at]));
  const series = names.map((name) => ({ name: groupName(name), values: days.map(() => 0) }));
  for (const row of data) {
    const at = names.indexOf(seriesOf(row, by));
    const { values } = series[at === -1 ? series.length - 1 : at] ?? {};
    const day = places.get(row.day ?? '');
    if (values && day !== undefined) values[day] = (values[day] ?? 0) + row.cost;
  }
  return series;
}
