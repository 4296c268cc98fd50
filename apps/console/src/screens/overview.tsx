import type { UsageReport } from '@presign/client';
import { count } from '../data/format.ts';
import { useRefusals, useSpendByDay } from '../data/queries.ts';
import { Answer, Page } from '../parts/answer.tsx';
import { Choice, FilterForm } from '../parts/form.tsx';
import type { Place } from '../parts/place.ts';
import { SpendByDay } from '../parts/spend-by-day.tsx';
import { Table } from '../parts/table.tsx';
import { DAYS, Totals } from '../parts/totals.tsx';
import { LimitsInUse } from './limits-in-use.tsx';

const BY = [
  ['model', 'model'],
  ['provider', 'provider'],
  ['external_user', 'user'],
] as const;
type By = (typeof BY)[number][0];

export function Overview({ params }: { params: Place['params'] }) {
  const by: By = BY.find(([each]) => each === params.by)?.[0] ?? 'model';
  const days = Number(params.days) || 30;
  const usage = useSpendByDay({ days, by });
  return (
    <Page title="Overview">
      <FilterForm path="">
        <Choice label="Spend by" name="by" value={by} options={BY} />
        <Choice label="Days" name="days" value={String(days)} options={DAYS} />
      </FilterForm>
      <Answer of={usage}>
        {(report) => (
          <>
            <Totals report={report} />
            <SpendByDay report={report} by={by} />
            <h2>Calls and refusals</h2>
            <Refusals report={report} days={days} />
          </>
        )}
      </Answer>
      <h2>Limits</h2>
      <LimitsInUse />
    </Page>
  );
}

type Outcome = { readonly name: string; readonly today: number | undefined; readonly all: number };

/** The calls that passed, and those that were refused, by code. */
function Refusals({ report, days }: { report: UsageReport; days: number }) {
  return (
    <Answer of={useRefusals(days)}>
      {({ to: today, data }) => {
        const passed = {
          name: 'passed',
          // A report that is cut lacks the last days.
          today: report.next_cursor === null ? callsOf(report.data, today) : undefined,
          all: report.total.calls,
        };
        const codes = [...new Set(data.map(({ code }) => code))].map((code): Outcome => {
          const refused = data.filter((each) => each.code === code);
          return { name: code, today: callsOf(refused, today), all: callsOf(refused) };
        });
        return (
          <>
            <Table
              caption="Calls that passed, and refusals by code"
              rows={[passed, ...codes.sort((a, b) => b.all - a.all)]}
              keyOf={({ name }) => name}
              columns={[
                { head: 'Code', cell: ({ name }) => name },
                { head: 'Today (UTC)', figure: true, cell: (each) => count(each.today) },
                {
                  head: days === 1 ? 'In 1 day' : `In ${days} days`,
                  figure: true,
                  cell: ({ all }) => count(all),
                },
              ]}
            />
            <p class="soft">
              Refusals are counted about two seconds after their end, without calls whose token is not valid.
            </p>
          </>
        );
      }}
    </Answer>
  );
}

type Counted = { readonly day?: string; readonly calls: number };

/** The calls of one day, or of all. */
const callsOf = (rows: readonly Counted[], day?: string): number =>
  rows.reduce((sum, each) => sum + (day === undefined || each.day === day ? each.calls : 0), 0);
