import type { UsageReport } from '@presign/client';
import { useContext } from 'preact/hooks';
import { useNames } from '../api/names.ts';
import { useByDay, useLimits, useUsage } from '../api/queries.ts';
import { count, money } from '../data/format/format.ts';
import { type Dimension, dimensionName, isCut, isTime, type UsageFilters, valueIn } from '../data/usage.ts';
import { CutNote, groupName, groupOf, hrefOfDay, SpendByDay } from '../parts/charts/by-day.tsx';
import { Choice, FilterForm } from '../parts/forms/form.tsx';
import { Pick, PickUser } from '../parts/forms/pick.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Download } from '../parts/page/download.tsx';
import { useName } from '../parts/page/facts.tsx';
import { href, type Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';
import { Rights } from '../parts/page/rights.ts';
import { Totals } from '../parts/page/totals.tsx';
import { type Column, Table } from '../parts/tables/table.tsx';
import { CALLS, COST, FAILED, INPUT, OUTPUT, USES } from '../parts/tables/usage-columns.ts';

const DIMENSIONS: readonly Dimension[] = [
  ...(['external_user', 'model', 'provider', 'tool', 'day', 'month', 'outcome'] as const),
  ...(['api_key', 'virtual_key', 'server'] as const),
];

/** Sums of calls by one dimension or two, as a chart and a table. */
export function Explore({ params }: { params: Place['params'] }) {
  const { isLive: _, ...range } = useRange();
  const { by: asked, then: second, ...filters } = params;
  const { data: limits } = useLimits();
  const { data: names } = useNames(useContext(Rights)('admin'));
  const tags = (limits?.usage_metadata ?? []).map((key): Dimension => `metadata.${key}`);
  const all = [...DIMENSIONS, ...tags];
  const by = all.find((each) => each === asked) ?? 'model';
  const then = all.find((each) => each === second && each !== by);
  const groupBy = then === undefined ? [by] : [by, then];
  const report = useUsage({ range, groupBy, filters });
  // The chart needs the days of each group.
  const daily = useByDay({ range, by: by === 'month' ? 'day' : by, filters });
  const options = all.map((each) => [each, dimensionName(each)] as const);
  return (
    <Page title="Explore">
      <FilterForm path="explore">
        <Choice label="Sum by" name="by" value={by} options={options} />
        <Choice label="And by" name="then" value={then} options={[['', 'nothing else'], ...options]} />
        <PickUser value={filters.external_user} />
        <Pick label="Model" by="model" value={filters.model} />
        <Pick label="Provider" by="provider" value={filters.provider} />
        {tags.map((tag) => (
          <Pick key={tag} label={dimensionName(tag)} by={tag} value={filters[tag]} />
        ))}
        {(['api_key', 'virtual_key'] as const).map((name) => (
          <Choice
            key={name}
            label={dimensionName(name)}
            name={name}
            value={filters[name]}
            options={[['', 'all'], ...(names?.[name] ?? [])]}
          />
        ))}
      </FilterForm>
      <Answer of={report}>
        {(data) => (
          <>
            <Totals report={data} asked={{ range, groupBy: [], filters }} />
            {daily.data && (
              <SpendByDay
                report={daily.data}
                by={by === 'month' ? 'day' : by}
                range={range}
                filters={filters}
              />
            )}
            <UsageTable report={data} groupBy={groupBy} filters={filters} zone={range.zone} />
            <CutNote report={data} />
          </>
        )}
      </Answer>
      <p class="buttons">
        <Download label="Download CSV" file="usage.csv" asked={{ range, groupBy, filters }} />
      </p>
    </Page>
  );
}

type Row = UsageReport['data'][number];

type UsageTableProps = {
  readonly report: UsageReport;
  readonly groupBy: readonly Dimension[];
  readonly filters: UsageFilters;
  readonly zone: string;
};

/** The groups that cost most first. Days and months stay in their order. */
function UsageTable({ report, groupBy, filters, zone }: UsageTableProps) {
  const { data, total } = report;
  const [by] = groupBy;
  const groups = groupBy.map(
    (by): Column<Row> => ({
      head: dimensionName(by),
      cell: (row) => <Group of={row} by={by} filters={filters} zone={zone} />,
      sort: (row) => groupOf(row, by),
    }),
  );
  return (
    <Table
      caption="Usage"
      rows={by && isTime(by) ? data.toSorted(byValue(by)) : data}
      keyOf={(row) => groupBy.map((by) => groupOf(row, by)).join('\0\0')}
      empty="No calls in this time."
      {...(!isTime(by) && { first: { head: COST.head, isDown: true } })}
      isCut={isCut(report)}
      foot={[
        'Total',
        ...groupBy.slice(1).map(() => ''),
        count(total.calls),
        count(total.failed_calls),
        count(total.uses),
        count(total.input_tokens),
        count(total.output_tokens),
        money(total.cost),
      ]}
      columns={[...groups, CALLS, FAILED, USES, INPUT, OUTPUT, COST]}
    />
  );
}

const byValue = (by: Dimension) => (a: Row, b: Row) => groupOf(a, by).localeCompare(groupOf(b, by));

type GroupProps = {
  readonly of: Row;
  readonly by: Dimension;
  readonly filters: UsageFilters;
  readonly zone: string;
};

/** A group links to the days of its calls, and a day links to its calls. */
function Group({ of, by, filters, zone }: GroupProps) {
  const value = valueIn(of, by);
  const kind = by === 'api_key' || by === 'virtual_key' ? by : undefined;
  const name = useName(kind ?? 'api_key', kind === undefined ? null : value);
  // An empty name cannot be filtered by.
  if (!value) return <>{groupName(groupOf(of, by))}</>;
  return <a href={behind(value, by, filters, zone)}>{kind === undefined ? value : name}</a>;
}

function behind(value: string, by: Dimension, filters: UsageFilters, zone: string): string {
  if (by === 'month')
    return href('explore', { ...filters, by: 'day', time: value, from: undefined, to: undefined });
  return by === 'day'
    ? hrefOfDay(value, zone, filters)
    : href('explore', { ...filters, by: 'day', [by]: value });
}
