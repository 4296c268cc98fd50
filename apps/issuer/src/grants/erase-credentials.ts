import { randomUUID } from 'node:crypto';
import { KEYS_KEPT_MS } from '@presign/limits';
import { END_IN_SQL } from '@presign/schema/grant-status';
import {
  credentials,
  grants,
  oauthTokens,
  pendingChanges,
  sessions,
  virtualKeys,
} from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, asc, eq, exists, gt, inArray, ne, notExists, type SQL, sql } from 'drizzle-orm';

/**
 * How long a credential is kept after the last grant that needs it has ended: longer than a call may take
 * (`UPSTREAM_TIMEOUT_SECONDS` is at most a day), and than an `Idempotency-Key` finds the document of a bundle.
 */
const CREDENTIAL_KEPT = sql`interval '1 day'`;

/** The newest tokens of a chain are kept for callers who hand in its first refresh token again. */
const CHAIN_KEPT = sql`interval '90 days'`;

/** Credentials that one run looks at. */
const LOOKED_AT = 1_000;

/**
 * Makes a task that erases sealed credentials whose grants have all expired or been revoked: provider keys, the
 * authentication of MCP servers, the documents of bundles, and OAuth tokens. Rows and figures stay. A run goes on where the
 * last one ended.
 * @returns whether there are more to look at
 */
export function eraseCredentials(db: Database): () => Promise<boolean> {
  let after = FIRST_ID;
  return async () => {
    const kept = and(ne(credentials.sealed, ''), gt(credentials.id, after));
    const ids = await idsOf(
      db.select(ID).from(credentials).where(kept).orderBy(asc(credentials.id)).limit(LOOKED_AT),
    );
    if (ids.length > 0) await db.transaction((tx) => eraseUnneeded(tx, ids));
    after = ids.length === LOOKED_AT ? (ids.at(-1) ?? FIRST_ID) : FIRST_ID;
    return ids.length === LOOKED_AT;
  };
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const ID = { id: credentials.id };

const idsOf = async (rows: PromiseLike<readonly { readonly id: string }[]>) =>
  (await rows).map(({ id }) => id);

async function eraseUnneeded(tx: Transaction, among: readonly string[]): Promise<void> {
  const unneeded = (ids: readonly string[]) => and(inArray(credentials.id, [...ids]), isUnneeded(tx));
  const locked = await idsOf(
    tx.select(ID).from(credentials).where(unneeded(among)).for('update', { skipLocked: true }),
  );
  if (locked.length === 0) return;
  // Judged again under the locks: a grant may have been committed before the first statement got them.
  const erased = await idsOf(
    tx.update(credentials).set({ sealed: '' }).where(unneeded(locked)).returning(ID),
  );
  if (erased.length === 0) return;
  await tx.delete(oauthTokens).where(inArray(oauthTokens.credentialId, erased));
  const mayBeInRedis = sql`coalesce(${grants.signedUntil}, ${grants.expiresAt}) > now() - ${KEYS_KEPT_MS} * interval '1 ms'`;
  const copied = await idsOf(
    tx
      .selectDistinct({ id: sql<string>`${grants.credentialId}` })
      .from(grants)
      .where(and(inArray(grants.credentialId, erased), mayBeInRedis)),
  );
  const rows = copied.map((credentialId) => ({ changeId: randomUUID(), credentialId, dueAt: sql`now()` }));
  if (rows.length > 0) await tx.insert(pendingChanges).values(rows);
}

/** Whether no virtual key, and no grant that lives or has ended a short time ago, needs a credential. */
function isUnneeded(tx: Transaction): SQL | undefined {
  const isChain = exists(
    tx
      .select({ id: oauthTokens.credentialId })
      .from(oauthTokens)
      .where(eq(oauthTokens.credentialId, credentials.id)),
  );
  const kept = sql`now() - (case when ${isChain} then ${CHAIN_KEPT} else ${CREDENTIAL_KEPT} end)`;
  const ofKey = tx
    .select({ id: virtualKeys.id })
    .from(virtualKeys)
    .where(eq(virtualKeys.credentialId, credentials.id));
  const ofGrant = tx
    .select({ id: grants.id })
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(eq(grants.credentialId, credentials.id), sql`${END_IN_SQL} > ${kept}`));
  return and(sql`${credentials.createdAt} < ${kept}`, notExists(ofKey), notExists(ofGrant));
}
