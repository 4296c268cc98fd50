import { checkMac, mac } from '@presign/crypto';
import { idempotencyKey, RefusedError } from '@presign/schema';
import { sqlState, type Transaction } from '@presign/schema/database';
import { budgets, grants, idempotencyKeys } from '@presign/schema/tables';
import { and, eq, lt, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import type { IssuerDeps, IssuerEnv } from '../deps.ts';

/** How long a key is valid. */
const REMEMBER_MS = 24 * 3_600_000;

/**
 * Deletes keys that are older than 24 hours.
 * @returns whether there may be more
 */
export async function forgetIdempotencyKeys({ db, now }: Pick<IssuerDeps, 'db' | 'now'>): Promise<boolean> {
  const old = lt(idempotencyKeys.createdAt, new Date(now() - REMEMBER_MS));
  const some = sql`ctid in (select ctid from ${idempotencyKeys} where ${old} limit ${FORGOTTEN_AT_ONCE})`;
  const gone = await db.delete(idempotencyKeys).where(some).returning({ key: idempotencyKeys.key });
  return gone.length === FORGOTTEN_AT_ONCE;
}

/** Rows that one statement deletes. */
const FORGOTTEN_AT_ONCE = 5_000;

/** A request with an `Idempotency-Key`, which may be a repetition. */
export type Claim = {
  readonly accountId: string;
  readonly route: string;
  readonly key: string;
  /** The id of the grant that the request issues if its key is new. */
  readonly grantId: string;
};

/** A grant that an earlier request issued. */
export type EarlierGrant = typeof grants.$inferSelect & { readonly partition: number };

/**
 * Claims an `Idempotency-Key` for the grant of this transaction, or finds the grant that claimed it earlier. If the
 * first request with the key is still under way, this one waits at most five seconds for it.
 * @returns the earlier grant, or undefined when this request has claimed the key
 * @throws RefusedError `idempotency_conflict` when the key was used with another body, or the first request takes longer
 */
export async function claimIdempotencyKey(
  tx: Transaction,
  deps: IssuerDeps,
  claim: Claim,
  body: Uint8Array,
): Promise<EarlierGrant | undefined> {
  const { accountId, route, key, grantId } = claim;
  const createdAt = new Date(deps.now());
  const bodyMac = mac(deps.encryptionKeys, 'idempotency', body);
  await tx.execute(sql`set local lock_timeout = '5s'`);
  const claimed = await tx
    .insert(idempotencyKeys)
    .values({ ...claim, bodyMac, createdAt })
    .onConflictDoUpdate({
      target: [idempotencyKeys.accountId, idempotencyKeys.route, idempotencyKeys.key],
      set: { bodyMac, grantId, createdAt },
      setWhere: lt(idempotencyKeys.createdAt, new Date(deps.now() - REMEMBER_MS)),
    })
    .returning({ grantId: idempotencyKeys.grantId })
    .catch(refuseWaiting);
  if (claimed.length > 0) return undefined;

  const [earlier] = await tx
    .select()
    .from(idempotencyKeys)
    .innerJoin(grants, eq(grants.id, idempotencyKeys.grantId))
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(
      and(
        eq(idempotencyKeys.accountId, accountId),
        eq(idempotencyKeys.route, route),
        eq(idempotencyKeys.key, key),
      ),
    );
  const same =
    earlier &&
    checkMac(deps.encryptionKeys, 'idempotency', body, earlier.idempotency_keys.bodyMac) === 'same';
  if (!same)
    throw new RefusedError({ code: 'idempotency_conflict', param: 'Idempotency-Key', message: OTHER_BODY });
  return { ...earlier.grants, partition: earlier.budgets.partition };
}

/**
 * The `Idempotency-Key` of a request, if it has one.
 * @throws RefusedError `invalid_request`
 */
export function readIdempotencyKey(c: Context<IssuerEnv>): string | undefined {
  const header = c.req.header('idempotency-key');
  if (header === undefined) return undefined;
  const read = idempotencyKey.safeParse(header);
  if (read.success) return read.data;
  const message = 'Idempotency-Key: expected 1 to 255 visible ASCII characters.';
  throw new RefusedError({ code: 'invalid_request', param: 'Idempotency-Key', message });
}

const OTHER_BODY = 'Idempotency-Key: this key was used with another body in the last 24 hours.';

/** SQLSTATE 55P03, lock_not_available: the first request with this key did not end in time. */
function refuseWaiting(error: unknown): never {
  if (sqlState(error) !== '55P03') throw error;
  const param = 'Idempotency-Key';
  const message = 'Idempotency-Key: the first request with this key is still under way.';
  throw new RefusedError({ code: 'idempotency_conflict', param, message, retryAfterSeconds: 1 });
}
