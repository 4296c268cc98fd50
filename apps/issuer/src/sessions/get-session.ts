import {
  type McpServerTerms,
  RefusedError,
  type SessionAnswer,
  type SessionGrant,
  sessionAnswer,
} from '@presign/schema';
import { grants, pots, sessions, virtualKeys } from '@presign/schema/tables';
import { and, asc, eq } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../app.ts';
import { inTurn } from '../in-turn.ts';
import { liveFigures } from '../live-figures.ts';
import { route } from '../route.ts';

/**
 * `GET /v1/sessions/{id}`: a session's grants, their limits, and what of them is used and spent, live and
 * settled. Another account's session is not found.
 */
export const getSession = route(
  {
    method: 'get',
    path: '/v1/sessions/{id}',
    summary: "A session's grants, with what of them is used and spent",
    scope: 'read',
    params: z.object({ id: z.guid() }),
    answer: sessionAnswer,
    errors: ['not_found'],
  },
  (deps) => {
    const take = inTurn();
    return ({ apiKey, params, c }) => take(c, () => tellSession(deps, apiKey.accountId, params.id));
  },
);

async function tellSession(deps: IssuerDeps, accountId: string, id: string): Promise<SessionAnswer> {
  const [session] = await deps.db
    .select()
    .from(sessions)
    .where(and(eq(sessions.id, id), eq(sessions.accountId, accountId)));
  if (!session) throw new RefusedError({ code: 'not_found' });
  const told = await tellGrants(deps, session);
  return {
    id: session.id,
    created_at: seconds(session.createdAt),
    revoked_at: session.revokedAt && seconds(session.revokedAt),
    status: told.some((grant) => grant.status === 'active') ? 'active' : 'ended',
    grants: told,
  };
}

type Session = typeof sessions.$inferSelect;
type Row = {
  readonly grants: typeof grants.$inferSelect;
  readonly pots: typeof pots.$inferSelect;
  readonly virtual_keys: typeof virtualKeys.$inferSelect | null;
};

async function tellGrants(deps: IssuerDeps, session: Session): Promise<SessionGrant[]> {
  const rows = await deps.db
    .select()
    .from(grants)
    .innerJoin(pots, eq(pots.id, grants.potId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(eq(grants.sessionId, session.id))
    .orderBy(asc(grants.issuedAt), asc(grants.id));
  // The grants of a bundle share one pot, which is read once.
  const byId = new Map(rows.map(({ pots: pot }) => [pot.id, pot]));
  const live = new Map(
    await Promise.all(
      Array.from(byId, async ([id, pot]) => [id, await liveFigures(deps.redis, pot)] as const),
    ),
  );
  const ended = session.revokedAt !== null;
  return rows.map((row) => toGrant(row, live.get(row.pots.id) ?? null, ended, deps.now()));
}

type Live = NonNullable<SessionGrant['live']>;

const toGrant = (row: Row, live: Live | null, ended: boolean, now: number): SessionGrant => {
  const { grants: grant, pots: pot } = row;
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
    status: statusOf(row, live, ended, now),
    max_uses: pot.maxUses ?? -1,
    cost_limit: pot.costLimitMicrousd,
    calls_per_minute: pot.callsPerMinute,
    settled: { used: pot.used, spent: pot.settledMicrousd },
    live,
  };
};

const serverOf = ({ name, url, transport }: McpServerTerms) => ({ name, url, transport });

function statusOf(
  { grants: grant, pots: pot, virtual_keys: virtualKey }: Row,
  live: Live | null,
  ended: boolean,
  now: number,
) {
  if (ended || grant.revokedAt || virtualKey?.revokedAt) return 'revoked';
  if (grant.expiresAt.getTime() <= now) return 'expired';
  const used = live?.used ?? pot.used;
  const spent = live?.spent ?? pot.settledMicrousd;
  const isExhausted =
    (pot.maxUses !== null && used >= pot.maxUses) ||
    (pot.costLimitMicrousd !== null && pot.costLimitMicrousd > 0 && spent >= pot.costLimitMicrousd);
  return isExhausted ? 'exhausted' : 'active';
}

const seconds = (time: Date) => time.getTime() / 1000;
