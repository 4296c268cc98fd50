import type { UsageReport } from '@presign/client';
import { useState } from 'preact/hooks';
import { presign } from '../data/api.ts';
import { count, money } from '../data/format.ts';
import { useReportEnd, useSpendByDay, useUsage } from '../data/queries.ts';
import { type Dimension, type UsageAsked, usageFields } from '../data/usage.ts';
import { Answer, Failed, Page } from '../parts/answer.tsx';
import { Choice, Field, FilterForm } from '../parts/form.tsx';
import { href, type Place } from '../parts/place.ts';
import { groupName, groupOf, SpendByDay } from '../parts/spend-by-day.tsx';
import { Table } from '../parts/table.tsx';
import { DAYS, Totals } from '../parts/totals.tsx';

const BY: readonly (readonly [Dimension, string])[] = [
  ['day', 'day (UTC)'],
  ['model', 'model'],
  ['external_user', 'user'],
  ['provider', 'provider'],
  ['api_key', 'API key'],
  ['virtual_key', 'virtual key'],
];

export function Usage({ params }: { params: Place['params'] }) {
  const { by: asked, days: span, ...filters } = params;
  const by = BY.find(([each]) => each === asked)?.[0] ?? 'model';
  const days = Number(span) || 30;
  const sum: UsageAsked = { days, groupBy: [by], filters };
  const report = useUsage(sum);
  // The chart needs the days of each group.
  const daily = useSpendByDay({ days, by, filters });
  return (
    <Page title="Usage">
      <FilterForm path="usage">
        <Choice label="Sum by" name="by" value={by} options={BY} />
        <Choice label="Days" name="days" value={String(days)} options={DAYS} />
        <Field label="User" name="external_user" value={filters.external_user} />
        <Field label="Model" name="model" value={filters.model} />
        <Field label="Provider" name="provider" value={filters.provider} />
        <Field label="API key (id)" name="api_key" value={filters.api_key} />
        <Field label="Virtual key (id)" name="virtual_key" value={filters.virtual_key} />
      </FilterForm>
      <Answer of={report}>
        {(data) => (
          <>
            <Totals report={data} />
            {daily.data && <SpendByDay report={daily.data} by={by} />}
            <UsageTable report={data} by={by} sum={sum} />
            {data.next_cursor !== null && <p class="soft">The table is cut. The CSV has all rows.</p>}
          </>
        )}
      </Answer>
      <Download sum={sum} />
    </Page>
  );
}

function UsageTable({ report, by, sum }: { report: UsageReport; by: Dimension; sum: UsageAsked }) {
  const { data, total } = report;
  return (
    <Table
      caption="Usage"
      rows={data}
      keyOf={(row) => groupOf(row, by)}
      empty="No calls in this time."
      foot={[
        'Total',
        count(total.calls),
        count(total.uses),
        count(total.input_tokens),
        count(total.output_tokens),
        money(total.cost),
      ]}
      columns={[
        {
          head: BY.find(([each]) => each === by)?.[1] ?? by,
          cell: (row) =>
            row[by] ? <a href={behind(row, by, sum)}>{groupOf(row, by)}</a> : groupName(groupOf(row, by)),
        },
        { head: 'Calls', figure: true, cell: ({ calls }) => count(calls) },
        { head: 'Uses', figure: true, cell: ({ uses }) => count(uses) },
        { head: 'Input tokens', figure: true, cell: (row) => count(row.input_tokens) },
        { head: 'Output tokens', figure: true, cell: (row) => count(row.output_tokens) },
        { head: 'Cost', figure: true, cell: ({ cost }) => money(cost) },
      ]}
    />
  );
}

/** The way from a sum to what it adds up: from a group to its days, and from a day to its calls. */
function behind(row: UsageReport['data'][number], by: Dimension, { filters, days }: UsageAsked): string {
  if (by !== 'day')
    return href('usage', { ...filters, by: 'day', days: String(days), [by]: String(row[by]) });
  const from = new Date(String(row.day));
  const to = new Date(from.getTime() + DAY_MS);
  return href('calls', { ...filters, from: from.toISOString(), to: to.toISOString() });
}

const DAY_MS = 86_400_000;

/** Saves the same sums as CSV. */
function Download({ sum }: { sum: UsageAsked }) {
  const { data: end } = useReportEnd();
  const [error, setError] = useState<Error>();
  const save = async () => {
    try {
      setError(undefined);
      saveText('usage.csv', await presign.getUsage({ ...usageFields(sum, end ?? 0), format: 'csv' }));
    } catch (cause) {
      setError(cause as Error);
    }
  };
  return (
    <>
      <p>
        <button type="button" onClick={save}>
          Download CSV
        </button>
      </p>
      {error && <Failed error={error} />}
    </>
  );
}

/** Saves a text as a file of the reader's. */
function saveText(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
