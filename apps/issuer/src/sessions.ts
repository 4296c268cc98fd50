import {
  type McpServerPolicy,
  type PageQuery,
  pageQuery,
  RefusedError,
  type RevokeSessionsQuery,
  revokeSessionsQuery,
  type SessionGrant,
  type SessionSummary,
  type SessionsQuery,
  sessionAnswer,
  sessionPage,
  sessionsQuery,
} from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { isActiveInSql, statusOfGrant, timeInSql } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, eq, inArray, not, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from './deps.ts';
import { liveFigures } from './grants/live-figures.ts';
import { closeSessions, revoke } from './grants/revoke.ts';
import { revokeIssuedBy } from './grants/revoke-issued.ts';
import { inTurn } from './in-time.ts';
import { after, micros, newestFirst, pageOfRows } from './page.ts';
import { route } from './route.ts';

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

/**
 * Reads sessions, newest first, with figures of all their grants.
 * @param where gets the expression that says whether a session is active
 */
function readSummaries(
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

const summaryOf = (row: SummaryRow): SessionSummary => ({
  id: row.id,
  created_at: row.createdAt.getTime() / 1000,
  revoked_at: row.revokedAt && row.revokedAt.getTime() / 1000,
  status: row.active ? 'active' : 'ended',
  grant_count: row.grantCount,
  expires_at: row.lastMs === null ? null : Number(row.lastMs) / 1000,
  external_sessions: JSON.parse(row.externalSessions) as string[],
  external_users: JSON.parse(row.externalUsers) as string[],
});

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
    errors: ['not_found'],
  },
  (deps) => {
    const take = inTurn();
    return ({ apiKey, params, query, c }) =>
      take(c, async () => {
        const ofAccount = and(eq(sessions.id, params.id), eq(sessions.accountId, apiKey.accountId));
        const [session] = await readSummaries(deps.db, deps.now(), 1, () => ofAccount);
        if (!session) throw new RefusedError({ code: 'not_found' });
        const { data, next_cursor } = await describeGrants(deps, session, query);
        return { ...summaryOf(session), grants: data, next_cursor };
      });
  },
);

type Session = { readonly id: string; readonly revokedAt: Date | null };
type Row = Awaited<ReturnType<typeof readGrants>>[number];

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

type Live = NonNullable<SessionGrant['live']>;

const describeGrant = (row: Row, live: Live | null, session: Session, now: number): SessionGrant => {
  const { grants: grant, budgets: budget, virtual_keys: virtualKey } = row;
  const settled = { used: budget.used, spent: budget.settledMicrousd };
  const figures = { used: (live ?? settled).used, spentMicrousd: (live ?? settled).spent };
  return {
    id: grant.id,
    kind: grant.kind,
    provider: grant.provider,
    method: grant.method,
    paths: grant.paths && [...grant.paths],
    server: grant.server && serverOf(grant.server),
    bundle_id: grant.bundleId,
    external_session: grant.externalSession,
    external_user: grant.externalUser,
    virtual_key: grant.virtualKeyId,
    api_key: grant.apiKeyId,
    metadata: grant.metadata,
    issued_at: seconds(grant.issuedAt),
    expires_at: seconds(grant.expiresAt),
    status: statusOfGrant({ grant, session, virtualKey, budget, figures }, now),
    max_uses: budget.maxUses ?? -1,
    cost_limit: budget.costLimitMicrousd,
    calls_per_minute: budget.callsPerMinute,
    settled,
    live,
  };
};

const serverOf = ({ name, url, transport }: McpServerPolicy) => ({ name, url, transport });

const seconds = (time: Date) => time.getTime() / 1000;

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
    async ({ apiKey, params }) =>
      revoke(deps, async (tx, now) => {
        // Waits for grants that are joining the session, so that they are revoked, too.
        const [session] = await tx
          .update(sessions)
          .set({ revokedAt: sql`coalesce(${sessions.revokedAt}, ${now.toISOString()}::timestamptz)` })
          .where(and(eq(sessions.accountId, apiKey.accountId), eq(sessions.id, params.id)))
          .returning({ id: sessions.id });
        if (!session) throw new RefusedError({ code: 'not_found' });
        return eq(grants.sessionId, session.id);
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
    async ({ apiKey, query }) => {
      if (query.api_key !== undefined) return revokeIssuedBy(deps, apiKey.accountId, query.api_key);
      return revoke(deps, async (tx, now) => {
        const { matching, others } = grantsWith(query);
        const revoked = sql`(${grants.accountId} = ${apiKey.accountId} and ${matching})`;
        await closeSessions(tx, revoked, others, now);
        return revoked;
      });
    },
);

function grantsWith({ external_user: user, external_session: session }: RevokeSessionsQuery) {
  const [column, value] =
    user === undefined ? [grants.externalSession, session] : [grants.externalUser, user];
  return { matching: sql`${column} = ${value}`, others: sql`${column} is distinct from ${value}` };
}
