import {
  type Cursor,
  type SessionSummary,
  type SessionsQuery,
  sessionPage,
  sessionsQuery,
  writeCursor,
} from '@presign/schema';
import { isActiveInSql, timeInSql } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { and, count as counted, eq, gt, inArray, isNull, not, type SQL, sql } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows, upTo } from '../answers/page.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

type Needs = Pick<RouteDeps, 'db' | 'now'>;

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
    return async ({ apiKey, query, c }) => take(c, () => readPage(deps, apiKey.accountId, query));
  },
);

/**
 * How many sessions are looked up for a page of one status: first a few, which nearly always fill the page, and then more. If they do not
 * fill it, the page ends with the last of them, so that its time does not depend on the number of sessions.
 */
const LOOKED_UP = { few: 500, many: 2_000 };
/** If an account has no more grants that neither expired nor were revoked, an index finds all sessions with one. */
const LIVE_MAX = 2_000;

async function readPage({ db, now }: Needs, accountId: string, query: SessionsQuery) {
  const { status, limit } = query;
  const nowMs = now();
  const listed = and(
    eq(sessions.accountId, accountId),
    after(query.cursor, sessions),
    issuedWith(db, accountId, query),
  );
  const read = (which: SQL | undefined, where?: SQL) =>
    readSummaries(db, nowMs, limit + 1, selectSessions(db, which), where);
  const pageOf = (rows: readonly SummaryRow[]) => pageOfRows(rows, limit, summaryOf);
  if (status === undefined) return pageOf(await read(listed));
  const isActive = hasActiveGrant(nowMs);
  const hasStatus = status === 'active' ? isActive : not(isActive);
  /** A page of the next sessions. If they neither fill the page nor are the last ones, it has the position of the last. */
  const lookUp = async (count: number) => {
    const last = await placeOf(db, listed, count);
    // Sessions that are created meanwhile come first, and do not shift these.
    const rows = await read(and(listed, last && upTo(last, sessions)), hasStatus);
    return { page: pageOf(rows), last: rows.length > limit ? undefined : last };
  };
  const first = await lookUp(LOOKED_UP.few);
  if (!first.last) return first.page;
  const live = liveGrants(db, accountId, nowMs);
  if (status === 'active' && (await hasAtMost(db, LIVE_MAX, live)))
    return pageOf(await read(and(listed, inArray(sessions.id, live)), hasStatus));
  const { page, last } = await lookUp(LOOKED_UP.many);
  return last ? { ...page, next_cursor: writeCursor(last) } : page;
}

/** The position of the `count`-th session of a list, if the list has that many. */
async function placeOf(db: Database, listed: SQL | undefined, count: number): Promise<Cursor | undefined> {
  const [place] = await db
    .select({ id: sessions.id, micros: micros(sessions.createdAt) })
    .from(sessions)
    .where(listed)
    .orderBy(...newestFirst(sessions))
    .offset(count - 1)
    .limit(1);
  return place;
}

/**
 * The same condition as `active` of a row. With `offset 0`, Postgres looks up the grants of one session after the other. Without statistics
 * Postgres prefers a join of all sessions with all live grants of the account, which compares each with each.
 */
const hasActiveGrant = (nowMs: number): SQL => sql`exists (select from ${grants}
  join ${budgets} on ${budgets.id} = ${grants.budgetId}
  left join ${virtualKeys} on ${virtualKeys.id} = ${grants.virtualKeyId}
  where ${grants.sessionId} = ${sessions.id} and ${grants.revokedAt} is null and ${isActiveInSql(timeInSql(nowMs))}
  offset 0)`;

/** The sessions of grants that neither expired nor were revoked. An index has them. */
const liveGrants = (db: Database, accountId: string, nowMs: number) =>
  db
    .select({ id: grants.sessionId })
    .from(grants)
    .where(
      and(eq(grants.accountId, accountId), isNull(grants.revokedAt), gt(grants.expiresAt, timeInSql(nowMs))),
    );

async function hasAtMost(db: Database, most: number, live: ReturnType<typeof liveGrants>): Promise<boolean> {
  const some = db
    .select()
    .from(live.as('live'))
    .limit(most + 1);
  const [{ all = 0 } = {}] = await db.select({ all: counted() }).from(some.as('some'));
  return all <= most;
}

/** The sessions with a grant that was issued with these ids and by this key. All of them must be those of one grant. */
function issuedWith(db: Database, accountId: string, query: SessionsQuery): SQL | undefined {
  const { external_session: session, external_user: user, api_key: apiKey } = query;
  if (session === undefined && user === undefined && apiKey === undefined) return undefined;
  const wanted = and(
    eq(grants.accountId, accountId),
    session === undefined ? undefined : eq(grants.externalSession, session),
    user === undefined ? undefined : eq(grants.externalUser, user),
    apiKey === undefined ? undefined : eq(grants.apiKeyId, apiKey),
  );
  return inArray(sessions.id, db.select({ id: grants.sessionId }).from(grants).where(wanted));
}

/** The columns of a session that its summary has. Its metadata may be long. */
const OF_SESSION = {
  id: sessions.id,
  createdAt: sessions.createdAt,
  revokedAt: sessions.revokedAt,
  name: sessions.name,
  revision: sessions.revision,
};

/** Sessions in the order of a list. */
export const selectSessions = (db: Database, where: SQL | undefined) =>
  db
    .select(OF_SESSION)
    .from(sessions)
    .where(where)
    .orderBy(...newestFirst(sessions))
    .$dynamic();
type From = ReturnType<typeof selectSessions>;

/** Reads sessions, newest first, with figures of all their grants. It reads only the sessions of the answer. */
export function readSummaries(db: Database, nowMs: number, limit: number, from: From, where?: SQL) {
  const page = db
    .select({
      ...OF_SESSION,
      micros: micros(sessions.createdAt).as('micros'),
    })
    // By this name, because a grant's status depends on its session.
    .from(from.as('sessions'))
    .where(where)
    .orderBy(...newestFirst(sessions))
    .limit(limit)
    .as('sessions');
  const ofSession = ofAllGrants(db, nowMs);
  return db
    .select({
      id: page.id,
      micros: page.micros,
      createdAt: page.createdAt,
      revokedAt: page.revokedAt,
      name: page.name,
      revision: page.revision,
      active: ofSession.anyActive,
      grantCount: ofSession.grantCount,
      lastMs: ofSession.lastMs,
      externalSessions: ofSession.externalSessions,
      externalUsers: ofSession.externalUsers,
    })
    .from(page)
    .innerJoinLateral(ofSession, sql`true`)
    .orderBy(...newestFirst(sessions));
}

export type SummaryRow = Awaited<ReturnType<typeof readSummaries>>[number];

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

export const summaryOf = (row: SummaryRow): SessionSummary => ({
  id: row.id,
  name: row.name,
  created_at: unixSeconds(row.createdAt),
  revoked_at: row.revokedAt && unixSeconds(row.revokedAt),
  status: row.active ? 'active' : 'ended',
  grant_count: row.grantCount,
  expires_at: row.lastMs === null ? null : Math.floor(Number(row.lastMs) / 1000),
  external_sessions: JSON.parse(row.externalSessions) as string[],
  external_users: JSON.parse(row.externalUsers) as string[],
  revision: row.revision,
});
