import { statusInSql } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { eq, sql } from 'drizzle-orm';
import { type AccountEvent, recordEvents, subscribersOf } from './record-events.ts';

/** A grant that this transaction has revoked. */
type RevokedGrant = { readonly id: string; readonly accountId: string };

/** Records `grant.revoked` for grants that this transaction has revoked. A bundle has one event, for its own grant. */
export async function announceRevoked(
  tx: Transaction,
  revoked: readonly RevokedGrant[],
  reason: 'revoked' | 'overrun',
): Promise<void> {
  const subscribers = await subscribersOf(
    tx,
    revoked.map((grant) => grant.accountId),
    'grant.revoked',
  );
  const ids = revoked.filter((grant) => subscribers.has(grant.accountId)).map((grant) => grant.id);
  const among = new Set(ids);
  const ended = await loadGrants(tx, ids);
  const alone = ended.filter((grant) => grant.bundleId === null || !among.has(grant.bundleId));
  const events = alone.map((grant): AccountEvent => {
    const revokedAt = grant.revokedAt ?? new Date();
    const data = { ...describeGrant(grant), revoked_at: revokedAt.toISOString(), reason };
    const event = { type: 'grant.revoked' as const, timestamp: revokedAt.toISOString(), data };
    return { accountId: grant.accountId, event };
  });
  await recordEvents(tx, events);
}

/** Grants that one transaction announces, and that it announces of one account, at most. */
const BATCH = 500;

/**
 * Records `grant.expired` for grants that have expired, once each, over any number of issuers. It reads only grants of
 * accounts that subscribe, and none that expired before the subscription. A grant that a session or a virtual key ended
 * earlier is marked without an event, so that the next look passes over it.
 * @returns whether there may be more
 */
export async function announceExpired(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const marked = await tx
      .update(grants)
      .set({ expiryAnnounced: true })
      .where(sql`${grants.id} in (${EXPIRED})`)
      .returning({ id: grants.id });
    const expired = await loadGrants(
      tx,
      marked.map((row) => row.id),
    );
    const events = expired.filter(hasExpired).map((grant): AccountEvent => {
      const timestamp = grant.expiresAt.toISOString();
      const event = { type: 'grant.expired' as const, timestamp, data: describeGrant(grant) };
      return { accountId: grant.accountId, event };
    });
    await recordEvents(tx, events);
    return marked.length === BATCH;
  });
}

/** Ids of grants to announce, locked. Materialized, because a subquery that runs twice would lock other rows. */
const EXPIRED = sql`
  with listening as (
    select account_id, min(active_since) as since from ${webhooks}
    where disabled_at is null and (events is null or 'grant.expired' = any(events)) group by account_id
  ), expired as materialized (
    select each.id from listening cross join lateral (
      select ended.id from ${grants} as ended
      where ended.account_id = listening.account_id and not ended.expiry_announced and ended.revoked_at is null
        and ended.bundle_id is null and ended.expires_at > listening.since and ended.expires_at <= now()
      order by ended.expires_at limit ${BATCH}
      for update skip locked
    ) as each limit ${BATCH}
  ) select id from expired`;

async function loadGrants(tx: Transaction, ids: readonly string[]) {
  if (ids.length === 0) return [];
  const rows = await tx
    .select({ grant: grants, budget: budgets, status: statusInSql(sql`now()`) })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    // One parameter for all ids: a statement may have 65,535, and a session may have more grants.
    .where(
      sql`${grants.id} in (select each::uuid from json_array_elements_text(${JSON.stringify(ids)}::json) as each)`,
    );
  return rows.map(({ budget, grant, status }) => ({ ...budget, ...grant, status }));
}

type Grant = Awaited<ReturnType<typeof loadGrants>>[number];

const hasExpired = ({ status }: Grant) => status === 'expired';

const describeGrant = (grant: Grant) => ({
  grant_id: grant.id,
  session_id: grant.sessionId,
  kind: grant.kind,
  provider: grant.provider,
  external_session: grant.externalSession,
  external_user: grant.externalUser,
  issued_at: grant.issuedAt.toISOString(),
  expires_at: grant.expiresAt.toISOString(),
  max_uses: grant.maxUses,
  cost_limit: grant.costLimitMicrousd,
  settled: { used: grant.used, spent: grant.settledMicrousd },
});
