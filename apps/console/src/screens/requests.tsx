import type { UsageReport } from '@presign/client';
import { useContext } from 'preact/hooks';
import { count } from '../data/format.ts';
import { type Filters, useByDay, useCalls, useNames, useRefusals } from '../data/queries.ts';
import { daysOf } from '../data/range.ts';
import { Page } from '../parts/answer.tsx';
import { Bars, type Series } from '../parts/by-day.tsx';
import { CALL_COLUMNS, ENDED, keyOfCall } from '../parts/calls.tsx';
import { Choice, Field, FilterForm } from '../parts/form.tsx';
import { Pick } from '../parts/pick.tsx';
import { href, type Place } from '../parts/place.ts';
import { useRange } from '../parts/range.tsx';
import { Rights } from '../parts/rights.ts';
import { PagedTable } from '../parts/table.tsx';

/** Passed, failed and refused calls in one list, newest first, which follows new ones. */
export function Requests({ params }: { params: Place['params'] }) {
  const { isLive, ...range } = useRange();
  return (
    <Page title="Requests">
      <RequestFilters params={params} />
      <Outcomes params={params} />
      <PagedTable
        of={useCalls(params, range, isLive)}
        rowsOf={({ data }) => data}
        caption="Requests"
        keyOf={keyOfCall}
        empty="No call fits."
        columns={isEnded(params.outcome) ? [...CALL_COLUMNS, ENDED] : CALL_COLUMNS}
      />
      <p class="soft">
        The list has the first ten refused calls of an hour for each URL and code. The chart counts all of
        them.
      </p>
    </Page>
  );
}

/** Calls that did not pass say why. */
const isEnded = (outcome: string | undefined) => outcome !== undefined && outcome !== 'passed';

function RequestFilters({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  const choices = (of: ReadonlyMap<string, string> | undefined) => [['', 'all'] as const, ...(of ?? [])];
  return (
    <FilterForm path="requests">
      <Choice label="Outcome" name="outcome" value={params.outcome} options={OUTCOMES} />
      <Pick label="User" by="external_user" value={params.external_user} />
      <Pick label="Model" by="model" value={params.model} />
      <Pick label="Provider" by="provider" value={params.provider} />
      <details open={RARE.some((name) => params[name] !== undefined)}>
        <summary>Code, tool, key, session or URL</summary>
        <div class="filters">
          <Field label="Code of the failure" name="failure" value={params.failure} />
          <Pick label="Tool" by="tool" value={params.tool} />
          {can('admin') && (
            <Choice label="API key" name="api_key" value={params.api_key} options={choices(names?.api_key)} />
          )}
          <Choice
            label="Virtual key"
            name="virtual_key"
            value={params.virtual_key}
            options={choices(names?.virtual_key)}
          />
          <Field label="Session (id)" name="session_id" value={params.session_id} />
          <Field label="URL (id)" name="grant_id" value={params.grant_id} />
        </div>
      </details>
    </FilterForm>
  );
}

const RARE = ['failure', 'tool', 'api_key', 'virtual_key', 'session_id', 'grant_id'] as const;

const OUTCOMES = [
  ['', 'all'],
  ['passed', 'passed'],
  ['failed', 'failed'],
  ['refused', 'refused'],
  ['provider_error', 'failed: provider error'],
  ['provider_refused', 'failed: provider refused'],
  ['provider_unreachable', 'failed: provider unreachable'],
  ['provider_timeout', 'failed: provider timed out'],
  ['answer_broken', 'failed: answer broken'],
  ['holder_left', 'failed: holder left'],
  ['cut', 'failed: URL ended'],
  ['credential_refused', 'failed: credential refused'],
  ['gateway_error', 'failed: gateway'],
  ['lease_ended', 'failed: gateway died'],
  ['under_way', 'under way'],
  ['refunded', 'refunded'],
] as const;

/** Filters by which sums can be asked, besides outcome and code. */
const SUMMED = [
  'external_user',
  'model',
  'provider',
  'tool',
  'api_key',
  'virtual_key',
  'session_id',
] as const;

/** Calls of each day by how they ended, and as many links that filter by it. */
function Outcomes({ params }: { params: Place['params'] }) {
  const { isLive: _, ...range } = useRange();
  const filters = Object.fromEntries(SUMMED.flatMap((name) => (params[name] ? [[name, params[name]]] : [])));
  const { data: report } = useByDay({ range, by: 'outcome', filters });
  const { data: refusals } = useRefusals(DAYS);
  if (!report || params.grant_id !== undefined) return null;
  const days = daysOf(range);
  // Refused calls are counted for the account alone, by days of UTC.
  const isWhole = Object.keys(filters).length === 0;
  const refused = isWhole ? (refusals?.data ?? []).filter(({ day }) => days.includes(day)) : [];
  const series = seriesOf(report, days, refused);
  const facets = series.map(
    ({ name, values }) => [name, values.reduce((sum, value) => sum + value, 0)] as const,
  );
  return (
    <>
      <nav aria-label="Outcomes" class="facets">
        <Facet
          name="all"
          params={params}
          outcome={undefined}
          calls={facets.reduce((sum, [, calls]) => sum + calls, 0)}
        />
        {facets.map(([name, calls]) => (
          <Facet
            key={name}
            name={name}
            params={params}
            outcome={name}
            calls={name === 'refused' && !isWhole ? undefined : calls}
          />
        ))}
      </nav>
      <Bars
        label={`Requests of each day (${range.zone}) by outcome`}
        days={days.join()}
        series={series}
        show={count}
      />
    </>
  );
}

/** The most days that refusals are kept for. */
const DAYS = 90;

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

type Counted = { readonly day: string; readonly calls: number };

function seriesOf({ data }: UsageReport, days: readonly string[], refused: readonly Counted[]): Series[] {
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
    { name: 'passed', values: sum(passed), color: '#1f8a5b' },
    { name: 'failed', values: sum(failed), color: '#c2571a' },
    { name: 'refused', values: sum(refused), color: '#9a4fc9' },
  ];
}
