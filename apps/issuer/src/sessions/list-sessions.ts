import { type SessionSummary, type SessionsQuery, sessionPage, sessionsQuery } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, eq, inArray, not, type SQL, sql } from 'drizzle-orm';
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
  const lives = grantLives(now());
  return readSummaries(db, lives, query.limit + 1, (active) =>
    and(
      eq(sessions.accountId, accountId),
      after(query.cursor, sessions),
      issuedWith(db, accountId, query),
      query.status === 'active' ? isActive(lives) : undefined,
      query.status === 'ended' ? not(active) : undefined,
    ),
  );
}

/** The same condition as `active` of a row, written so that Postgres may start with the grants: most have ended. */
const isActive = (lives: SQL): SQL => sql`(${sessions.revokedAt} is null and exists (
  select from ${grants} join ${budgets} on ${budgets.id} = ${grants.budgetId}
  where ${grants.sessionId} = ${sessions.id} and ${lives}))`;

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
 * @param lives the condition by which a grant keeps its session active
 * @param where gets the expression that says whether a session is active
 */
export function readSummaries(
  db: Database,
  lives: SQL,
  limit: number,
  where: (active: SQL<boolean>) => SQL | undefined,
) {
  const ofSession = ofAllGrants(db, lives);
  const active = sql<boolean>`(${sessions.revokedAt} is null and ${ofSession.anyLives})`;
  return db
    .select({
      id: sessions.id,
      micros: micros(sessions.createdAt),
      createdAt: sessions.createdAt,
      revokedAt: sessions.revokedAt,
      active,
      grantCount: ofSession.grantCount,
      lastMs: ofSession.lastMs,
      externalSessions: ofSession.externalSessions,
      externalUsers: ofSession.externalUsers,
    })
    .from(sessions)
    .innerJoinLateral(ofSession, sql`true`)
    .where(where(active))
    .orderBy(...newestFirst(sessions))
    .limit(limit);
}

type Row = Awaited<ReturnType<typeof readSummaries>>[number];

/**
 * Whether a grant is neither revoked, itself or by its virtual key, nor expired, and by the ledger's figures has
 * something left.
 */
export const grantLives = (nowMs: number): SQL => sql`(${grants.revokedAt} is null
  and not exists (select from ${virtualKeys}
    where ${virtualKeys.id} = ${grants.virtualKeyId} and ${virtualKeys.revokedAt} is not null)
  and ${grants.expiresAt} > ${new Date(nowMs).toISOString()}::timestamptz
  and (${budgets.maxUses} is null or ${budgets.used} < ${budgets.maxUses})
  and (${budgets.costLimitMicrousd} is null or ${budgets.costLimitMicrousd} = 0
    or ${budgets.settledMicrousd} < ${budgets.costLimitMicrousd}))`;

/** One row for each session, over all its grants. */
const ofAllGrants = (db: Database, lives: SQL) =>
  db
    .select({
      anyLives: sql<boolean>`coalesce(bool_or(${lives}), false)`.as('any_lives'),
      grantCount: sql<number>`count(*)::int`.as('grant_count'),
      lastMs: sql<string | null>`max(extract(epoch from ${grants.expiresAt}) * 1000)::bigint::text`.as(
        'last_ms',
      ),
      externalSessions: distinct(grants.externalSession).as('external_sessions'),
      externalUsers: distinct(grants.externalUser).as('external_users'),
    })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
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
