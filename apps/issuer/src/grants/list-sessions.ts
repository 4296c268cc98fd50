import {
  RefusedError,
  type SessionSummary,
  type SessionsQuery,
  sessionPage,
  sessionsQuery,
} from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { isActiveInSql, timeInSql } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, count as counted, eq, inArray, not, type SQL, sql } from 'drizzle-orm';
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

/**
 * So many of the newest sessions are looked up one by one. The first number nearly always fills a page. Beyond the second,
 * all live grants are read at once: with 200,000 sessions that took 0.7 seconds, and looking them up 4.
 */
const LOOKED_UP = [1_000, 20_000] as const;

async function readPage({ db, now }: IssuerDeps, accountId: string, query: SessionsQuery) {
  const { status, limit } = query;
  const nowMs = now();
  const listed = and(
    eq(sessions.accountId, accountId),
    after(query.cursor, sessions),
    issuedWith(db, accountId, query),
  );
  const read = (from: From, where?: SQL, on: Database = db) =>
    readSummaries(on, nowMs, limit + 1, from, where);
  if (status === undefined) return read(selectSessions(db, listed));
  const hasStatus = (some: SQL) => (status === 'active' ? some : not(some));
  const { live, isLive } = liveGrants(accountId, nowMs);
  const lookUp = sql`exists (select ${live} where ${grants.sessionId} = ${sessions.id} and ${isLive})`;
  for (const count of LOOKED_UP) {
    const newest = selectSessions(db, listed).limit(count);
    const found = await read(newest, hasStatus(lookUp));
    if (found.length > limit) return found;
    const [{ all = 0 } = {}] = await db.select({ all: counted() }).from(newest.as('newest'));
    if (all < count) return found;
  }
  const among = sql`exists (select from (select ${grants.sessionId} as id ${live}
    join ${sessions} on ${sessions.id} = ${grants.sessionId} where ${isLive}) as live where live.id = ${sessions.id})`;
  return db.transaction(async (tx) => {
    // Postgres expects to fill the page early, and looks up session by session.
    await tx.execute(sql`set local enable_nestloop = off`);
    return read(selectSessions(tx, and(listed, hasStatus(among))), undefined, tx);
  });
}

/** The same condition as `active` of a row. An index has the grants that neither expired nor were revoked. */
const liveGrants = (accountId: string, nowMs: number) => ({
  live: sql`from ${grants} join ${budgets} on ${budgets.id} = ${grants.budgetId}
    left join ${virtualKeys} on ${virtualKeys.id} = ${grants.virtualKeyId}`,
  isLive: sql`${grants.accountId} = ${accountId} and ${grants.revokedAt} is null
    and ${isActiveInSql(timeInSql(nowMs))}`,
});

/** The sessions with a grant that was issued with these ids and by this key. All of them must be those of one grant. */
function issuedWith(db: IssuerDeps['db'], accountId: string, query: SessionsQuery): SQL | undefined {
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

/** Reads sessions, newest first, with figures of all their grants: of those that the answer has, and no others. */
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

type SummaryRow = Awaited<ReturnType<typeof readSummaries>>[number];

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
  created_at: row.createdAt.getTime() / 1000,
  revoked_at: row.revokedAt && row.revokedAt.getTime() / 1000,
  status: row.active ? 'active' : 'ended',
  grant_count: row.grantCount,
  expires_at: row.lastMs === null ? null : Number(row.lastMs) / 1000,
  external_sessions: JSON.parse(row.externalSessions) as string[],
  external_users: JSON.parse(row.externalUsers) as string[],
  revision: row.revision,
});
