import { randomUUID } from 'node:crypto';
import { apiKeyHint, generateApiKey, hashApiKey } from '@presign/crypto';
import { type ApiKeyRequest, apiKeyRequest, type NewApiKeyAnswer, newApiKeyAnswer } from '@presign/schema';
import { apiKeys } from '@presign/schema/tables';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { tellApiKey } from './tell-api-key.ts';

/** `POST /v1/api-keys`: another key of the account; the answer is the one place where it can be read. */
export const createApiKey = route(
  {
    method: 'post',
    path: '/v1/api-keys',
    summary: 'Create an API key, which is shown this once',
    scope: 'admin',
    body: apiKeyRequest,
    answer: newApiKeyAnswer,
    status: 201,
  },
  (deps) =>
    async ({ apiKey, body }) =>
      inTime(makeApiKey(deps, apiKey.accountId, body)),
);

/** Writes a new key's hash, and tells the key. */
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
  return { ...tellApiKey(row), key };
}
