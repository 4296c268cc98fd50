import { hashApiKey, sameSecret } from '@presign/crypto';
import { RefusedError } from '@presign/schema';
import { consoleSessions } from '@presign/schema/console-tables';
import { accounts, apiKeys } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { and, eq, getTableColumns, gt, sql } from 'drizzle-orm';
import type { Context, MiddlewareHandler } from 'hono';
import type { Logger } from 'pino';
import type { IssuerEnv } from '../identity/caller.ts';
import { hashSession, readSession } from '../identity/cookie.ts';
import { inTime } from './in-time.ts';

type Needs = {
  readonly db: Database;
  readonly issuerUrl: string;
  readonly now: () => number;
  readonly log: Logger;
};

/** Precision of `last_used_at`, so that a busy key does not cost a write for each request. */
const LAST_USED_STEP_MS = 60_000;

const KEY = {
  ...getTableColumns(apiKeys),
  suspendedAt: accounts.suspendedAt,
  deletedAt: accounts.deletedAt,
  limits: accounts.limits,
  hasBudgets: accounts.hasBudgets,
};

/** The query of an API key by its hash, with the fields of its account. */
const findByHash = (db: Database) =>
  db
    .select(KEY)
    .from(apiKeys)
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(eq(apiKeys.hash, sql.placeholder('hash')))
    .prepare('find_api_key');

/** The same by the hash of a session of the console. */
const findBySession = (db: Database) =>
  db
    .select(KEY)
    .from(consoleSessions)
    .innerJoin(apiKeys, eq(apiKeys.id, consoleSessions.apiKeyId))
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(
      and(
        eq(consoleSessions.hash, sql.placeholder('session')),
        gt(consoleSessions.expiresAt, sql.placeholder('now')),
      ),
    )
    .prepare('find_console_session');

type Row = Awaited<ReturnType<ReturnType<typeof findByHash>['execute']>>[number];

/**
 * Checks that an API key may be used now.
 * @throws RefusedError 401, or 403 if its account is suspended
 */
function mustBeLive(row: Row | undefined, now: number): Row {
  const isLive =
    row && !row.revokedAt && !row.deletedAt && !(row.expiresAt && row.expiresAt.getTime() <= now);
  if (!isLive) throw new RefusedError({ code: 'unauthenticated' });
  if (row.suspendedAt) throw new RefusedError({ code: 'account_suspended' });
  return row;
}

/** Finds a live API key. */
export function findApiKey({ db, now }: Pick<Needs, 'db' | 'now'>): (key: string) => Promise<Row> {
  const find = findByHash(db);
  return async (key) => {
    const hash = hashApiKey(key);
    const [row] = await inTime(find.execute({ hash }));
    return mustBeLive(row && sameSecret(row.hash, hash) ? row : undefined, now());
  };
}

/** Finds the live API key with which a session of the console was opened. */
function findSessionKey({ db, now }: Needs): (session: string) => Promise<Row> {
  const find = findBySession(db);
  return async (session) => {
    const at = new Date(now()).toISOString();
    const [row] = await inTime(find.execute({ session: hashSession(session), now: at }));
    return mustBeLive(row, now());
  };
}

/**
 * Finds the API key of `Authorization: Bearer <API_KEY>` (RFC 6750 §2.1), or that of the console's cookie. Refuses with 401, or 403
 * if its account is suspended.
 */
export function authenticate(deps: Needs): MiddlewareHandler<IssuerEnv> {
  const byKey = findApiKey(deps);
  const bySession = findSessionKey(deps);
  const identify = async (c: Context<IssuerEnv>) => {
    const header = c.req.header('authorization');
    const session = header === undefined ? readSession(c, deps.issuerUrl) : undefined;
    if (session !== undefined) return bySession(session);
    const [, key] = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(header ?? '') ?? [];
    if (key === undefined) throw new RefusedError({ code: 'unauthenticated' });
    return byKey(key);
  };
  return async (c, next) => {
    const remember = async () => {
      const row = await identify(c);
      const { id, accountId, revision, scopes, policy, requestsPerMinute, expiresAt, limits, hasBudgets } =
        row;
      const own = { id, accountId, revision, scopes, policy };
      c.set('apiKey', { ...own, requestsPerMinute, expiresAt, limits, hasBudgets });
      return row;
    };
    const row = await remember();
    const now = deps.now();
    c.set('authenticateAgain', async () => void (await remember()));
    if (now - (row.lastUsedAt?.getTime() ?? 0) > LAST_USED_STEP_MS) recordUse(deps, row.id, now);
    await next();
  };
}

/** Runs in the background, so that a request does not fail if this write fails. */
function recordUse(deps: Needs, id: string, now: number): void {
  deps.db
    .update(apiKeys)
    .set({ lastUsedAt: new Date(now) })
    .where(eq(apiKeys.id, id))
    .then(undefined, () => deps.log.warn({ api_key: id }, 'last use of an API key not recorded'));
}
