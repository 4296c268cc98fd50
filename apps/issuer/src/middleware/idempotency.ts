import { randomUUID } from 'node:crypto';
import { checkMac, deriveBytes, mac } from '@presign/crypto';
import { type BudgetLimits, idempotencyKey, REQUEST_LIMITS, RefusedError } from '@presign/schema';
import { budgets, grants, idempotencyKeys } from '@presign/schema/tables';
import { sqlState, type Transaction } from '@presign/service/database';
import { and, eq, lt, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';
import { inTime } from './in-time.ts';
import type { RouteDeps } from './route-deps.ts';

type Needs = Pick<RouteDeps, 'encryptionKeys' | 'now'>;

/** How long a key is valid. */
const REMEMBER_MS = REQUEST_LIMITS.idempotency_key_seconds * 1000;

/**
 * Deletes keys that are older than 24 hours.
 * @returns whether there may be more
 */
export async function forgetIdempotencyKeys({ db, now }: Pick<RouteDeps, 'db' | 'now'>): Promise<boolean> {
  const old = lt(idempotencyKeys.createdAt, new Date(now() - REMEMBER_MS));
  const some = sql`ctid in (select ctid from ${idempotencyKeys} where ${old} limit ${FORGOTTEN_AT_ONCE})`;
  const gone = await db.delete(idempotencyKeys).where(some).returning({ key: idempotencyKeys.key });
  return gone.length === FORGOTTEN_AT_ONCE;
}

/** Rows that one statement deletes. */
const FORGOTTEN_AT_ONCE = 5_000;

/** A request with an `Idempotency-Key`, which may be a retry. */
export type Claim = {
  readonly accountId: string;
  readonly route: string;
  readonly key: string;
  /** The id of the grant that the request issues if its key is new. On other routes a random id. */
  readonly grantId: string;
};

type ClaimRow = typeof idempotencyKeys.$inferSelect;

/**
 * Claims an `Idempotency-Key` for this transaction, or finds the request that claimed it earlier. If that request is still running, this
 * one waits at most five seconds for it.
 * @returns `earlier`: whether another request had claimed it
 * @throws RefusedError `idempotency_conflict` when the key was used with another body, or the first request takes longer
 */
async function claimKey(
  tx: Transaction,
  deps: Needs,
  claim: Claim,
  body: Uint8Array,
): Promise<{ readonly earlier: boolean; readonly row: ClaimRow }> {
  const createdAt = new Date(deps.now());
  const bodyMac = mac(deps.encryptionKeys, 'idempotency', body);
  await tx.execute(sql`set local lock_timeout = '5s'`);
  const [claimed] = await tx
    .insert(idempotencyKeys)
    .values({ ...claim, bodyMac, createdAt })
    .onConflictDoUpdate({
      target: [idempotencyKeys.accountId, idempotencyKeys.route, idempotencyKeys.key],
      set: { bodyMac, grantId: claim.grantId, answer: null, createdAt },
      setWhere: lt(idempotencyKeys.createdAt, new Date(deps.now() - REMEMBER_MS)),
    })
    .returning()
    .catch(refuseWaiting);
  if (claimed) return { earlier: false, row: claimed };
  const [row] = await tx.select().from(idempotencyKeys).where(isRow(claim));
  const isSame = row && checkMac(deps.encryptionKeys, 'idempotency', body, row.bodyMac) === 'same';
  if (!isSame) throw otherBody();
  return { earlier: true, row };
}

const isRow = ({ accountId, route, key }: Claim) =>
  and(
    eq(idempotencyKeys.accountId, accountId),
    eq(idempotencyKeys.route, route),
    eq(idempotencyKeys.key, key),
  );

/** A grant that an earlier request issued. */
export type EarlierGrant = typeof grants.$inferSelect & {
  readonly partition: number;
  readonly limits: BudgetLimits;
};

/**
 * Claims an `Idempotency-Key` for the grant of this transaction, or finds the grant that claimed it earlier.
 * @returns the earlier grant, or undefined when this request has claimed the key
 * @throws RefusedError as `claimKey`
 */
export async function claimIdempotencyKey(
  tx: Transaction,
  deps: Needs,
  claim: Claim,
  body: Uint8Array,
): Promise<EarlierGrant | undefined> {
  const { earlier, row } = await claimKey(tx, deps, claim, body);
  if (!earlier) return undefined;
  const [found] = await tx
    .select()
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .where(eq(grants.id, row.grantId));
  if (!found) throw otherBody();
  return { ...found.grants, partition: found.budgets.partition, limits: found.budgets };
}

/** The secret that only an answer shows: the path of its field (`api_key.key`), and its form from 32 random bytes. */
export type Secret = { readonly field: string; readonly write: (bytes: Uint8Array) => string };

/** A request whose answer is created once. */
type Asked = Pick<Claim, 'accountId' | 'route' | 'key'> & { readonly body: Uint8Array };

/**
 * Runs a request in one transaction with its `Idempotency-Key`, or repeats the answer of an earlier one. The answer is stored without its
 * secret, which is derived again.
 * @param run gets the services, whose database is the transaction, and the secret
 * @throws RefusedError as `claimKey`
 */
export function answerOnce<A>(
  deps: RouteDeps,
  { body, ...request }: Asked,
  secret: Secret | undefined,
  run: (deps: RouteDeps, secret: string) => Promise<A>,
): Promise<A> {
  const claim = { ...request, grantId: randomUUID() };
  const answered = deps.db.transaction(async (tx) => {
    const { earlier, row } = await claimKey(tx, deps, claim, body);
    const made = secret?.write(bytesOf(deps, row)) ?? '';
    const put = (answer: object, value?: string) => (secret ? putAt(answer, secret.field, value) : answer);
    if (earlier) return put(row.answer ?? {}, made) as A;
    const answer = await run({ ...deps, db: tx }, made);
    await tx
      .update(idempotencyKeys)
      .set({ answer: put(answer ?? {}) as Record<string, unknown> })
      .where(isRow(claim));
    return answer;
  });
  return inTime(answered);
}

/** A copy with this value at a path. JSON omits an undefined field. A null secret stays null, because there was none. */
function putAt(answer: object, path: string, value: string | undefined): object {
  const [name = '', ...rest] = path.split('.');
  const inner = (answer as Record<string, object | null>)[name];
  if (rest.length === 0) return inner === null ? answer : { ...answer, [name]: value };
  return { ...answer, [name]: putAt(inner ?? {}, rest.join('.'), value) };
}

function bytesOf({ encryptionKeys }: Needs, { accountId, route, key, bodyMac, grantId }: ClaimRow) {
  const bytes = deriveBytes(encryptionKeys, bodyMac, grantId, [accountId, route, key]);
  if (!bytes) throw otherBody();
  return bytes;
}

/** Claims the key of an idempotent request, so that only a different body is refused. */
export const claimOnly = (
  deps: Needs & Pick<RouteDeps, 'db'>,
  { body, ...request }: Asked,
): Promise<unknown> =>
  inTime(deps.db.transaction((tx) => claimKey(tx, deps, { ...request, grantId: randomUUID() }, body)));

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

const otherBody = () =>
  new RefusedError({ code: 'idempotency_conflict', param: 'Idempotency-Key', message: OTHER_BODY });

/** SQLSTATE 55P03, lock_not_available: the first request with this key did not end in time. */
function refuseWaiting(error: unknown): never {
  if (sqlState(error) !== '55P03') throw error;
  const param = 'Idempotency-Key';
  const message = 'Idempotency-Key: the first request with this key is still under way.';
  throw new RefusedError({ code: 'idempotency_conflict', param, message, retryAfterSeconds: 1 });
}
