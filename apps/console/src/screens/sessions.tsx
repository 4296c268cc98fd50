import type { Session, SessionGrant, SessionSummary } from '@presign/client';
import { useContext } from 'preact/hooks';
import { presign } from '../data/api.ts';
import { count, money, short, usedOf } from '../data/format.ts';
import { useNames, useSession, useSessions } from '../data/queries.ts';
import { Action, Secret } from '../parts/action.tsx';
import { Answer, Page } from '../parts/answer.tsx';
import { ApiKeyName, Facts, Id, Json, NotLive, Status, User, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm } from '../parts/form.tsx';
import { Pick } from '../parts/pick.tsx';
import { href, hrefOf, type Place } from '../parts/place.ts';
import { Rights } from '../parts/rights.ts';
import { type Column, PagedTable } from '../parts/table.tsx';

export function Sessions({ params }: { params: Place['params'] }) {
  const sessions = useSessions(params);
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  return (
    <Page title="URLs">
      <FilterForm path="urls">
        <Pick label="User" by="external_user" value={params.external_user} />
        <Field label="External session" name="external_session" value={params.external_session} />
        {can('admin') && (
          <Choice
            label="API key"
            name="api_key"
            value={params.api_key}
            options={[['', 'all'], ...(names?.api_key ?? [])]}
          />
        )}
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

const Users = ({ of }: { of: readonly string[] }) =>
  of.length === 0 ? (
    <>–</>
  ) : (
    <>
      {of.map((user, at) => (
        <span key={user}>
          {at > 0 && ', '}
          <User of={user} />
        </span>
      ))}
    </>
  );

const STATUSES = [
  ['', 'all'],
  ['active', 'active'],
  ['ended', 'ended'],
] as const;

const COLUMNS: readonly Column<SessionSummary>[] = [
  { head: 'Session', cell: ({ id, name }) => <a href={hrefOf('urls', id)}>{name ?? short(id)}</a> },
  { head: 'Status', cell: ({ status }) => <Status of={status} /> },
  { head: 'Users', cell: ({ external_users: users }) => <Users of={users} /> },
  { head: 'External sessions', cell: ({ external_sessions: ids }) => ids.join(', ') || '–' },
  { head: 'URLs', figure: true, cell: ({ grant_count: urls }) => count(urls) },
  { head: 'Created', cell: ({ created_at: at }) => <When at={at} /> },
  { head: 'Ends', cell: ({ expires_at: at }) => <When at={at} /> },
];

export function SessionPage({ id }: { id: string }) {
  const session = useSession(id);
  const can = useContext(Rights);
  return (
    <Page title={`Session ${short(id)}`}>
      <Answer of={session}>{({ pages: [first] }) => first && <About session={first} />}</Answer>
      <h2>URLs</h2>
      {session.data?.pages.some(({ grants }) => grants.some(({ live }) => live === null)) && <NotLive />}
      <PagedTable
        of={session}
        rowsOf={({ grants }) => grants}
        caption="URLs of this session"
        keyOf={(grant) => grant.id}
        columns={can('presign') ? [...URL_COLUMNS, CHANGES] : URL_COLUMNS}
      />
    </Page>
  );
}

function About({ session }: { session: Session }) {
  const can = useContext(Rights);
  const { id, status, name, metadata } = session;
  return (
    <>
      <Facts
        of={[
          ['Id', <Id key="id" of={id} name="session id" />],
          ['Name', name ?? '–'],
          ['Status', <Status key="status" of={status} />],
          ['Users', <Users key="users" of={session.external_users} />],
          ['Created', <When key="created" at={session.created_at} />],
          ['Ends', <When key="ends" at={session.expires_at} />],
        ]}
      />
      {metadata && <Json label="Metadata" of={metadata} />}
      <p class="buttons">
        <a href={href('requests', { session_id: id })}>Requests of this session</a>
        {can('presign') && status === 'active' && (
          <Action
            label="Revoke the session"
            title="Revoke all URLs of this session?"
            submit="Revoke"
            isDanger
            run={() => presign.revokeSession({ id })}
          >
            <p>Every gateway refuses their next call. This cannot be undone.</p>
          </Action>
        )}
      </p>
    </>
  );
}

const URL_COLUMNS: readonly Column<SessionGrant>[] = [
  { head: 'URL', cell: ({ id }) => <a href={href('requests', { grant_id: id })}>{short(id)}</a> },
  { head: 'Status', cell: ({ status }) => <Status of={status} /> },
  { head: 'Provider', cell: ({ provider, server }) => server?.name ?? provider },
  { head: 'User', cell: ({ external_user: user }) => <User of={user} /> },
  { head: 'API key', cell: ({ api_key: key }) => <ApiKeyName id={key} /> },
  {
    head: 'Uses',
    figure: true,
    cell: ({ live, settled, max_uses: most }) => usedOf((live ?? settled).used, most, count),
  },
  {
    head: 'Spent',
    figure: true,
    cell: ({ live, settled, cost_limit: most }) => usedOf((live ?? settled).spent, most, money),
  },
  { head: 'Held', figure: true, cell: ({ live }) => money(live?.held) },
  { head: 'Ends', cell: ({ expires_at: at }) => <When at={at} /> },
];

const CHANGES: Column<SessionGrant> = {
  head: 'Change',
  actions: true,
  cell: (grant) =>
    grant.status === 'active' || grant.status === 'exhausted' ? (
      <>
        <Extend grant={grant} />
        <Action
          label="Revoke"
          of={short(grant.id)}
          title={`Revoke the URL ${short(grant.id)}?`}
          submit="Revoke"
          isDanger
          run={() => presign.revokeGrant({ id: grant.id })}
        >
          <p>Every gateway refuses its next call. This cannot be undone.</p>
        </Action>
      </>
    ) : (
      '–'
    ),
};

/** A later end than the token allows needs a new URL, which only this answer shows. */
const Extend = ({ grant: { id, expires_at: end, revision } }: { grant: SessionGrant }) => (
  <Action
    label="Extend"
    of={short(id)}
    title={`Extend the URL ${short(id)}`}
    submit="Extend"
    run={async ({ hours }) =>
      presign.changeGrant(
        { id, expires_at: Math.floor(end + Number(hours) * 3_600) },
        { ifRevision: revision },
      )
    }
    show={(answer) =>
      'url' in answer && answer.url ? (
        <Secret label="The URL with the later end" value={answer.url} />
      ) : undefined
    }
  >
    <Field label="Hours" name="hours" type="number" value="24" required hint="Added to the present end." />
  </Action>
);
