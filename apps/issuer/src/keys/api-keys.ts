import { randomUUID } from 'node:crypto';
import { apiKeyHint, generateApiKey, hashApiKey } from '@presign/crypto';
import {
  type ApiKeyAnswer,
  type ApiKeyRequest,
  apiKeyAnswer,
  apiKeyPage,
  apiKeyRequest,
  type NewApiKeyAnswer,
  newApiKeyAnswer,
  pageQuery,
  type Refusal,
  RefusedError,
  SCOPES,
} from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import { and, eq, getTableColumns } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';

/** `POST /v1/api-keys`: creates a key. Only this answer shows it. */
export const createApiKey = route(
  {
    method: 'post',
    path: '/v1/api-keys',
    summary: 'Create an API key',
    description: 'Only this answer shows the key.',
    scope: 'admin',
    body: apiKeyRequest,
    answer: newApiKeyAnswer,
    status: 201,
  },
  (deps) =>
    async ({ apiKey, body }) =>
      inTime(makeApiKey(deps, apiKey.accountId, body)),
);

/** `GET /v1/api-keys`: the account's keys, newest first, with revoked and expired ones. */
export const listApiKeys = route(
  {
    method: 'get',
    path: '/v1/api-keys',
    summary: 'List API keys, newest first, without the keys themselves',
    scope: 'admin',
    query: pageQuery,
    answer: apiKeyPage,
  },
  ({ db }) =>
    async ({ apiKey, query }) => {
      const rows = db
        .select({ ...getTableColumns(apiKeys), micros: micros(apiKeys.createdAt) })
        .from(apiKeys)
        .where(and(eq(apiKeys.accountId, apiKey.accountId), after(query.cursor, apiKeys)))
        .orderBy(...newestFirst(apiKeys))
        .limit(query.limit + 1);
      return pageOfRows(await inTime(rows), query.limit, describeApiKey);
    },
);

/** `GET /v1/api-keys/{id}`. */
export const getApiKey = route(
  {
    method: 'get',
    path: '/v1/api-keys/{id}',
    summary: 'Get an API key, without the key itself',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: apiKeyAnswer,
    errors: ['not_found'],
  },
  ({ db }) =>
    async ({ apiKey, params }) => {
      const own = and(eq(apiKeys.accountId, apiKey.accountId), eq(apiKeys.id, params.id));
      const [row] = await inTime(db.select().from(apiKeys).where(own));
      if (!row) throw new RefusedError({ code: 'not_found' });
      return describeApiKey(row);
    },
);

/** `DELETE /v1/api-keys/{id}`: the key is refused from the next request on. A repeated request changes nothing. */
export const revokeApiKey = route(
  {
    method: 'delete',
    path: '/v1/api-keys/{id}',
    summary: 'Revoke an API key',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    errors: ['not_found', 'last_admin_key'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      inTime(endApiKey(deps, apiKey.accountId, params.id)),
);

/** Stores the hash of a new key, and returns the key with its description. */
export async function makeApiKey(
  { db, now }: Pick<IssuerDeps, 'db' | 'now'>,
  accountId: string,
  { name, scopes, expires_in: expiresIn, requests_per_minute: perMinute }: ApiKeyRequest,
): Promise<NewApiKeyAnswer> {
  const key = generateApiKey();
  const createdAt = new Date(now());
  const row = {
    id: randomUUID(),
    accountId,
    name,
    hash: hashApiKey(key),
    hint: apiKeyHint(key),
    scopes: [...scopes],
    createdAt,
    expiresAt: expiresIn === undefined ? null : new Date(createdAt.getTime() + expiresIn * 1000),
    revokedAt: null,
    lastUsedAt: null,
    requestsPerMinute: perMinute ?? null,
  };
  await db.insert(apiKeys).values(row);
  return { ...describeApiKey(row), key };
}

/**
 * Revokes a key of the account.
 * @throws RefusedError `not_found`; `last_admin_key` for the last key that can create other keys
 */
export async function endApiKey(
  { db, now }: Pick<IssuerDeps, 'db' | 'now'>,
  accountId: string,
  id: string,
): Promise<undefined> {
  await db.transaction(async (tx) => {
    // Locks the account: of two keys that are revoked at once, the second sees that the first is gone.
    await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
    const keys = await tx.select().from(apiKeys).where(eq(apiKeys.accountId, accountId));
    const key = keys.find((each) => each.id === id.toLowerCase());
    if (!key) throw new RefusedError({ code: 'not_found' });
    if (key.revokedAt) return;
    const admins = keys.filter((each) => isValidAdmin(each, now()));
    if (admins.length === 1 && admins[0] === key) throw new RefusedError(LAST);
    const own = and(eq(apiKeys.accountId, accountId), eq(apiKeys.id, id));
    await tx
      .update(apiKeys)
      .set({ revokedAt: new Date(now()) })
      .where(own);
  });
  return undefined;
}

const isValidAdmin = (key: typeof apiKeys.$inferSelect, nowMs: number): boolean =>
  key.scopes.includes('admin') &&
  key.revokedAt === null &&
  (key.expiresAt === null || key.expiresAt.getTime() > nowMs);

const LAST: Refusal = {
  code: 'last_admin_key',
  message: 'This is the last valid admin key of the account. Create another one first.',
};

/** A key as its account sees it, without its hash. */
export const describeApiKey = (
  row: Omit<typeof apiKeys.$inferSelect, 'hash' | 'revokingAfter'>,
): ApiKeyAnswer => ({
  id: row.id,
  name: row.name,
  scopes: SCOPES.filter((scope) => row.scopes.includes(scope)),
  hint: row.hint,
  created_at: seconds(row.createdAt),
  expires_at: row.expiresAt && seconds(row.expiresAt),
  revoked_at: row.revokedAt && seconds(row.revokedAt),
  requests_per_minute: row.requestsPerMinute,
  last_used_at: row.lastUsedAt && seconds(row.lastUsedAt),
});

const seconds = (time: Date) => time.getTime() / 1000;
