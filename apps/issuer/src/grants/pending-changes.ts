import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  keysEndMs,
  type RedisClient,
  revokeGrant as raiseTombstone,
  replaceCredential,
  setAccountState,
  withdrawCredential,
} from '@presign/limits';
import { PARTITIONS, type Pending } from '@presign/schema';
import { accounts, budgets, credentials, grants, pendingChanges, virtualKeys } from '@presign/schema/tables';
import { causeOf } from '@presign/service';
import type { Database, Transaction } from '@presign/service/database';
import { and, asc, eq, gt, inArray, isNotNull, notExists, type SQL, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { inTime } from '../middleware/in-time.ts';
import { PENDING } from '../middleware/route.ts';
import { writeLimits } from './store-limits.ts';

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
        accountId: sql`null::uuid`.as('account_id'),
        budgetId: sql`null::uuid`.as('budget_id'),
        done: sql`false`.as('done'),
        dueAt: OWN.as('due_at'),
      })
      .from(grants)
      .where(and(which, gt(grants.expiresAt, keysEnded))),
  );
  return changeId;
}

/** Queues a credential for the partitions of its grants. The transaction must be the one that changes it. */
export async function queueCredential(tx: Transaction, credentialId: string): Promise<ChangeId> {
  const changeId = newChangeId();
  await tx.insert(pendingChanges).values({ changeId, credentialId, dueAt: OWN });
  return changeId;
}

/** Queues the state of an account for every partition of Redis. The transaction must be the one that changes it. */
export async function queueAccount(tx: Transaction, accountId: string): Promise<ChangeId> {
  const changeId = newChangeId();
  await tx.insert(pendingChanges).values({ changeId, accountId, dueAt: OWN });
  return changeId;
}

/** Queues the limits of budgets, and the ends of their grants. The transaction must be the one that changes them. */
export async function queueLimits(tx: Transaction, ...budgetIds: readonly string[]): Promise<ChangeId> {
  const changeId = newChangeId();
  const rows = budgetIds.map((budgetId) => ({ changeId, budgetId, dueAt: OWN }));
  if (rows.length > 0) await tx.insert(pendingChanges).values(rows);
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
      budgetId: pendingChanges.budgetId,
      partition: budgets.partition,
      expiresAt: grants.expiresAt,
      credential: credentials,
      account: accounts,
    })
    .from(pendingChanges)
    .leftJoin(grants, eq(grants.id, pendingChanges.grantId))
    .leftJoin(budgets, eq(budgets.id, grants.budgetId))
    .leftJoin(credentials, eq(credentials.id, pendingChanges.credentialId))
    .leftJoin(accounts, eq(accounts.id, pendingChanges.accountId))
    .where(inArray(pendingChanges.id, [...ids]));
  const applied = await Promise.allSettled(
    rows.map(async (row) => {
      const { grantId, partition, expiresAt, credential, account, budgetId } = row;
      if (grantId !== null && partition !== null && expiresAt !== null)
        await raiseTombstone(redis, { id: grantId, partition, expiresAtMs: expiresAt.getTime() });
      if (credential) await writeCredential(db, redis, credential);
      if (account)
        await setAccountState(redis, { ...account, isSuspended: account.suspendedAt !== null }, ALL);
      if (budgetId !== null) await writeLimits(db, redis, budgetId);
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

/** The partitions of a credential's grants: those of a virtual key have that of its budget, and another credential gets no new grants. */
async function partitionsOf(db: Database, credentialId: string): Promise<readonly number[]> {
  const [key] = await db
    .select({ partition: budgets.partition })
    .from(virtualKeys)
    .innerJoin(budgets, eq(budgets.id, virtualKeys.budgetId))
    .where(eq(virtualKeys.credentialId, credentialId));
  if (key) return [key.partition];
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

/**
 * Applies the changes of the last minutes, and all suspensions, once more: a Redis that has lost data may have lost them,
 * too.
 */
export async function repeatChanges(db: Database): Promise<void> {
  const known = db.select().from(pendingChanges).where(eq(pendingChanges.accountId, accounts.id));
  const suspended = and(isNotNull(accounts.suspendedAt), notExists(known));
  const lost = await db.select({ id: accounts.id }).from(accounts).where(suspended);
  const rows = lost.map(({ id }) => ({ changeId: newChangeId(), accountId: id, dueAt: sql`now()` }));
  if (rows.length > 0) await db.insert(pendingChanges).values(rows);
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
