import { type ApiKeyAnswer, SCOPES } from '@presign/schema';
import type { apiKeys } from '@presign/schema/tables';

/** What an account is told of its key: all but its hash. */
export const tellApiKey = (row: Omit<typeof apiKeys.$inferSelect, 'hash'>): ApiKeyAnswer => ({
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
