import type { UsageReport } from '@presign/client';
import { useContext } from 'preact/hooks';
import { count, dayName } from '../data/format.ts';
import { type Filters, useByDay, useCalls, useNames, useRefused } from '../data/queries.ts';
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
      <p class="soft">The list has the first ten refused calls of an hour for each URL and code.</p>
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

/** Calls of each day by how they ended, and as many links that filter by it. */
function Outcomes({ params }: { params: Place['params'] }) {
  const { outcome: _, failure, grant_id: grant, ...filters } = params;
  const isSummed = failure === undefined && grant === undefined;
  const shown = useRange();
  const { isLive: _live, ...range } = shown;
  const { data: report } = useByDay({ range, by: 'outcome', filters }, isSummed);
  const { data: refused } = useRefused(shown);
  if (!isSummed) return <p class="soft">Calls are not summed by URL or by code, so there is no chart.</p>;
  if (!report) return null;
  const isAll = Object.keys(filters).length === 0;
  const days = daysOf(range);
  const series = seriesOf(report, days, isAll ? refused?.data : undefined);
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
      <Bars
        label={`Requests of each day (${range.zone}) by outcome`}
        days={days.join()}
        series={series}
        show={count}
      />
      <p class="soft">
        {isAll
          ? 'The chart counts all refused calls, by days of UTC.'
          : 'Refused calls are counted for the account as a whole, so a chart with a filter lacks them.'}
        {isAll &&
          refused?.keptFrom !== undefined &&
          ` Those before ${dayName(refused.keptFrom)} are no longer counted.`}
      </p>
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

type Counted = { readonly day: string; readonly calls: number };

/** Passed and failed calls, and refused ones if they are known. */
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
    { name: 'passed', values: sum(passed), color: '#1f8a5b' },
    { name: 'failed', values: sum(failed), color: '#c2571a' },
    ...(refused ? [{ name: 'refused', values: sum(refused), color: '#9a4fc9' }] : []),
  ];
}
