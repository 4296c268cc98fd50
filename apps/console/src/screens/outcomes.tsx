import type { UsageHours, UsageReport } from '@presign/client';
import { useMemo } from 'preact/hooks';
import { type Filters, HOUR, useByDay, useHours, useRefused } from '../api/queries.ts';
import { count, dayName } from '../data/format/format.ts';
import { daysOf, type Range, wallOf } from '../data/format/range.ts';
import type { Refused } from '../data/refusals.ts';
import { Bars, type Series } from '../parts/charts/bars.tsx';
import { hrefOfDay } from '../parts/charts/by-day.tsx';
import { Answer, Failed } from '../parts/page/answer.tsx';
import { href, type Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';

/** Calls by their outcome, over time and in total. Each outcome is a link that filters by it. */
export function Outcomes({ params }: { params: Place['params'] }) {
  const { outcome: _, failure, grant_id: grant, ...filters } = params;
  const isSummed = failure === undefined && grant === undefined;
  const shown = useRange();
  const { isLive: _live, ...range } = shown;
  const { data: report, error } = useByDay({ range, by: 'outcome', filters }, isSummed);
  const { data: refused } = useRefused(shown);
  const isAll = Object.keys(filters).length === 0;
  const days = daysOf(range).join();
  const ofAll = isAll ? refused?.data : undefined;
  // Equal figures keep the chart, so that it is not redrawn under the mouse.
  const series = useMemo(
    () => (report ? seriesOf(report, days.split(','), ofAll) : []),
    [report, days, JSON.stringify(ofAll)],
  );
  if (!isSummed) return <p class="soft">Calls are not summed by URL or by code, so there is no chart.</p>;
  if (!report) return error && <Failed error={error} />;
  const [passed = 0, failed = 0, rest = 0] = series.map(({ values }) =>
    values.reduce((all, each) => all + each, 0),
  );
  const refusals = isAll && refused?.isExact ? rest : undefined;
  return (
    <>
      <nav aria-label="Outcomes" class="facets">
        <Facet
          name="all"
          params={params}
          outcome={undefined}
          calls={refusals === undefined ? undefined : passed + failed + refusals}
        />
        <Facet name="passed" params={params} outcome="passed" calls={passed} />
        <Facet name="failed" params={params} outcome="failed" calls={failed} />
        <Facet name="refused" params={params} outcome="refused" calls={refusals} />
      </nav>
      {isShort(range) && hasHours(filters) ? (
        <ByHour params={params} filters={filters} range={range} />
      ) : (
        <ByDay params={params} series={series} range={range} refused={isAll ? refused : undefined} />
      )}
    </>
  );
}

type FacetProps = {
  readonly name: string;
  readonly params: Filters;
  readonly outcome: string | undefined;
  readonly calls: number | undefined;
};

const Facet = ({ name, params, outcome, calls }: FacetProps) => (
  <a
    href={href('requests', { ...params, outcome })}
    aria-current={params.outcome === outcome ? 'true' : undefined}
  >
    {name} {calls !== undefined && <b>{count(calls)}</b>}
  </a>
);

/** The longest range for which the chart shows hours. */
const SHORT_SECONDS = 2 * 86_400;
const isShort = ({ from, to }: Range): boolean => to - from <= SHORT_SECONDS;

/** The filters that the API has for sums by the hour. */
const OF_HOURS = ['provider', 'model', 'server'];
const hasHours = (filters: Filters): boolean => Object.keys(filters).every((name) => OF_HOURS.includes(name));

type ChartProps = { readonly params: Filters; readonly range: Range };

type ByDayProps = ChartProps & {
  readonly series: readonly Series[];
  /** Undefined: unknown, or belonging to other filters. */
  readonly refused: Refused | undefined;
};

/** A day leads to its requests. */
const ByDay = ({ params, range, series, refused }: ByDayProps) => (
  <>
    <Bars
      label={`Requests of each day (${range.zone}) by outcome`}
      times={daysOf(range).join()}
      series={series}
      show={count}
      onPick={(at) => {
        location.hash = hrefOfDay(daysOf(range)[at] ?? '', range.zone, params);
      }}
    />
    <p class="soft">
      {refused
        ? 'The chart counts all refused calls, by days of UTC.'
        : 'Refused calls are counted for the account as a whole, so a chart with a filter lacks them.'}
      {refused?.keptFrom !== undefined && ` Those before ${dayName(refused.keptFrom)} are no longer counted.`}
      {isShort(range) && ' Calls with these filters are summed by the day, so the chart has no hours.'}
    </p>
  </>
);

/** An hour leads to its requests. */
function ByHour({ params, range, filters }: ChartProps & { readonly filters: Filters }) {
  const hours = useHours(range, filters);
  return <Answer of={hours}>{(report) => <HourBars report={report} params={params} range={range} />}</Answer>;
}

function HourBars({ params, range, report }: ChartProps & { readonly report: UsageHours }) {
  const starts = hoursOf(range);
  const series = useMemo(() => endedBy(report, starts), [report, starts.join()]);
  return (
    <>
      <Bars
        label={`Requests of each hour (${range.zone}) by outcome`}
        times={starts.map((start) => wallOf(start * 1000, range.zone)).join()}
        series={series}
        show={count}
        onPick={(at) => {
          const start = starts[at] ?? range.from;
          const [from, to] = [iso(start), iso(start + HOUR)];
          location.hash = href('requests', { ...params, time: undefined, from, to });
        }}
      />
      <p class="soft">
        The chart has whole hours. Refused calls are counted by the day alone, so it lacks them.
      </p>
    </>
  );
}

function endedBy({ data }: UsageHours, starts: readonly number[]): Series[] {
  const row = new Map(data.map((each) => [each.hour, each]));
  const failed = starts.map((start) => row.get(start)?.failed_calls ?? 0);
  const passed = starts.map((start, at) => (row.get(start)?.calls ?? 0) - (failed[at] ?? 0));
  return [ended('passed', passed), ended('failed', failed)];
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString();

/** The starts of the hours that a range touches. */
function hoursOf({ from, to }: Range): number[] {
  const first = Math.floor(from / HOUR);
  return Array.from({ length: Math.ceil(to / HOUR) - first }, (_, at) => (first + at) * HOUR);
}

const COLORS = { passed: '#1f8a5b', failed: '#c2571a', refused: '#9a4fc9' } as const;
const ended = (name: keyof typeof COLORS, values: readonly number[]): Series => ({
  ...{ name, values },
  color: COLORS[name],
});

type Counted = { readonly day: string; readonly calls: number };

/** Passed and failed calls of each day, and refused ones if they are known. */
function seriesOf(
  { data }: UsageReport,
  days: readonly string[],
  refused: readonly Counted[] | undefined,
): Series[] {
  const places = new Map(days.map((day, at) => [day, at]));
  const sum = (rows: readonly { readonly day?: string; readonly calls: number }[]) => {
    const values = days.map(() => 0);
    for (const { day, calls } of rows) {
      const at = places.get(day ?? '');
      if (at !== undefined) values[at] = (values[at] ?? 0) + calls;
    }
    return values;
  };
  const failed = data.map(({ day = '', failed_calls: calls }) => ({ day, calls }));
  const passed = data.map(({ day = '', calls, failed_calls: lost }) => ({ day, calls: calls - lost }));
  return [
    ended('passed', sum(passed)),
    ended('failed', sum(failed)),
    ...(refused ? [ended('refused', sum(refused))] : []),
  ];
}
