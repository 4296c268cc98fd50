import { RefusedError } from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import { type Database, sqlState, type Transaction } from '@presign/service/database';
import { and, eq, gt, isNotNull, isNull, lte, or, type SQL, type SQLWrapper, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import type { Actor, ApiKey, IssuerEnv } from './caller.ts';

/**
 * Thrown instead of writing what an API key issues or changes, because the key has changed, or the key or its account has ended, since
 * the request was judged.
 */
export class KeyEnded extends RefusedError {
  constructor() {
    super({ code: 'unauthenticated' });
  }
}

/**
 * The account of the API key that issues, or no row once either has ended or the key has another revision. A statement that takes the account's id from here
 * fails then, because no row may be without it: it writes all its rows or none.
 *
 * The lock lasts until the rows are committed. It excludes neither other requests nor changes of the key, and only
 * `issuesWritten` waits for it. Postgres judges the newest version of the rows that it locks, so a revocation that was
 * committed while the statement waited counts, too (PostgreSQL manual, 13.2.1).
 */
export const standingKey = (db: Database | Transaction) =>
  db.$with('standing').as(
    selectStanding(db, {
      apiKeyId: sql.placeholder('apiKeyId'),
      revision: sql`${sql.placeholder('keyRevision')}::integer`,
      accountId: sql.placeholder('accountId'),
      at: sql`${sql.placeholder('at')}::timestamptz`,
    }),
  );

/** The account's id, in a statement with `standingKey`. */
export const STANDING_ACCOUNT = sql`(select account_id from standing)`;

/** Turns the error of a statement with `standingKey` into its reason. @throws KeyEnded */
export function refuseEnded(error: unknown): never {
  throw sqlState(error) === NOT_NULL_VIOLATION ? new KeyEnded() : error;
}

const NOT_NULL_VIOLATION = '23502';

/**
 * Locks an API key that stands, and is as the request was judged by it, until the transaction ends.
 * @throws KeyEnded
 */
export async function mustStand(
  tx: Transaction,
  { id: apiKeyId, accountId, revision }: Judge,
  nowMs: number,
): Promise<void> {
  const [found] = await selectStanding(tx, { apiKeyId, accountId, revision, at: new Date(nowMs) });
  if (!found) throw new KeyEnded();
}

/**
 * Locks the API key that makes a change, as `mustStand` does, unless someone has ended it. One that only expires meanwhile was
 * valid when its request began.
 * @throws KeyEnded
 */
export const mustNotHaveEnded = (tx: Transaction, key: Judge): Promise<void> => mustStand(tx, key, 0);

/** The API key by which a request was judged. A key of no revision may be of any. */
type Judge = Pick<ApiKey, 'id' | 'accountId'> & Pick<Actor, 'revision'>;

type Place<T> = T | SQLWrapper;
type Asked = {
  readonly apiKeyId: Place<string>;
  readonly accountId: Place<string>;
  readonly revision: Place<number> | null;
  readonly at: Date | SQL;
};

const selectStanding = (db: Database | Transaction, { apiKeyId, accountId, revision, at }: Asked) =>
  db
    .select({ accountId: apiKeys.accountId })
    .from(apiKeys)
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(
      and(
        eq(apiKeys.id, apiKeyId),
        eq(apiKeys.accountId, accountId),
        isNull(apiKeys.revokedAt),
        revision === null ? undefined : eq(apiKeys.revision, revision),
        or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, at)),
        isNull(accounts.suspendedAt),
        isNull(accounts.deletedAt),
      ),
    )
    .for('key share');

/** A key may change as often while one request runs. */
const MOST_TRIES = 3;

/**
 * Runs a request again whose API key changed while it was under way, so that it is judged by what the key is then. If the key ended, the
 * request is answered as the next one with that key: the account may be suspended.
 */
export async function whileStanding<T>(c: Context<IssuerEnv>, run: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof KeyEnded)) throw error;
      await c.get('authenticateAgain')();
      if (tries === MOST_TRIES) throw error;
    }
  }
}

/**
 * Waits until everything is written that an API key issues which has ended. Nothing can begin to issue with it, so this does
 * not wait for long. Take no lock before in the same transaction: a request may hold a session, and wait for its key.
 */
export async function issuesWritten(tx: Transaction, own: SQL | undefined, nowMs: number): Promise<void> {
  const hasEnded = or(isNotNull(apiKeys.revokedAt), lte(apiKeys.expiresAt, new Date(nowMs)));
  const locked = tx.select({ id: apiKeys.id }).from(apiKeys);
  await locked.where(and(own, hasEnded)).for('update');
}
