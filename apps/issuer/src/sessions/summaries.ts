import type { SessionSummary } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { eq, type SQL, sql } from 'drizzle-orm';
import { micros, newestFirst } from '../page.ts';

/**
 * Sessions, newest first, with what all their grants come to.
 * @param lives by which grants a session is active
 * @param where told what says whether a session is active
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

/** One row for each session: what all its grants come to. */
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

/** As text, which every driver reads alike. */
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
