import type { SharedBudget, UsageReport } from '@presign/client';
import { useMemo } from 'preact/hooks';
import { useLimits, useNow, useUsage } from '../../api/queries.ts';
import { leftByDay } from '../../data/burn-down.ts';
import { cents } from '../../data/format/format.ts';
import { daysOf, type Range } from '../../data/format/range.ts';
import { figuresOf, filtersOfScope, startOf } from '../../data/shared-budget.ts';
import type { UsageFilters } from '../../data/usage.ts';
import { Answer } from '../page/answer.tsx';
import { useZone } from '../page/facts.tsx';
import { href } from '../page/place.ts';
import { Bars } from './bars.tsx';
import { hrefOfDay } from './by-day.tsx';

const DAY = 86_400;
/** The most days that a chart of a budget without an end shows. */
const MOST_DAYS = 90;

/** The rest of a budget at the end of each day of its present window, and its calls. Sums by day show nothing of an hour or a day. */
export function BurnDown({ budget }: { budget: SharedBudget }) {
  const { data: limits } = useLimits();
  const now = useNow();
  const zone = useZone();
  const filters = filtersOfScope(budget.scope, limits?.usage_metadata ?? []);
  if (!budget.current || !filters) return null;
  const from = Math.max(startOf(budget), (Math.floor(now / DAY) - MOST_DAYS) * DAY);
  const range = { from, to: Math.max(from + 1, now), zone, name: `window of ${budget.id} from ${from}` };
  const isOfDays = budget.window !== 'hour' && budget.window !== 'day';
  return (
    <>
      {isOfDays && budget.cost_limit !== null && (
        <Left budget={budget} most={budget.cost_limit} range={range} filters={filters} />
      )}
      <p>
        <a href={href('requests', { ...filters, time: undefined, from: iso(from), to: undefined })}>
          Requests of this window
        </a>
      </p>
    </>
  );
}

const iso = (seconds: number) => new Date(seconds * 1000).toISOString();

type LeftProps = {
  readonly budget: SharedBudget;
  readonly most: number;
  readonly range: Range;
  readonly filters: UsageFilters;
};

const Left = ({ budget, most, range, filters }: LeftProps) => (
  <>
    <h2>Left at the end of each day</h2>
    <Answer of={useUsage({ range, groupBy: ['day'], filters })}>
      {(report) => <LeftBars report={report} most={most} range={range} filters={filters} budget={budget} />}
    </Answer>
    <p class="soft">
      Counted back from what is left now. The calls of URLs that are older than the budget are counted too.
    </p>
  </>
);

function LeftBars({ report, budget, most, range, filters }: LeftProps & { readonly report: UsageReport }) {
  const days = daysOf(range).join();
  const { spent } = figuresOf(budget);
  const series = useMemo(
    () => [{ name: 'left', values: leftByDay(report.data, days.split(','), most, spent) }],
    [report, days, most, spent],
  );
  return (
    <Bars
      label={`Left of ${cents(most)} at the end of each day (${range.zone})`}
      times={days}
      series={series}
      show={cents}
      onPick={(at) => {
        location.hash = hrefOfDay(days.split(',')[at] ?? '', range.zone, filters);
      }}
    />
  );
}
