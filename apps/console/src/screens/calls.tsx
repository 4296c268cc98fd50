import type { Call } from '@presign/client';
import { count, fieldTime, money, short } from '../data/format.ts';
import { useCalls } from '../data/queries.ts';
import { Page } from '../parts/answer.tsx';
import { Status, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm, OpenById } from '../parts/form.tsx';
import { href, type Place } from '../parts/place.ts';
import { type Column, PagedTable } from '../parts/table.tsx';

export function Calls({ params }: { params: Place['params'] }) {
  const calls = useCalls(params);
  return (
    <Page title="Calls">
      <OpenById label="Request id" path="calls" />
      <FilterForm path="calls">
        <Field label="From" name="from" type="datetime-local" value={fieldTime(params.from)} />
        <Field label="Until" name="to" type="datetime-local" value={fieldTime(params.to)} />
        <Field label="User" name="external_user" value={params.external_user} />
        <Field label="Provider" name="provider" value={params.provider} />
        <Field label="Model" name="model" value={params.model} />
        <Choice label="Outcome" name="outcome" value={params.outcome ?? ''} options={OUTCOMES} />
        <details open={IDS.some(([name]) => params[name] !== undefined)}>
          <summary>Session, URL or key</summary>
          <div class="filters">
            {IDS.map(([name, label]) => (
              <Field key={name} label={label} name={name} value={params[name]} />
            ))}
          </div>
        </details>
      </FilterForm>
      <PagedTable
        of={calls}
        rowsOf={({ data }) => data}
        caption="Calls"
        keyOf={(call) => `${call.request_id} ${call.grant_id} ${call.outcome} ${call.settled_at}`}
        empty="No call fits."
        columns={COLUMNS}
      />
    </Page>
  );
}

const IDS = [
  ['session_id', 'Session (id)'],
  ['grant_id', 'URL (id)'],
  ['api_key', 'API key (id)'],
  ['virtual_key', 'Virtual key (id)'],
] as const;

/** Calls are filtered and summed by their provider, so an MCP call shows the provider and the server. */
export const providerOf = ({ provider, server }: Pick<Call, 'provider' | 'server'>): string =>
  server === null ? provider : `${provider}: ${server}`;

const OUTCOMES = [
  ['', 'all but refused'],
  ['refused', 'refused'],
  ['all', 'all'],
  ['passed', 'passed'],
  ['failed', 'failed'],
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

const COLUMNS: readonly Column<Call>[] = [
  {
    head: 'Settled',
    cell: ({ request_id: id, settled_at: at }) =>
      id === null ? (
        <When at={at} />
      ) : (
        <a href={href(`calls/${id}`)}>
          <When at={at} />
        </a>
      ),
  },
  { head: 'Outcome', cell: ({ outcome, failure }) => <Status of={failure ?? outcome} /> },
  { head: 'Provider', cell: providerOf },
  { head: 'Model or tool', cell: ({ model, tool }) => model ?? tool ?? '–' },
  { head: 'User', cell: ({ external_user: user }) => user ?? '–' },
  {
    head: 'Session',
    cell: ({ session_id: id }) => <a href={href(`sessions/${id}`)}>{short(id)}</a>,
  },
  { head: 'Input', figure: true, cell: ({ input_tokens: tokens }) => count(tokens) },
  { head: 'Output', figure: true, cell: ({ output_tokens: tokens }) => count(tokens) },
  { head: 'Cost', figure: true, cell: ({ cost }) => money(cost) },
];
