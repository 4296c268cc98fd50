import 'uplot/dist/uPlot.min.css';
import type { UsageReport } from '@presign/client';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { cents, count, dayName } from '../data/format.ts';
import { daysOf, type Range } from '../data/range.ts';
import { type Dimension, dimensionName, MOST_NAMED, OTHERS, valueIn } from '../data/usage.ts';

type Row = UsageReport['data'][number];

/** Identifies the group of a row in one dimension. */
export const groupOf = (row: Row, by: Dimension): string => valueIn(row, by) ?? NONE;
/** As `OTHERS`, no name of a user. */
const NONE = '\0none';

/** The text of a group. */
export const groupName = (group: string): string => group.replace('\0', '');

type SpendProps = { readonly report: UsageReport; readonly by: Dimension; readonly range: Range };

/** A report by day and one more dimension as a chart. */
export function SpendByDay({ report, by, range }: SpendProps) {
  const days = daysOf(range).join();
  const series = useMemo(() => stack(report, by, days.split(',')), [report, by, days]);
  return (
    <>
      <Bars
        label={`Spending of each day (${range.zone}) by ${dimensionName(by)}`}
        days={days}
        series={series}
        show={cents}
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

export type Series = {
  readonly name: string;
  /** A value for each day. */
  readonly values: readonly number[];
  readonly color?: string;
};

/** Colors that differ enough, on light and on dark. */
const COLORS = ['#2f6fde', '#c2571a', '#1f8a5b', '#9a4fc9', '#b3872b', '#7a8494'];
const colorOf = ({ color }: Series, at: number): string => color ?? COLORS[at % COLORS.length] ?? '';

type BarsProps = {
  readonly label: string;
  /** Separated by commas, so that the same days are the same chart. */
  readonly days: string;
  readonly series: readonly Series[];
  readonly show: (value: number) => string;
};

/** Values of each day as stacked bars. The table next to it has the figures. */
export function Bars({ label, days, series, show }: BarsProps) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(
    () => (box.current ? draw(box.current, days.split(','), series, show) : undefined),
    [days, series, show],
  );
  return (
    <figure>
      <div ref={box} class="chart" role="img" aria-label={label} />
      <figcaption>
        <ul class="legend">
          {series.map((each, at) => (
            <li key={at}>
              <span class="swatch" style={{ background: colorOf(each, at) }} /> {each.name}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

type Show = BarsProps['show'];

/** Draws until the returned function is called, and again when the box or the colors of the system change. */
function draw(
  box: HTMLDivElement,
  days: readonly string[],
  series: readonly Series[],
  show: Show,
): () => void {
  let plot: uPlot | undefined;
  const redraw = () => {
    plot?.destroy();
    plot = new uPlot(optionsOf(box, days, series, show), dataOf(days, series), box);
  };
  const sizes = new ResizeObserver(redraw);
  sizes.observe(box);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  scheme.addEventListener('change', redraw);
  return () => {
    sizes.disconnect();
    scheme.removeEventListener('change', redraw);
    plot?.destroy();
  };
}

/** The highest sum first: each bar covers the lower part of the one behind it. */
function dataOf(days: readonly string[], series: readonly Series[]): uPlot.AlignedData {
  const sums = days.map(() => 0);
  const stacked = series.map(({ values }) =>
    values.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + value;
      return sums[at] ?? 0;
    }),
  );
  return [days.map((_, at) => at), ...stacked.reverse()];
}

function optionsOf(
  box: HTMLDivElement,
  days: readonly string[],
  series: readonly Series[],
  show: Show,
): uPlot.Options {
  const { color, borderColor } = getComputedStyle(box);
  const bars = uPlot.paths.bars?.({ size: [0.7, 40] });
  const axis = { stroke: color, grid: { stroke: borderColor }, ticks: { stroke: borderColor } };
  return {
    width: box.clientWidth,
    height: 220,
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: false, range: (_plot, low, high) => [low - 1, high + 1] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        space: 60,
        incrs: [1, 2, 7, 14, 28],
        values: (_plot, ticks) => ticks.map((at) => (days[at] ? dayName(days[at]) : '')),
      },
      { ...axis, size: 80, values: (_plot, ticks) => ticks.map(show) },
    ],
    series: [
      {},
      ...series
        .map((each, at) => ({
          fill: colorOf(each, at),
          stroke: colorOf(each, at),
          width: 0,
          points: { show: false },
          ...(bars && { paths: bars }),
        }))
        .reverse(),
    ],
  };
}
