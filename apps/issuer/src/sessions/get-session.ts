import {
  type PageQuery,
  pageQuery,
  RefusedError,
  type RevokeSessionsQuery,
  revokeSessionsQuery,
  sessionAnswer,
} from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, eq, sql } from 'drizzle-orm';
import * as z from 'zod';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import type { IssuerDeps } from '../deps.ts';
import { describeGrant } from '../grants/describe-grant.ts';
import { liveFigures } from '../grants/live-figures.ts';
import { lockSessions, revoke } from '../grants/revoke.ts';
import { revokeIssuedBy } from '../grants/revoke-issued.ts';
import { sendRevision } from '../grants/store-limits.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { readSummaries, type SummaryRow, selectSessions, summaryOf } from './list-sessions.ts';

/** `GET /v1/sessions/{id}`: a session and a page of its grants, with their limits, uses and spending. */
export const getSession = route(
  {
    method: 'get',
    path: '/v1/sessions/{id}',
    summary: 'Get a session and its grants, with their uses and spending',
    scope: 'read',
    params: z.object({ id: z.guid() }),
    query: pageQuery,
    answer: sessionAnswer,
    etag: true,
    errors: ['not_found'],
  },
  (deps) => {
    const take = inTurn();
    return ({ apiKey, params, query, c }) =>
      take(c, async () => {
        const session = await findSession(deps, apiKey.accountId, params.id);
        sendRevision(c, session);
        const { data, next_cursor } = await describeGrants(deps, session, query);
        return { ...summaryOf(session), metadata: session.metadata, grants: data, next_cursor };
      });
  },
);

type Session = { readonly id: string; readonly revokedAt: Date | null };

/** Grants are ordered by their time of issue. */
const PLACE = { createdAt: grants.issuedAt, id: grants.id };

const readGrants = ({ db }: IssuerDeps, sessionId: string, { cursor, limit }: PageQuery) =>
  db
    .select({ id: grants.id, micros: micros(grants.issuedAt), grants, budgets, virtual_keys: virtualKeys })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(eq(grants.sessionId, sessionId), after(cursor, PLACE)))
    .orderBy(...newestFirst(PLACE))
    .limit(limit + 1);

async function describeGrants(deps: IssuerDeps, session: Session, query: PageQuery) {
  const rows = await readGrants(deps, session.id, query);
  // The grants of a bundle share one budget, which is read only once.
  const byId = new Map(rows.slice(0, query.limit).map(({ budgets: budget }) => [budget.id, budget]));
  const live = new Map(
    await Promise.all(
      Array.from(byId, async ([id, budget]) => [id, await liveFigures(deps.redis, budget)] as const),
    ),
  );
  return pageOfRows(rows, query.limit, (row) =>
    describeGrant(row, live.get(row.budgets.id) ?? null, session, deps.now()),
  );
}

/**
 * A session of an account, with its metadata.
 * @throws RefusedError `not_found`
 */
export async function findSession(
  { db, now }: Pick<IssuerDeps, 'db' | 'now'>,
  accountId: string,
  id: string,
): Promise<SummaryRow & Pick<typeof sessions.$inferSelect, 'metadata'>> {
  const own = and(eq(sessions.id, id), eq(sessions.accountId, accountId));
  const [session] = await readSummaries(db, now(), 1, selectSessions(db, own));
  const [more] = await db.select({ metadata: sessions.metadata }).from(sessions).where(own);
  if (!session || !more) throw new RefusedError({ code: 'not_found' });
  return { ...session, ...more };
}

/**
 * Creates the session that a caller asks for, or joins it when it exists and belongs to the same account. Its row
 * stays locked until the transaction ends: a revocation waits for the new grant, and then revokes it, too.
 * @throws RefusedError `session_conflict` for a session of another account, or a revoked one
 */
export async function joinSession(
  tx: Transaction,
  accountId: string,
  id: string,
  createdAt: Date,
): Promise<void> {
  const row = { id, accountId, createdAt };
  const created = await tx.insert(sessions).values(row).onConflictDoNothing().returning({ id: sessions.id });
  if (created.length > 0) return;
  const [session] = await tx.select().from(sessions).where(eq(sessions.id, id)).for('share');
  if (session?.accountId !== accountId) throw conflict('session_id: this session cannot be joined.');
  if (session.revokedAt) throw conflict('session_id: this session has been revoked.');
}

const conflict = (message: string) =>
  new RefusedError({ code: 'session_conflict', param: 'session_id', message });

/** `DELETE /v1/sessions/{id}`: revokes all grants of a session and closes it for new ones. */
export const revokeSession = route(
  {
    method: 'delete',
    path: '/v1/sessions/{id}',
    summary: 'Revoke a session and all its grants',
    description:
      'Every gateway refuses its URLs from the next call on and ends calls under way. No grant can join the session afterwards.',
    scope: 'presign',
    params: z.object({ id: z.guid() }),
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      revoke(deps, by, { kind: 'session', id: params.id.toLowerCase() }, async (tx) => {
        const own = and(eq(sessions.accountId, by.accountId), eq(sessions.id, params.id));
        // Waits for grants that are joining the session, so that they are revoked, too.
        const locked = tx.select({ id: sessions.id }).from(sessions).where(own).for('no key update');
        const [session] = await locked;
        if (!session) throw new RefusedError({ code: 'not_found' });
        return { grants: eq(grants.sessionId, session.id), sessions: eq(sessions.id, session.id) };
      }),
);

/**
 * `DELETE /v1/sessions?external_user=…` (or `external_session`, or `api_key`): revokes every grant that was issued with
 * this id or by this key. A session that has only such grants is revoked as a whole; one with other grants stays open for
 * them.
 */
export const revokeSessions = route(
  {
    method: 'delete',
    path: '/v1/sessions',
    summary: 'Revoke all grants of one of your own users or sessions, or of an API key',
    description:
      'Give `external_user`, `external_session` or `api_key`. Every gateway refuses the URLs from the next call on and ends calls under way.',
    scope: 'presign',
    query: revokeSessionsQuery,
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, query }) => {
      if (query.api_key !== undefined) return revokeIssuedBy(deps, by, query.api_key);
      const { target, matching, others } = grantsWith(query);
      return revoke(deps, by, target, async (tx) => {
        const revoked = sql`(${grants.accountId} = ${by.accountId} and ${matching})`;
        return { grants: revoked, sessions: await lockSessions(tx, revoked, others) };
      });
    },
);

function grantsWith({ external_user: user, external_session: session }: RevokeSessionsQuery) {
  const [kind, column, value = ''] =
    user === undefined
      ? (['external_session', grants.externalSession, session] as const)
      : (['external_user', grants.externalUser, user] as const);
  return {
    target: { kind, id: value },
    matching: sql`${column} = ${value}`,
    others: sql`${column} is distinct from ${value}`,
  };
}
