import { hashApiKey, sameSecret } from '@presign/crypto';
import { RefusedError } from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import { eq, getTableColumns, sql } from 'drizzle-orm';
import type { Context, MiddlewareHandler } from 'hono';
import type { ApiKey, IssuerDeps, IssuerEnv, Scope } from '../deps.ts';
import { inTime } from '../in-time.ts';

/** Precision of `last_used_at`, so that a busy key does not cost a write for each request. */
const LAST_USED_STEP_MS = 60_000;

/** Finds the API key of `Authorization: Bearer <API_KEY>` (RFC 6750 §2.1). Refuses with 401, or 403 if its account is suspended. */
export function authenticate(deps: IssuerDeps): MiddlewareHandler<IssuerEnv> {
  const find = deps.db
    .select({
      ...getTableColumns(apiKeys),
      suspendedAt: accounts.suspendedAt,
      deletedAt: accounts.deletedAt,
      limits: accounts.limits,
      hasBudgets: accounts.hasBudgets,
    })
    .from(apiKeys)
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(eq(apiKeys.hash, sql.placeholder('hash')))
    .prepare('find_api_key');
  const identify = async (c: Context<IssuerEnv>) => {
    const [, key] = /^Bearer ([\x21-\x7e]{1,512})$/i.exec(c.req.header('authorization') ?? '') ?? [];
    if (key === undefined) throw new RefusedError({ code: 'unauthenticated' });
    const hash = hashApiKey(key);
    const [row] = await inTime(find.execute({ hash }));
    const now = deps.now();
    if (
      !row ||
      !sameSecret(row.hash, hash) ||
      row.revokedAt ||
      row.deletedAt ||
      (row.expiresAt && row.expiresAt.getTime() <= now)
    ) {
      throw new RefusedError({ code: 'unauthenticated' });
    }
    if (row.suspendedAt) throw new RefusedError({ code: 'account_suspended' });
    return row;
  };
  return async (c, next) => {
    const remember = async () => {
      const row = await identify(c);
      const { id, accountId, scopes, requestsPerMinute, expiresAt, policy, limits, hasBudgets } = row;
      c.set('apiKey', { id, accountId, scopes, requestsPerMinute, expiresAt, policy, limits, hasBudgets });
      return row;
    };
    const row = await remember();
    const now = deps.now();
    c.set('authenticateAgain', async () => void (await remember()));
    if (now - (row.lastUsedAt?.getTime() ?? 0) > LAST_USED_STEP_MS) recordUse(deps, row.id, now);
    await next();
  };
}

/** Whether a key has a scope. `admin` includes every scope within an account, and not `operator`. */
export const hasScope = ({ scopes }: ApiKey, scope: Scope): boolean =>
  scopes.includes(scope) || (scope !== 'operator' && scopes.includes('admin'));

/**
 * Refuses a key without the scope.
 * @throws RefusedError `forbidden`
 */
export function requireScope(apiKey: ApiKey, scope: Scope | 'any'): void {
  if (scope === 'any' || hasScope(apiKey, scope)) return;
  throw new RefusedError({ code: 'forbidden', message: `This API key lacks the scope "${scope}".` });
}

/** Runs in the background: a request does not fail because this write does. */
function recordUse(deps: IssuerDeps, id: string, now: number): void {
  deps.db
    .update(apiKeys)
    .set({ lastUsedAt: new Date(now) })
    .where(eq(apiKeys.id, id))
    .then(undefined, () => deps.log.warn({ api_key: id }, 'last use of an API key not recorded'));
}
