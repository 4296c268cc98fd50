import { index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import { time } from './columns.ts';
import { apiKeys } from './tables.ts';

/** Those who signed in to the console. A session has the rights of its API key, and dies with it. */
export const consoleSessions = pgTable(
  'console_sessions',
  {
    /** SHA-256 of the cookie's random value, hex. */
    hash: text().primaryKey(),
    apiKeyId: uuid()
      .notNull()
      .references(() => apiKeys.id),
    expiresAt: time().notNull(),
  },
  (t) => [index().on(t.apiKeyId, t.expiresAt), index().on(t.expiresAt)],
);
