import { changedSession, RefusedError, type SessionChange, sessionChange } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { sessions } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { z } from 'zod';
import { recordChange } from '../audit/audit-log.ts';
import type { Actor, IssuerEnv } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { findSession, summaryOf } from './list-sessions.ts';
import { checkRevision, sendRevision } from './store-limits.ts';

/** `PATCH /v1/sessions/{id}`: the session's name and metadata. Its URLs are changed one by one. */
export const changeSession = route(
  {
    method: 'patch',
    path: '/v1/sessions/{id}',
    summary: 'Name a session, or set its metadata',
    description: 'Its URLs stay as they are: `PATCH /v1/grants/{id}` changes one, `DELETE` revokes all.',
    scope: 'presign',
    params: z.object({ id: z.guid() }),
    body: sessionChange,
    answer: changedSession,
    etag: true,
    errors: ['not_found', 'revision_mismatch'],
  },
  (deps) =>
    async ({ by, params, body, c }) => {
      const id = params.id.toLowerCase();
      await inTime(deps.db.transaction((tx) => store(tx, { by, id, change: body, c })));
      const session = await inTime(findSession(deps, by.accountId, id));
      sendRevision(c, session);
      return { ...summaryOf(session), metadata: session.metadata };
    },
);

type Asked = {
  readonly by: Actor;
  readonly id: string;
  readonly change: SessionChange;
  readonly c: Context<IssuerEnv>;
};

async function store(tx: Transaction, { by, id, change, c }: Asked): Promise<void> {
  const own = and(eq(sessions.id, id), eq(sessions.accountId, by.accountId));
  const [session] = await tx.select().from(sessions).where(own).for('no key update');
  if (!session) throw new RefusedError({ code: 'not_found' });
  checkRevision(c, session);
  const { name = session.name, metadata = session.metadata } = change;
  const isOther = JSON.stringify(metadata) !== JSON.stringify(session.metadata);
  await recordChange(tx, by, {
    action: 'session.changed',
    target: { kind: 'session', id },
    before: { name: session.name },
    after: { name, ...(isOther && { metadata: 'changed' }) },
  });
  if (!isOther && name === session.name) return;
  await tx
    .update(sessions)
    .set({ name, metadata, revision: session.revision + 1 })
    .where(own);
}
