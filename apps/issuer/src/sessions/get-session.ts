import {
  type McpServerPolicy,
  type PageQuery,
  pageQuery,
  RefusedError,
  type SessionGrant,
  sessionAnswer,
} from '@presign/schema';
import { statusOfGrant } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../deps.ts';
import { liveFigures } from '../grants/live-figures.ts';
import { inTurn } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { readSummaries, summaryOf } from './list-sessions.ts';

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
