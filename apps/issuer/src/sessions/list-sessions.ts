import { type SessionSummary, type SessionsQuery, sessionPage, sessionsQuery } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { isActiveInSql, timeInSql } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, eq, inArray, not, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTurn } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';

/** `GET /v1/sessions`: the account's sessions, newest first. */
export const listSessions = route(
  {
    method: 'get',
    path: '/v1/sessions',
    summary: 'List sessions, newest first, by external ids and status',
    scope: 'read',
    query: sessionsQuery,
    answer: sessionPage,
  },
  (deps) => {
    const take = inTurn();
    return async ({ apiKey, query, c }) => {
      const rows = await take(c, async () => readPage(deps, apiKey.accountId, query));
      return pageOfRows(rows, query.limit, summaryOf);
    };
  },
);

function readPage({ db, now }: IssuerDeps, accountId: string, query: SessionsQuery) {
  const nowMs = now();
  return readSummaries(db, nowMs, query.limit + 1, (active) =>
    and(
      eq(sessions.accountId, accountId),
      after(query.cursor, sessions),
      issuedWith(db, accountId, query),
      query.status === 'active' ? isActive(nowMs) : undefined,
      query.status === 'ended' ? not(active) : undefined,
    ),
  );
}

/** The same condition as `active` of a row, written so that Postgres may start with the grants: most have ended. */
const isActive = (nowMs: number): SQL => sql`exists (
  select from ${grants} join ${budgets} on ${budgets.id} = ${grants.budgetId}
  left join ${virtualKeys} on ${virtualKeys.id} = ${grants.virtualKeyId}
  where ${grants.sessionId} = ${sessions.id} and ${isActiveInSql(timeInSql(nowMs))})`;

/** The sessions with a grant that was issued with these ids. Two ids must be those of one grant. */
function issuedWith(db: IssuerDeps['db'], accountId: string, query: SessionsQuery): SQL | undefined {
  const { external_session: session, external_user: user } = query;
  if (session === undefined && user === undefined) return undefined;
  const wanted = and(
    eq(grants.accountId, accountId),
    session === undefined ? undefined : eq(grants.externalSession, session),
    user === undefined ? undefined : eq(grants.externalUser, user),
  );
  return inArray(sessions.id, db.select({ id: grants.sessionId }).from(grants).where(wanted));
}

/**
 * Reads sessions, newest first, with figures of all their grants.
 * @param where gets the expression that says whether a session is active
 */
export function readSummaries(
  db: Database,
  nowMs: number,
  limit: number,
  where: (active: SQLWrapper) => SQL | undefined,
) {
  const ofSession = ofAllGrants(db, nowMs);
  return db
    .select({
      id: sessions.id,
      micros: micros(sessions.createdAt),
      createdAt: sessions.createdAt,
      revokedAt: sessions.revokedAt,
      active: ofSession.anyActive,
      grantCount: ofSession.grantCount,
      lastMs: ofSession.lastMs,
      externalSessions: ofSession.externalSessions,
      externalUsers: ofSession.externalUsers,
    })
    .from(sessions)
    .innerJoinLateral(ofSession, sql`true`)
    .where(where(ofSession.anyActive))
    .orderBy(...newestFirst(sessions))
    .limit(limit);
}

type Row = Awaited<ReturnType<typeof readSummaries>>[number];

/** One row for each session, over all its grants. */
const ofAllGrants = (db: Database, nowMs: number) =>
  db
    .select({
      anyActive: sql<boolean>`coalesce(bool_or(${isActiveInSql(timeInSql(nowMs))}), false)`.as('any_active'),
      grantCount: sql<number>`count(*)::int`.as('grant_count'),
      lastMs: sql<string | null>`max(extract(epoch from ${grants.expiresAt}) * 1000)::bigint::text`.as(
        'last_ms',
      ),
      externalSessions: distinct(grants.externalSession).as('external_sessions'),
      externalUsers: distinct(grants.externalUser).as('external_users'),
    })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(eq(grants.sessionId, sessions.id))
    .as('of_session');

/** As text, because all drivers read text alike. */
const distinct = (column: typeof grants.externalUser | typeof grants.externalSession) =>
  sql<string>`coalesce(json_agg(distinct ${column}) filter (where ${column} is not null), '[]')::text`;

export const summaryOf = (row: Row): SessionSummary => ({
  id: row.id,
  created_at: row.createdAt.getTime() / 1000,
  revoked_at: row.revokedAt && row.revokedAt.getTime() / 1000,
  status: row.active ? 'active' : 'ended',
  grant_count: row.grantCount,
  expires_at: row.lastMs === null ? null : Number(row.lastMs) / 1000,
  external_sessions: JSON.parse(row.externalSessions) as string[],
  external_users: JSON.parse(row.externalUsers) as string[],
});
