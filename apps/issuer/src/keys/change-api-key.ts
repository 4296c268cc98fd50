import { type ApiKeyChange, apiKeyAnswer, apiKeyChange, RefusedError } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { apiKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { z } from 'zod';
import { recordChange } from '../audit/audit-log.ts';
import type { Actor, ApiKey, IssuerDeps, IssuerEnv } from '../deps.ts';
import { checkRevision, sendRevision } from '../grants/store-limits.ts';
import { inTime } from '../in-time.ts';
import { requireScope } from '../middleware/authenticate.ts';
import { route } from '../route.ts';
import { type ApiKeyRow, checkPolicy, describeApiKey, lockApiKeys, refuseLast, termsOf } from './api-keys.ts';

/** `PATCH /v1/api-keys/{id}`: the next request with the key is judged by what it is then. */
export const changeApiKey = route(
  {
    method: 'patch',
    path: '/v1/api-keys/{id}',
    summary: 'Rename an API key, or change its expiry, rate limit or policy, or take scopes from it',
    description:
      'A key gets no scope that it does not have. A key that has expired or was revoked stays so. Only a key with the scope `operator` can change another one that has it.',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
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

async function store(tx: Transaction, { now }: IssuerDeps, asked: Asked): Promise<ApiKeyRow> {
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
  const [before, after] = [termsOf(describeApiKey(key)), termsOf(describeApiKey(next))];
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
