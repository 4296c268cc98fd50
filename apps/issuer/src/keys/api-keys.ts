import { randomUUID } from 'node:crypto';
import { apiKeyHint, generateApiKey, hashApiKey } from '@presign/crypto';
import {
  type ApiKeyAnswer,
  type ApiKeyRequest,
  apiKeyAnswer,
  apiKeyPage,
  apiKeyRequest,
  idParams,
  type KeyPolicy,
  type NewApiKeyAnswer,
  newApiKeyAnswer,
  pageQuery,
  RefusedError,
  SCOPES,
} from '@presign/schema';
import { accounts, apiKeys, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, getTableColumns, gt, inArray, isNull, or } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { sendRevision } from '../answers/revision.ts';
import { unixSeconds, wholeSecond } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { requireScope } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

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
    etag: true,
    links: { id: ['getApiKey', 'changeApiKey', 'revokeApiKey'] },
    secret: { field: 'key', write: generateApiKey },
    judge: (apiKey, body) => {
      if ((body as ApiKeyRequest).scopes.includes('operator')) requireScope(apiKey, 'operator');
    },
    errors: ['account_limit'],
  },
  (deps) =>
    async ({ by, body, secret }) =>
      inTime(makeApiKey(deps, by, body, secret)),
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
    params: idParams,
    answer: apiKeyAnswer,
    etag: true,
    errors: ['not_found'],
  },
  ({ db }) =>
    async ({ apiKey, params, c }) => {
      const own = and(eq(apiKeys.accountId, apiKey.accountId), eq(apiKeys.id, params.id));
      const [row] = await inTime(db.select().from(apiKeys).where(own));
      if (!row) throw new RefusedError({ code: 'not_found' });
      sendRevision(c, row);
      return describeApiKey(row);
    },
);

type Deps = Pick<RouteDeps, 'db' | 'now' | 'providers'>;

/**
 * Stores the hash of a new key, and returns the key with its description.
 * @throws RefusedError `invalid_request` for a policy that names an unknown provider or virtual key
 */
export async function makeApiKey(
  { db, now, providers }: Deps,
  by: Actor,
  request: ApiKeyRequest,
  secret = generateApiKey(),
): Promise<NewApiKeyAnswer> {
  if (request.policy) await checkPolicy({ db, providers }, by.accountId, request.policy);
  const { row, key } = newApiKey(now(), by.accountId, request, secret);
  const described = describeApiKey(row);
  await db.transaction(async (tx) => {
    await obeyKeyLimit(tx, by.accountId, row.createdAt);
    await tx.insert(apiKeys).values(row);
    const target = { kind: 'api_key', id: row.id } as const;
    await recordChange(tx, by, { action: 'api_key.created', target, after: auditedFields(described) });
  });
  return { ...described, key };
}

/**
 * Refuses a key above the limit of its account, whose row it locks.
 * @throws RefusedError `account_limit`
 */
async function obeyKeyLimit(tx: Transaction, accountId: string, now: Date): Promise<void> {
  const [account] = await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
  const most = account?.limits?.api_keys ?? null;
  if (most === null) return;
  const live = and(eq(apiKeys.accountId, accountId), isLiveKey(now));
  if ((await tx.$count(apiKeys, live)) < most) return;
  const message = `This account allows ${most} live API keys, and has them. Revoke one, or ask the operator of the service.`;
  throw new RefusedError({ code: 'account_limit', message });
}

/** The condition that a key is neither revoked nor expired. */
export const isLiveKey = (now: Date) =>
  and(isNull(apiKeys.revokedAt), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now)));

/** A new key of an account, and the row to store: it has only the hash. */
export function newApiKey(
  nowMs: number,
  accountId: string,
  { name, scopes, expires_in: expiresIn, requests_per_minute: perMinute, policy }: ApiKeyRequest,
  key = generateApiKey(),
) {
  const createdAt = new Date(nowMs);
  const row = {
    id: randomUUID(),
    accountId,
    name,
    hash: hashApiKey(key),
    hint: apiKeyHint(key),
    scopes: [...scopes],
    createdAt,
    expiresAt: expiresIn === undefined ? null : wholeSecond(nowMs + expiresIn * 1000),
    revokedAt: null,
    lastUsedAt: null,
    requestsPerMinute: perMinute ?? null,
    policy: policy ?? null,
    revision: 1,
  };
  return { row, key };
}

/** Refuses a policy that names a thing that the account lacks. Such a policy is a mistake, and would allow nothing. */
export async function checkPolicy(
  { db, providers }: Pick<Deps, 'db' | 'providers'>,
  accountId: string,
  { providers: named = [], virtual_keys: keys = [] }: KeyPolicy,
): Promise<void> {
  const unknown = named.findIndex((id) => id !== 'mcp' && !providers.has(id));
  if (unknown >= 0)
    throw wrong(`policy.providers[${unknown}]`, 'expected the name of a provider, or mcp for MCP servers');
  if (keys.length === 0) return;
  const own = and(eq(virtualKeys.accountId, accountId), inArray(virtualKeys.id, keys));
  const rows = await db.select({ id: virtualKeys.id }).from(virtualKeys).where(own);
  const foreign = keys.findIndex((id) => !rows.some((row) => row.id === id));
  if (foreign >= 0) throw wrong(`policy.virtual_keys[${foreign}]`, 'this virtual key does not exist');
}

const wrong = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

export type ApiKeyRow = typeof apiKeys.$inferSelect;

/** A key as its account sees it, without its hash. */
export const describeApiKey = (
  row: Omit<typeof apiKeys.$inferSelect, 'hash' | 'revokingAfter'>,
): ApiKeyAnswer => ({
  id: row.id,
  name: row.name,
  scopes: SCOPES.filter((scope) => row.scopes.includes(scope)),
  hint: row.hint,
  created_at: unixSeconds(row.createdAt),
  expires_at: row.expiresAt && unixSeconds(row.expiresAt),
  revoked_at: row.revokedAt && unixSeconds(row.revokedAt),
  requests_per_minute: row.requestsPerMinute,
  policy: row.policy,
  revision: row.revision,
  last_used_at: row.lastUsedAt && unixSeconds(row.lastUsedAt),
});

/** Everything that is chosen when a key is created. */
export const auditedFields = ({ name, scopes, expires_at, requests_per_minute, policy }: ApiKeyAnswer) => ({
  name,
  scopes,
  expires_at,
  requests_per_minute,
  policy,
});
