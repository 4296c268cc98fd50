import 'uplot/dist/uPlot.min.css';
import type { UsageReport } from '@presign/client';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { count, money } from '../data/format.ts';
import { type Dimension, MOST_NAMED, OTHERS } from '../data/usage.ts';

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

type Series = { readonly name: string; readonly microusd: readonly number[] };

/** Colors that differ enough, on light and on dark. */
const COLORS = ['#2f6fde', '#c2571a', '#1f8a5b', '#9a4fc9', '#b3872b', '#7a8494'];

/** Spending of each day as stacked bars. The table next to it has the figures. */
function SpendChart({
  label,
  days,
  series,
}: {
  label: string;
  days: readonly number[];
  series: readonly Series[];
}) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => (box.current ? draw(box.current, days, series) : undefined), [days, series]);
  return (
    <figure>
      <div ref={box} class="chart" role="img" aria-label={label} />
      <figcaption>
        <ul class="legend">
          {series.map(({ name }, at) => (
            <li key={at}>
              <span class="swatch" style={{ background: colorOf(at) }} /> {name}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

const DAY = 86_400;
const DAY_NAME = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });
const dayOf = (seconds: number) => DAY_NAME.format(seconds * 1000);

const colorOf = (at: number): string => COLORS[at % COLORS.length] ?? '';

/** Draws until the returned function is called, and again when the box or the colors of the system change. */
function draw(box: HTMLDivElement, days: readonly number[], series: readonly Series[]): () => void {
  let plot: uPlot | undefined;
  const redraw = () => {
    plot?.destroy();
    plot = new uPlot(optionsOf(box, series), dataOf(days, series), box);
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
function dataOf(days: readonly number[], series: readonly Series[]): uPlot.AlignedData {
  const sums = days.map(() => 0);
  const stacked = series.map(({ microusd }) =>
    microusd.map((value, at) => {
      sums[at] = (sums[at] ?? 0) + value;
      return (sums[at] ?? 0) / 1_000_000;
    }),
  );
  return [[...days], ...stacked.reverse()];
}

function optionsOf(box: HTMLDivElement, series: readonly Series[]): uPlot.Options {
  const { color, borderColor } = getComputedStyle(box);
  const bars = uPlot.paths.bars?.({ size: [0.7, 40] });
  const axis = { stroke: color, grid: { stroke: borderColor }, ticks: { stroke: borderColor } };
  return {
    width: box.clientWidth,
    height: 220,
    legend: { show: false },
    cursor: { show: false },
    // Whole days of UTC are multiples of 86,400, so the days need no calendar.
    scales: {
      x: { time: false, range: (_plot, low, high) => [low - DAY, high + DAY] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      {
        ...axis,
        space: 60,
        incrs: [1, 2, 7, 14].map((days) => days * DAY),
        values: (_plot, ticks) => ticks.map(dayOf),
      },
      {
        ...axis,
        size: 80,
        values: (_plot, ticks) => ticks.map((dollars) => money(Math.round(dollars * 1e6))),
      },
    ],
    series: [
      {},
      ...series
        .map((_each, at) => ({
          fill: colorOf(at),
          stroke: colorOf(at),
          width: 0,
          points: { show: false },
          ...(bars && { paths: bars }),
        }))
        .reverse(),
    ],
  };
}
