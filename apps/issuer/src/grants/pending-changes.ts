import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  KEYS_KEPT_MS,
  keysEndMs,
  type RedisClient,
  revokeGrant as raiseTombstone,
  replaceCredential,
  withdrawCredential,
} from '@presign/limits';
import { causeOf, PARTITIONS, type Pending } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { END_IN_SQL } from '@presign/schema/grant-status';
import {
  budgets,
  credentials,
  grants,
  oauthTokens,
  pendingChanges,
  sessions,
  virtualKeys,
} from '@presign/schema/tables';
import { and, asc, eq, exists, gt, inArray, ne, notExists, type SQL, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { inTime } from '../in-time.ts';
import { PENDING } from '../route.ts';

/** Identifies the rows of one request's change, or of all grants of an API key, whose revocation takes many transactions. */
export type ChangeId = string & { readonly change: unique symbol };
export const newChangeId = (): ChangeId => randomUUID() as ChangeId;

type Deps = { readonly db: Database; readonly redis: RedisClient; readonly log?: Logger };

/** How long a request has for its own change before a sweep helps. A slow transaction uses it up. */
const OWN = sql`now() + interval '2 seconds'`;

/**
 * Queues a tombstone for each of these grants that Redis may still have keys of, also for expired ones: a call that was
 * admitted before the expiry is cut, too. The transaction must be the one that revokes them.
 */
export async function queueTombstones(
  tx: Transaction,
  which: SQL,
  now: Date,
  changeId = newChangeId(),
): Promise<ChangeId> {
  const keysEnded = new Date(now.getTime() - keysEndMs(0));
  await tx.insert(pendingChanges).select(
    tx
      .select({
        id: sql`gen_random_uuid()`.as('id'),
        changeId: sql`${changeId}::uuid`.as('change_id'),
        grantId: grants.id,
        credentialId: sql`null::uuid`.as('credential_id'),
        done: sql`false`.as('done'),
        dueAt: OWN.as('due_at'),
      })
      .from(grants)
      .where(and(which, gt(grants.expiresAt, keysEnded))),
  );
  return changeId;
}

/** Queues a credential for every partition of Redis. The transaction must be the one that changes it. */
export async function queueCredential(tx: Transaction, credentialId: string): Promise<ChangeId> {
  const changeId = newChangeId();
  await tx.insert(pendingChanges).values({ changeId, credentialId, dueAt: OWN });
  return changeId;
}

/**
 * Applies a committed change to Redis. It never throws, because the change is stored: what fails here, a sweep repeats.
 * @returns undefined once Redis has all of it, else `PENDING`
 */
export async function applyChange(deps: Deps, changeId: ChangeId): Promise<Pending | undefined> {
  const own = and(eq(pendingChanges.changeId, changeId), eq(pendingChanges.done, false));
  const stopped = new AbortController();
  const all = async () => {
    for (let tries = 1; !stopped.signal.aborted; ) {
      try {
        if (!(await applySome(deps, await findIds(deps.db, own)))) return;
      } catch (error) {
        if (tries++ === TRIES) throw error;
        await sleep(PAUSE_MS);
      }
    }
  };
  try {
    await inTime(all());
    return undefined;
  } catch (error) {
    deps.log?.warn(causeOf(error), 'Redis has yet to take over a change');
    return PENDING;
  } finally {
    stopped.abort();
  }
}

/** How often a request tries what fails, with a pause between: one timeout of a busy Redis is no outage. */
const TRIES = 3;
const PAUSE_MS = 100;

const findIds = async (db: Database, which: SQL | undefined) => {
  const rows = await db.select({ id: pendingChanges.id }).from(pendingChanges).where(which).limit(BATCH);
  return rows.map(({ id }) => id);
};

/** Rows that are applied at once: few enough that the slowest Redis answers within a command's timeout. */
const BATCH = 500;
/** How long one sweep has for its rows before another repeats them. */
const CLAIM = sql`now() + interval '10 seconds'`;

/**
 * Applies changes whose requests have not finished them. Any number of issuers may run it.
 * @returns whether there may be more
 */
export async function applyDueChanges(deps: Deps): Promise<boolean> {
  const due = deps.db
    .select({ id: pendingChanges.id })
    .from(pendingChanges)
    .where(and(eq(pendingChanges.done, false), sql`${pendingChanges.dueAt} <= now()`))
    .orderBy(asc(pendingChanges.dueAt))
    .limit(BATCH)
    .for('update', { skipLocked: true });
  const claimed = deps.db.$with('claimed').as(due);
  const rows = await deps.db
    .with(claimed)
    .update(pendingChanges)
    .set({ dueAt: CLAIM })
    .from(claimed)
    .where(eq(pendingChanges.id, claimed.id))
    .returning({ id: pendingChanges.id });
  const ids = rows.map(({ id }) => id);
  try {
    await applySome(deps, ids);
  } catch (error) {
    // Another issuer may reach Redis.
    await deps.db.update(pendingChanges).set({ dueAt: sql`now()` }).where(notDoneOf(ids));
    throw error;
  }
  return ids.length === BATCH;
}

const notDoneOf = (ids: readonly string[]) =>
  and(inArray(pendingChanges.id, [...ids]), eq(pendingChanges.done, false));

/** Applies these rows, and marks those that Redis has taken over. Returns whether there were any. */
async function applySome({ db, redis }: Deps, ids: readonly string[]): Promise<boolean> {
  if (ids.length === 0) return false;
  const rows = await db
    .select({
      id: pendingChanges.id,
      grantId: grants.id,
      partition: budgets.partition,
      expiresAt: grants.expiresAt,
      credential: credentials,
    })
    .from(pendingChanges)
    .leftJoin(grants, eq(grants.id, pendingChanges.grantId))
    .leftJoin(budgets, eq(budgets.id, grants.budgetId))
    .leftJoin(credentials, eq(credentials.id, pendingChanges.credentialId))
    .where(inArray(pendingChanges.id, [...ids]));
  const applied = await Promise.allSettled(
    rows.map(async (row) => {
      const { grantId, partition, expiresAt, credential } = row;
      if (grantId !== null && partition !== null && expiresAt !== null)
        await raiseTombstone(redis, { id: grantId, partition, expiresAtMs: expiresAt.getTime() });
      if (credential) await writeCredential(db, redis, credential);
      return row.id;
    }),
  );
  const done = applied.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  if (done.length > 0) await markDone(db, done);
  const failed = applied.find((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
  return true;
}

/** Writes the newest version of a credential, or its end, where grants of it may lie. */
async function writeCredential(
  db: Database,
  redis: RedisClient,
  credential: typeof credentials.$inferSelect,
): Promise<void> {
  const partitions = await partitionsOf(db, credential.id);
  if (credential.sealed === '') await withdrawCredential(redis, credential.id, partitions);
  else await replaceCredential(redis, credential, partitions);
}

const ALL: readonly number[] = Array.from({ length: PARTITIONS }, (_, partition) => partition);

/** The partitions of a credential's grants. New grants of a virtual key can be in any partition. Another credential gets no new grants. */
async function partitionsOf(db: Database, credentialId: string): Promise<readonly number[]> {
  const [key] = await db
    .select({ id: virtualKeys.id })
    .from(virtualKeys)
    .where(eq(virtualKeys.credentialId, credentialId));
  if (key) return ALL;
  const rows = await db
    .selectDistinct({ partition: budgets.partition })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(eq(grants.credentialId, credentialId));
  return rows.map(({ partition }) => partition);
}

/** How long a row stays that Redis has taken over: longer than a failover goes unnoticed. */
const KEPT = sql`now() + interval '10 minutes'`;

const markDone = (db: Database, ids: readonly string[]) =>
  db
    .update(pendingChanges)
    .set({ done: true, dueAt: KEPT })
    .where(inArray(pendingChanges.id, [...ids]));

/** Applies the changes of the last minutes once more: a Redis that has lost data may have lost them, too. */
export async function repeatChanges(db: Database): Promise<void> {
  await db
    .update(pendingChanges)
    .set({ done: false, dueAt: sql`now()` })
    .where(eq(pendingChanges.done, true));
}

/**
 * Deletes rows that Redis took over some time ago.
 * @returns whether there may be more
 */
export async function forgetChanges(db: Database): Promise<boolean> {
  const old = and(eq(pendingChanges.done, true), sql`${pendingChanges.dueAt} <= now()`);
  const gone = await db
    .delete(pendingChanges)
    .where(
      inArray(
        pendingChanges.id,
        db.select({ id: pendingChanges.id }).from(pendingChanges).where(old).limit(FORGOTTEN),
      ),
    )
    .returning({ id: pendingChanges.id });
  return gone.length === FORGOTTEN;
}

/** Rows that one statement deletes. */
const FORGOTTEN = 5_000;

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
  const mayBeInRedis = sql`${grants.expiresAt} > now() - ${KEYS_KEPT_MS} * interval '1 ms'`;
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
