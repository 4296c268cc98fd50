import { useContext } from 'preact/hooks';
import { useNames } from '../api/names.ts';
import { useCalls } from '../api/queries.ts';
import { Choice, Field, FilterForm } from '../parts/forms/form.tsx';
import { Pick, PickUser } from '../parts/forms/pick.tsx';
import { Page } from '../parts/page/answer.tsx';
import type { Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';
import { Rights } from '../parts/page/rights.ts';
import { CALL_COLUMNS, ENDED_COLUMNS, KeptRefusals, keyOfCall } from '../parts/tables/calls.tsx';
import { PagedTable } from '../parts/tables/table.tsx';
import { Facets } from './facets.tsx';
import { Outcomes } from './outcomes.tsx';

/** Passed, failed and refused calls in one list, newest first, which follows new ones. */
export function Requests({ params }: { params: Place['params'] }) {
  const { isLive, ...range } = useRange();
  return (
    <Page title="Requests">
      <RequestFilters params={params} />
      <Outcomes params={params} />
      <Facets params={params} />
      {mayBeRefused(params.outcome) && <KeptRefusals />}
      <PagedTable
        of={useCalls(params, range, isLive)}
        rowsOf={({ data }) => data}
        caption="Requests"
        keyOf={keyOfCall}
        empty="No call fits."
        columns={isEnded(params.outcome) ? ENDED_COLUMNS : CALL_COLUMNS}
        isDense={isEnded(params.outcome)}
      />
    </Page>
  );
}

const mayBeRefused = (outcome: string | undefined) => outcome === undefined || outcome === 'refused';

/** Calls that did not pass say why. */
const isEnded = (outcome: string | undefined) => outcome !== undefined && outcome !== 'passed';

function RequestFilters({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  const choices = (of: ReadonlyMap<string, string> | undefined) => [['', 'all'] as const, ...(of ?? [])];
  return (
    <FilterForm path="requests">
      <Choice label="Outcome" name="outcome" value={params.outcome} options={OUTCOMES} />
      <PickUser value={params.external_user} />
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
