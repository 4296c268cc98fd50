import type { UsageHours, UsageReport } from '@presign/client';
import { useByDay, useHours, useMoved, useNow, useRefused, useUsage } from '../api/queries.ts';
import { cents, count, dayName, duration, money, percent } from '../data/format/format.ts';
import { daysOf, type Range } from '../data/format/range.ts';
import { type Refused, utcDaysOf } from '../data/refusals.ts';
import { SpendByDay } from '../parts/charts/by-day.tsx';
import { Choice, FilterForm } from '../parts/forms/form.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Facts, User } from '../parts/page/facts.tsx';
import { href, type Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';
import { BEFORE, Before } from '../parts/page/totals.tsx';
import { CustomerCosts, useMonthCosts } from '../parts/tables/customer-costs.tsx';
import { Table } from '../parts/tables/table.tsx';
import { LimitsInUse } from './limits-in-use.tsx';

const BY = [
  ['model', 'model'],
  ['provider', 'provider'],
  ['external_user', 'user'],
] as const;

/**
 * The spending now and at the month's end, failures and refusals, the customers whose spending changed most, and the limits that are nearly
 * used.
 */
export function Home({ params }: { params: Place['params'] }) {
  const by = BY.find(([each]) => each === params.by)?.[0] ?? 'model';
  const { isLive: _, ...range } = useRange();
  const usage = useByDay({ range, by });
  const costs = useMonthCosts();
  return (
    <Page title="Home">
      <Figures />
      {/* Outside of the answer: a choice must keep the focus while its answer is awaited. */}
      <FilterForm path="">
        <Choice label="Spend by" name="by" value={by} options={BY} />
      </FilterForm>
      <Answer of={usage}>{(report) => <SpendByDay report={report} by={by} range={range} />}</Answer>
      <div class="halves">
        <div>
          <h2>This month by customer</h2>
          {costs && <CustomerCosts of={costs} most={MOST} />}
          <p>
            <a href={href('customers')}>All customers</a>
          </p>
        </div>
        <div>
          <h2>Customers who moved most</h2>
          <Movers />
        </div>
      </div>
      <h2>Refusals</h2>
      <Refusals />
      <h2>Limits that end soon</h2>
      <LimitsInUse />
    </Page>
  );
}

/** Rows of a list on this page. */
const MOST = 8;

function Figures() {
  const { isLive: _, ...range } = useRange();
  // The sums by customer, which this page also shows.
  const usage = useUsage({ range, groupBy: ['external_user'] });
  return <Answer of={usage}>{({ total }) => <Totals total={total} range={range} />}</Answer>;
}

/** The sums of the shown time, next to those of the time before. */
function Totals({ total, range }: { total: UsageReport['total']; range: Range }) {
  const { data: hours } = useHours(range);
  const costs = useMonthCosts();
  return (
    <div class="large">
      <Facts
        of={[
          ['Spent', money(total.cost)],
          [BEFORE, <Before key="before" asked={{ range, groupBy: ['external_user'] }} now={total.cost} />],
          ['Forecast of this month', costs ? cents(costs.total.forecast) : '…'],
          ['Calls', count(total.calls)],
          [
            'Failed',
            <a key="failed" href={href('requests', { outcome: 'failed' })}>
              {percent(total.failed_calls, total.calls)}
            </a>,
          ],
          ['Refused, by days of UTC', <ShareRefused key="refused" />],
          ['p95 of a usual hour', hours ? duration(usualP95(hours)) : '…'],
        ]}
      />
    </div>
  );
}

/** The share of refused calls. If the days of UTC are not those of the shown time, it says which days it is of. */
function ShareRefused() {
  const { isLive, ...range } = useRange();
  const { data: refused } = useRefused({ isLive, ...range });
  const days = utcDaysOf(range, useNow());
  const isKnown = refused !== undefined && refused.keptFrom === undefined && days.from < days.to;
  // For whole days, the sums that this page also shows.
  const asked = refused?.isExact
    ? { range, groupBy: ['external_user'] as const }
    : { range: days, groupBy: [] };
  const { data: report } = useUsage(asked, isKnown);
  const calls = refused?.data.reduce((sum, each) => sum + each.calls, 0) ?? 0;
  const share = report ? percent(calls, calls + report.total.calls) : '…';
  return (
    <>
      <a href={href('requests', { outcome: 'refused' })}>{refused && !isKnown ? '–' : share}</a>{' '}
      {isKnown && !refused.isExact && <small class="soft">{daysWords(days)}</small>}
    </>
  );
}

/** The first and the last day of a range, as `Nov 1 – Nov 30`. */
function daysWords(range: Range): string {
  const days = daysOf(range).map(dayName);
  return [...new Set([days[0], days.at(-1)])].join(' – ');
}

/** The p95 of the hour that contains the median call, with the hours sorted from the fastest. */
function usualP95({ data }: UsageHours): number | null {
  const hours = data.flatMap(({ calls, total_ms: ms }) => (ms?.p95 == null ? [] : [{ calls, ms: ms.p95 }]));
  hours.sort((a, b) => a.ms - b.ms);
  let left = hours.reduce((sum, { calls }) => sum + calls, 0) / 2;
  for (const { calls, ms } of hours) {
    left -= calls;
    if (left <= 0) return ms;
  }
  return null;
}

/** The customers whose spending differs most from the time before. */
function Movers() {
  const { isLive: _, ...range } = useRange();
  return (
    <Answer of={useMoved(range, MOST)}>
      {({ rows, compared }) => (
        <>
          <Table
            caption="Customers who moved most"
            rows={rows}
            keyOf={({ user }) => user}
            empty="No customer spends more or less than before."
            isCut={compared !== undefined}
            columns={[
              { head: 'Customer', cell: ({ user }) => <User of={user} /> },
              { head: 'Before', figure: true, cell: (row) => cents(row.before) },
              { head: 'Now', figure: true, cell: (row) => cents(row.now) },
              {
                head: 'Change',
                figure: true,
                cell: (row) => `${row.now < row.before ? '' : '+'}${cents(row.now - row.before)}`,
              },
            ]}
          />
          {compared !== undefined && (
            <p class="soft">
              Compared are the {count(compared)} customers that spent most in each time. One that is missing
              from a time is ranked by the least change that is possible.
            </p>
          )}
        </>
      )}
    </Answer>
  );
}

function Refusals() {
  return (
    <Answer of={useRefused(useRange())}>
      {({ data, keptFrom }) => (
        <>
          <Table
            caption="Refusals by code"
            rows={byCode(data)}
            keyOf={({ code }) => code}
            empty={keptFrom === undefined ? 'No call was refused.' : 'No refusal of this time is kept.'}
            columns={[
              {
                head: 'Code',
                cell: ({ code }) => (
                  <a href={href('requests', { outcome: 'refused', failure: code })}>
                    {code.replaceAll('_', ' ')}
                  </a>
                ),
              },
              { head: 'Calls', figure: true, cell: ({ calls }) => count(calls) },
            ]}
          />
          <p class="soft">
            Refusals are counted by whole days of UTC
            {keptFrom === undefined ? '' : `, and those before ${dayName(keptFrom)} are no longer counted`}.
          </p>
        </>
      )}
    </Answer>
  );
}

function byCode(data: Refused['data']) {
  const codes = [...new Set(data.map(({ code }) => code))].map((code) => ({
    code,
    calls: data.reduce((sum, each) => sum + (each.code === code ? each.calls : 0), 0),
  }));
  return codes.sort((a, b) => b.calls - a.calls);
}
