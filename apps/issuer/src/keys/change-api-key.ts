import {
  type ApiKeyChange,
  apiKeyAnswer,
  apiKeyChange,
  idParams,
  type Refusal,
  RefusedError,
} from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import type { Actor, ApiKey, IssuerEnv } from '../identity/caller.ts';
import { requireScope } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { type ApiKeyRow, auditedFields, checkPolicy, describeApiKey } from './api-keys.ts';

type Needs = Pick<RouteDeps, 'now'>;

/** `PATCH /v1/api-keys/{id}`: the next request with the key is judged by the changed key. */
export const changeApiKey = route(
  {
    method: 'patch',
    path: '/v1/api-keys/{id}',
    summary: 'Rename an API key, or change its expiry, rate limit or policy, or take scopes from it',
    description:
      'A key gets no scope that it does not have. A key that has expired or was revoked stays so. Only a key with the scope `operator` can change another one that has it.',
    scope: 'admin',
    params: idParams,
    body: apiKeyChange,
    answer: apiKeyAnswer,
    etag: true,
    errors: ['not_found', 'api_key_ended', 'last_admin_key', 'revision_mismatch'],
  },
  (deps) =>
    async ({ apiKey, by, params, body, c }) => {
      if (body.policy) await inTime(checkPolicy(deps, by.accountId, body.policy));
      const asked = { apiKey, by, id: params.id.toLowerCase(), change: body, c };
      const changed = await inTime(deps.db.transaction((tx) => store(tx, deps, asked)));
      sendRevision(c, changed);
      return describeApiKey(changed);
    },
);

type Asked = {
  readonly apiKey: ApiKey;
  readonly by: Actor;
  readonly id: string;
  readonly change: ApiKeyChange;
  readonly c: Context<IssuerEnv>;
};

async function store(tx: Transaction, { now }: Needs, asked: Asked): Promise<ApiKeyRow> {
  const { by, id, change, c } = asked;
  const keys = await lockApiKeys(tx, by.accountId);
  const key = keys.find((each) => each.id === id);
  if (!key) throw new RefusedError({ code: 'not_found' });
  if (key.scopes.includes('operator')) requireScope(asked.apiKey, 'operator');
  checkRevision(c, key);
  const nowMs = now();
  if (key.revokedAt || (key.expiresAt && key.expiresAt.getTime() <= nowMs))
    throw new RefusedError({ code: 'api_key_ended' });
  const next = changed(key, change, nowMs);
  refuseLast(keys, key, next, nowMs);
  const [before, after] = [auditedFields(describeApiKey(key)), auditedFields(describeApiKey(next))];
  await recordChange(tx, by, { action: 'api_key.changed', target: { kind: 'api_key', id }, before, after });
  if (JSON.stringify(before) === JSON.stringify(after)) return key;
  const stored = { ...next, revision: key.revision + 1 };
  await tx.update(apiKeys).set(stored).where(eq(apiKeys.id, id));
  return stored;
}

/** @throws RefusedError `invalid_request` */
function changed(key: ApiKeyRow, change: ApiKeyChange, nowMs: number): ApiKeyRow {
  const { name, scopes = key.scopes, expires_at: seconds, requests_per_minute: perMinute, policy } = change;
  const stranger = scopes.findIndex((scope) => !key.scopes.includes(scope));
  if (stranger >= 0)
    throw wrong(`scopes[${stranger}]`, `expected one that the key has: ${key.scopes.join(', ')}`);
  if (typeof seconds === 'number' && seconds * 1000 <= nowMs)
    throw wrong('expires_at', 'expected a time to come. DELETE /v1/api-keys/{id} revokes a key at once');
  const next = {
    ...key,
    name: name ?? key.name,
    scopes: [...scopes],
    expiresAt: endOf(key, seconds),
    requestsPerMinute: perMinute === undefined ? key.requestsPerMinute : perMinute,
    policy: policy === undefined ? key.policy : policy,
  };
  if (next.policy && next.scopes.some((scope) => scope === 'admin' || scope === 'operator'))
    throw wrong('policy', 'a key with the scope admin or operator can create keys without it');
  return next;
}

function endOf({ expiresAt }: ApiKeyRow, seconds: number | null | undefined): Date | null {
  if (seconds === undefined) return expiresAt;
  return seconds === null ? null : new Date(seconds * 1000);
}

const wrong = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/** `DELETE /v1/api-keys/{id}`: the key is refused from the next request on. A repeated request changes nothing. */
export const revokeApiKey = route(
  {
    method: 'delete',
    path: '/v1/api-keys/{id}',
    summary: 'Revoke an API key',
    scope: 'admin',
    params: idParams,
    errors: ['not_found', 'last_admin_key'],
  },
  (deps) =>
    async ({ by, params }) =>
      inTime(endApiKey(deps, by, params.id)),
);

/**
 * Revokes a key of the account.
 * @throws RefusedError `not_found`; `last_admin_key` for the last key that can create other keys
 */
export async function endApiKey(
  { db, now }: Pick<RouteDeps, 'db' | 'now'>,
  by: Actor,
  id: string,
): Promise<undefined> {
  const { accountId } = by;
  await db.transaction(async (tx) => {
    const keys = await lockApiKeys(tx, accountId);
    const key = keys.find((each) => each.id === id.toLowerCase());
    if (!key) throw new RefusedError({ code: 'not_found' });
    const target = { kind: 'api_key', id: key.id } as const;
    const before = { name: key.name, revoked_at: key.revokedAt && unixSeconds(key.revokedAt) };
    const revokedAt = key.revokedAt ?? new Date(now());
    const after = { ...before, revoked_at: unixSeconds(revokedAt) };
    await recordChange(tx, by, { action: 'api_key.revoked', target, before, after });
    if (key.revokedAt) return;
    refuseLast(keys, key, { ...key, revokedAt }, now());
    const own = and(eq(apiKeys.accountId, accountId), eq(apiKeys.id, id));
    await tx.update(apiKeys).set({ revokedAt }).where(own);
  });
  return undefined;
}

/** Locks and returns the keys of an account. If two keys end at once, the second change sees that the first key is gone. */
async function lockApiKeys(tx: Transaction, accountId: string): Promise<ApiKeyRow[]> {
  await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
  return tx.select().from(apiKeys).where(eq(apiKeys.accountId, accountId));
}

/**
 * Refuses a change after which no key could create other keys.
 * @throws RefusedError `last_admin_key`
 */
function refuseLast(keys: readonly ApiKeyRow[], key: ApiKeyRow, next: ApiKeyRow, nowMs: number): void {
  const isOther = (each: ApiKeyRow) => each.id !== key.id && isValidAdmin(each, nowMs);
  if (isValidAdmin(key, nowMs) && !isValidAdmin(next, nowMs) && !keys.some(isOther))
    throw new RefusedError(LAST);
}

const isValidAdmin = (key: ApiKeyRow, nowMs: number): boolean =>
  key.scopes.includes('admin') &&
  key.revokedAt === null &&
  (key.expiresAt === null || key.expiresAt.getTime() > nowMs);

const LAST: Refusal = {
  code: 'last_admin_key',
  message: 'This is the last valid admin key of the account. Create another one first.',
};
