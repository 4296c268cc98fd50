import type { UsageReport } from '@presign/client';
import { useContext } from 'preact/hooks';
import { presign } from '../api/api.ts';
import { useBudgets, useByDay, useCalls, useUrls, useUsage } from '../api/queries.ts';
import { cents, count, money, percent } from '../data/format/format.ts';
import { isCut } from '../data/usage.ts';
import { CutNote, SpendByDay } from '../parts/charts/by-day.tsx';
import { Action } from '../parts/forms/action.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Download } from '../parts/page/download.tsx';
import { Facts, When } from '../parts/page/facts.tsx';
import { href } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';
import { Rights } from '../parts/page/rights.ts';
import { BEFORE, Before } from '../parts/page/totals.tsx';
import { BudgetTable } from '../parts/tables/budgets.tsx';
import { CALL_COLUMNS, ENDED, KeptRefusals, keyOfCall } from '../parts/tables/calls.tsx';
import { useMonthCost } from '../parts/tables/customer-costs.tsx';
import { Table } from '../parts/tables/table.tsx';
import { UrlTable } from '../parts/tables/url-table.tsx';
import { CALLS, COST, INPUT, OUTPUT } from '../parts/tables/usage-columns.ts';

/** One customer: the month, budgets, URLs, the last refusals in words, a statement, and the end of all URLs. */
export function CustomerPage({ id: user }: { id: string }) {
  return (
    <Page title={user}>
      <Figures user={user} />
      <Buttons user={user} />
      <h2>Last refusals</h2>
      <Refusals user={user} />
      <h2>Budgets</h2>
      <BudgetTable
        of={useBudgets({ external_user: user })}
        empty="No budget is for this customer alone."
        isOfOne
      />
      <h2>URLs</h2>
      <Urls user={user} />
      <h2>Spending</h2>
      <Statement user={user} />
    </Page>
  );
}

function Figures({ user }: { user: string }) {
  const own = useMonthCost(user);
  const { isLive: _, ...range } = useRange();
  const asked = { range, groupBy: [], filters: { external_user: user } };
  const { data: shown } = useUsage(asked);
  return (
    <div class="large">
      <Facts
        of={[
          ['This month', own ? money(own.spent) : '…'],
          ['Forecast', own ? cents(own.forecast) : '…'],
          ['Spent in the shown time', money(shown?.total.cost)],
          [BEFORE, shown ? <Before key="before" asked={asked} now={shown.total.cost} /> : '…'],
          ['Calls', count(shown?.total.calls)],
          ['Failed', shown ? percent(shown.total.failed_calls, shown.total.calls) : '…'],
        ]}
      />
    </div>
  );
}

function Buttons({ user }: { user: string }) {
  const can = useContext(Rights);
  const { isLive: _, ...range } = useRange();
  return (
    <div class="buttons">
      <a class="button" href={href('requests', { external_user: user })}>
        All requests
      </a>
      <Download
        label="Statement as CSV"
        file={`statement-${user.replace(/[^\w.-]+/g, '_')}.csv`}
        asked={{ range, groupBy: ['day', 'provider', 'model', 'tool'], filters: { external_user: user } }}
      />
      <button type="button" onClick={() => print()}>
        Print
      </button>
      {can('presign') && (
        <Action
          label="Revoke all URLs"
          title={`Revoke all URLs of ${user}?`}
          submit="Revoke"
          isDanger
          run={() => presign.revokeSessions({ external_user: user })}
        >
          <p>Every gateway refuses their next call. This cannot be undone.</p>
        </Action>
      )}
    </div>
  );
}

/** The newest refusals, independent of the range. */
function Refusals({ user }: { user: string }) {
  const refused = useCalls({ external_user: user, outcome: 'refused' }, undefined, true);
  return (
    <>
      <Answer of={refused}>
        {({ pages: [first] }) => (
          <Table
            caption="Last refusals"
            rows={first?.data.slice(0, MOST_REFUSALS) ?? []}
            keyOf={keyOfCall}
            empty="No call of this customer was refused."
            columns={REFUSAL_COLUMNS}
          />
        )}
      </Answer>
      <KeptRefusals />
      <p>
        <a href={href('requests', { external_user: user, outcome: 'refused' })}>All refused requests</a>
      </p>
    </>
  );
}

const MOST_REFUSALS = 5;
const REFUSAL_COLUMNS = [
  ...CALL_COLUMNS.filter(({ head }) => head === 'Time'),
  ENDED,
  ...CALL_COLUMNS.filter(({ head }) => head === 'Model or tool'),
];

const Urls = ({ user }: { user: string }) => (
  <UrlTable
    of={useUrls({ external_user: user })}
    rowsOf={({ data }) => data}
    caption="URLs of this customer"
    empty="No URL yet."
  />
);

/** The spending of the shown time by model, as it can be printed. */
function Statement({ user }: { user: string }) {
  const { isLive: _, ...range } = useRange();
  const filters = { external_user: user };
  const daily = useByDay({ range, by: 'model', filters });
  const report = useUsage({ range, groupBy: ['provider', 'model', 'tool'], filters });
  return (
    <>
      <p class="soft">
        From <When at={range.from} /> until <When at={range.to} /> ({range.zone})
      </p>
      {daily.data && <SpendByDay report={daily.data} by="model" range={range} filters={filters} />}
      <Answer of={report}>{(sums) => <StatementTable report={sums} />}</Answer>
    </>
  );
}

function StatementTable({ report }: { report: UsageReport }) {
  const { data, total } = report;
  return (
    <>
      <Table
        caption="Statement"
        isCut={isCut(report)}
        rows={data}
        keyOf={({ provider, model, tool }) => JSON.stringify([provider, model, tool])}
        empty="No calls in this time."
        foot={[
          'Total',
          '',
          count(total.calls),
          count(total.input_tokens),
          count(total.output_tokens),
          money(total.cost),
        ]}
        columns={[
          {
            head: 'Model or tool',
            cell: ({ model, tool }) => model ?? tool ?? '–',
            sort: ({ model, tool }) => model ?? tool ?? '',
          },
          { head: 'Provider', cell: ({ provider }) => provider },
          CALLS,
          INPUT,
          OUTPUT,
          COST,
        ]}
      />
      <CutNote report={report} />
    </>
  );
}
