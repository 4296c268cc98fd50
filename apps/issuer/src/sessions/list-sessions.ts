import { type SessionsQuery, sessionPage, sessionsQuery } from '@presign/schema';
import { budgets, grants, sessions } from '@presign/schema/tables';
import { and, eq, inArray, not, type SQL, sql } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTurn } from '../in-turn.ts';
import { after, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { grantLives, readSummaries, summaryOf } from './summaries.ts';

/** `GET /v1/sessions`: the account's sessions, newest first. */
export const listSessions = route(
  {
    method: 'get',
    path: '/v1/sessions',
    summary: 'Sessions, newest first, by external ids and status',
    scope: 'read',
    query: sessionsQuery,
    answer: sessionPage,
  },
  (deps) => {
    const take = inTurn();
    return async ({ apiKey, query, c }) => {
      const rows = await take(c, async () => readRows(deps, apiKey.accountId, query));
      return pageOfRows(rows, query.limit, summaryOf);
    };
  },
);

function readRows({ db, now }: IssuerDeps, accountId: string, query: SessionsQuery) {
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

/** The same as a session's row says of itself, so told that Postgres may begin with the grants: most have ended. */
const isActive = (lives: SQL): SQL => sql`(${sessions.revokedAt} is null and exists (
  select from ${grants} join ${budgets} on ${budgets.id} = ${grants.budgetId}
  where ${grants.sessionId} = ${sessions.id} and ${lives}))`;

/** Both ids, when both are given, are those of one grant. */
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
