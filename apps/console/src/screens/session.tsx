import type { Session } from '@presign/client';
import { useContext } from 'preact/hooks';
import { presign } from '../api/api.ts';
import { useSession } from '../api/queries.ts';
import { short } from '../data/format/format.ts';
import { Action } from '../parts/forms/action.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Facts, Id, Json, Status, User, When } from '../parts/page/facts.tsx';
import { href } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { UrlTable } from '../parts/tables/url-table.tsx';

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

/** A session and all its URLs. */
export function SessionPage({ id }: { id: string }) {
  const session = useSession(id);
  const [first] = session.data?.pages ?? [];
  return (
    <Page title={`Session ${first?.name ?? short(id)}`}>
      <Answer of={session}>{({ pages: [about] }) => about && <About session={about} />}</Answer>
      <h2>URLs</h2>
      <UrlTable
        of={session}
        rowsOf={({ id: session_id, name: session_name, grants }) =>
          grants.map((grant) => ({ ...grant, session_id, session_name }))
        }
        caption="URLs of this session"
        empty="It has no URL."
        hasButtons
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
