import type { Call } from '@presign/client';
import { count, money, short } from '../data/format.ts';
import { useCalls } from '../data/queries.ts';
import { Page } from '../parts/answer.tsx';
import { Status, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm, OpenById } from '../parts/form.tsx';
import { type Column, PagedTable } from '../parts/table.tsx';
import { href, type Place } from '../place.ts';

export function Calls({ params }: { params: Place['params'] }) {
  const calls = useCalls(params);
  return (
    <Page title="Calls">
      <OpenById label="Request id" path="calls" />
      <FilterForm path="calls">
        <Field label="User" name="external_user" value={params.external_user} />
        <Field label="Session (id)" name="session_id" value={params.session_id} />
        <Field label="URL (id)" name="grant_id" value={params.grant_id} />
        <Field label="API key (id)" name="api_key" value={params.api_key} />
        <Field label="Virtual key (id)" name="virtual_key" value={params.virtual_key} />
        <Field label="Provider" name="provider" value={params.provider} />
        <Field label="Model" name="model" value={params.model} />
        <Choice label="Outcome" name="outcome" value={params.outcome ?? ''} options={OUTCOMES} />
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

const OUTCOMES = [
  ['', 'all'],
  ['settled', 'settled'],
  ['expired', 'expired'],
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
  { head: 'Provider', cell: ({ provider, server }) => server ?? provider },
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
