import { idParams, type PageQuery, pageQuery, RefusedError, sessionAnswer } from '@presign/schema';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { sendRevision } from '../answers/revision.ts';
import { describeGrant } from '../grants/describe-grant.ts';
import { liveFiguresOf } from '../grants/live-figures.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { readSummaries, type SummaryRow, selectSessions, summaryOf } from './list-sessions.ts';

type Needs = Pick<RouteDeps, 'db' | 'redis' | 'now'>;

/** `GET /v1/sessions/{id}`: a session and a page of its grants, with their limits, uses and spending. */
export const getSession = route(
  {
    method: 'get',
    path: '/v1/sessions/{id}',
    summary: 'Get a session and its grants, with their uses and spending',
    scope: 'read',
    params: idParams,
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

const readGrants = ({ db }: Needs, sessionId: string, { cursor, limit }: PageQuery) =>
  db
    .select({ id: grants.id, micros: micros(grants.issuedAt), grants, budgets, virtual_keys: virtualKeys })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(eq(grants.sessionId, sessionId), after(cursor, PLACE)))
    .orderBy(...newestFirst(PLACE))
    .limit(limit + 1);

async function describeGrants(deps: Needs, session: Session, query: PageQuery) {
  const rows = await readGrants(deps, session.id, query);
  const liveOf = await liveFiguresOf(deps.redis, rows.slice(0, query.limit));
  return pageOfRows(rows, query.limit, (row) => describeGrant(row, liveOf(row), session, deps.now()));
}

/**
 * A session of an account, with its metadata.
 * @throws RefusedError `not_found`
 */
export async function findSession(
  { db, now }: Pick<RouteDeps, 'db' | 'now'>,
  accountId: string,
  id: string,
): Promise<SummaryRow & Pick<typeof sessions.$inferSelect, 'metadata'>> {
  const own = and(eq(sessions.id, id), eq(sessions.accountId, accountId));
  const [session] = await readSummaries(db, now(), 1, selectSessions(db, own));
  const [more] = await db.select({ metadata: sessions.metadata }).from(sessions).where(own);
  if (!session || !more) throw new RefusedError({ code: 'not_found' });
  return { ...session, ...more };
}
