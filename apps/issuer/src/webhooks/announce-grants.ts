import type { Transaction } from '@presign/schema/database';
import { budgets, grants } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { listenersOf, type Noted, noteEvents } from './events.ts';

/** A grant that this transaction has revoked. */
export type RevokedGrant = { readonly id: string; readonly accountId: string };

/** Notes `grant.revoked` for grants that this transaction has revoked; a bundle is told of once, by its own grant. */
export async function noteRevoked(
  tx: Transaction,
  revoked: readonly RevokedGrant[],
  reason: 'revoked' | 'overrun',
): Promise<void> {
  const listening = await listenersOf(
    tx,
    revoked.map((grant) => grant.accountId),
    'grant.revoked',
  );
  const ids = revoked.filter((grant) => listening.has(grant.accountId)).map((grant) => grant.id);
  const among = new Set(ids);
  const ended = await findEnded(tx, ids);
  const alone = ended.filter((grant) => grant.bundleId === null || !among.has(grant.bundleId));
  const noted = alone.map((grant): Noted => {
    const revokedAt = grant.revokedAt ?? new Date();
    const data = { ...tellGrant(grant), revoked_at: seconds(revokedAt), reason };
    const event = { type: 'grant.revoked' as const, timestamp: revokedAt.toISOString(), data };
    return { accountId: grant.accountId, event };
  });
  await noteEvents(tx, noted);
}

/** Notes `grant.expired` for grants whose expiry this transaction has marked as told. */
export async function noteExpired(tx: Transaction, ids: readonly string[]): Promise<void> {
  const ended = await findEnded(tx, ids);
  const noted = ended.map((grant): Noted => {
    const timestamp = grant.expiresAt.toISOString();
    const event = { type: 'grant.expired' as const, timestamp, data: tellGrant(grant) };
    return { accountId: grant.accountId, event };
  });
  await noteEvents(tx, noted);
}

async function findEnded(tx: Transaction, ids: readonly string[]) {
  if (ids.length === 0) return [];
  const rows = await tx
    .select()
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    // As one parameter: a statement takes 65,535, and a session may have more grants.
    .where(
      sql`${grants.id} in (select each::uuid from json_array_elements_text(${JSON.stringify(ids)}::json) as each)`,
    );
  return rows.map((row) => ({ ...row.budgets, ...row.grants }));
}

const tellGrant = (grant: Awaited<ReturnType<typeof findEnded>>[number]) => ({
  grant_id: grant.id,
  session_id: grant.sessionId,
  kind: grant.kind,
  provider: grant.provider,
  external_session: grant.externalSession,
  external_user: grant.externalUser,
  issued_at: seconds(grant.issuedAt),
  expires_at: seconds(grant.expiresAt),
  max_uses: grant.maxUses ?? -1,
  cost_limit: grant.costLimitMicrousd,
  settled: { used: grant.used, spent: grant.settledMicrousd },
});

const seconds = (time: Date) => time.getTime() / 1000;
