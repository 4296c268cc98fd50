import type { SessionSummary } from '@presign/client';
import { count, short } from '../data/format.ts';
import { useSessions } from '../data/queries.ts';
import { Page } from '../parts/answer.tsx';
import { Status, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm, OpenById } from '../parts/form.tsx';
import { type Column, PagedTable } from '../parts/table.tsx';
import { href, type Place } from '../place.ts';

export function Sessions({ params }: { params: Place['params'] }) {
  const sessions = useSessions(params);
  return (
    <Page title="Sessions">
      <OpenById label="Session id" path="sessions" />
      <FilterForm path="sessions">
        <Field label="User" name="external_user" value={params.external_user} />
        <Field label="External session" name="external_session" value={params.external_session} />
        <Field label="API key (id)" name="api_key" value={params.api_key} />
        <Choice label="Status" name="status" value={params.status ?? ''} options={STATUSES} />
      </FilterForm>
      <PagedTable
        of={sessions}
        rowsOf={({ data }) => data}
        caption="Sessions"
        keyOf={({ id }) => id}
        empty={sessions.hasNextPage ? 'None among those read so far.' : 'No session fits.'}
        columns={COLUMNS}
      />
    </Page>
  );
}

const STATUSES = [
  ['', 'all'],
  ['active', 'active'],
  ['ended', 'ended'],
] as const;

const COLUMNS: readonly Column<SessionSummary>[] = [
  { head: 'Session', cell: ({ id, name }) => <a href={href(`sessions/${id}`)}>{name ?? short(id)}</a> },
  { head: 'Status', cell: ({ status }) => <Status of={status} /> },
  { head: 'Users', cell: ({ external_users: users }) => users.join(', ') || '–' },
  { head: 'External sessions', cell: ({ external_sessions: ids }) => ids.join(', ') || '–' },
  { head: 'URLs', figure: true, cell: ({ grant_count: urls }) => count(urls) },
  { head: 'Created', cell: ({ created_at: at }) => <When at={at} /> },
  { head: 'Ends', cell: ({ expires_at: at }) => <When at={at} /> },
];
