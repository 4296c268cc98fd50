import { sql } from 'drizzle-orm';
import { boolean, index, integer, pgTable, primaryKey, smallint, text, uuid } from 'drizzle-orm/pg-core';
import type { McpServerPolicy } from './api/mcp-presign.ts';
import { jsonText, time, whole } from './columns.ts';

/** The kinds of grants, by what they give access to. */
export const GRANT_KINDS = ['llm', 'mcp', 'mcp_bundle'] as const;
export type GrantKind = (typeof GRANT_KINDS)[number];

/** The owners of keys, sessions and usage. */
export const accounts = pgTable('accounts', {
  id: uuid().primaryKey(),
  name: text().notNull(),
  createdAt: time().notNull().defaultNow(),
});

/** API keys of backends. Only a hash is stored. */
export const apiKeys = pgTable('api_keys', {
  id: uuid().primaryKey(),
  accountId: uuid()
    .notNull()
    .references(() => accounts.id),
  name: text().notNull(),
  /** SHA-256 of the whole key, hex. */
  hash: text().notNull().unique(),
  /** Prefix and last characters, to recognise the key. */
  hint: text().notNull(),
  scopes: text().array().notNull(),
  createdAt: time().notNull().defaultNow(),
  expiresAt: time(),
  revokedAt: time(),
  lastUsedAt: time(),
  /** Null: the operator's default. */
  requestsPerMinute: integer(),
  /** While everything that it issued is being revoked: grants issued up to this time are done. Else null. */
  revokingAfter: time(),
});

/** A sealed provider key or MCP authentication. Grants and virtual keys refer to it. */
export const credentials = pgTable(
  'credentials',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    /** AEAD output; associated data are this row's account and id. '' once it is erased. */
    sealed: text().notNull(),
    /** Counts rotations. A cached copy of another version is not used. */
    version: integer().notNull().default(1),
    revokedAt: time(),
    createdAt: time().notNull().defaultNow(),
  },
  (t) => [index('credentials_kept_index').on(t.id).where(sql`${t.sealed} <> ''`)],
);

/** Associated data of a sealed credential: it unseals only as the row that it was sealed for. */
export const credentialContext = (accountId: string, credentialId: string): string =>
  `credential ${accountId} ${credentialId}`;

/** A set of limits, and the sums of the ledger under them. A grant, a bundle or a virtual key has one. */
export const budgets = pgTable('budgets', {
  id: uuid().primaryKey(),
  /** Redis partition, chosen at issue. It never changes. */
  partition: smallint().notNull(),
  /** Null: unlimited. */
  maxUses: whole(),
  /** Microdollars. null: no limit. 0: nothing may be spent. */
  costLimitMicrousd: whole(),
  /** Null: unlimited. */
  callsPerMinute: integer(),
  /** Sums over the ledger, updated by the transaction that writes the ledger. */
  used: whole().notNull().default(0),
  settledMicrousd: whole().notNull().default(0),
  /** The highest threshold of each limit, in percent, that was announced. Each is announced once. */
  announcedUsesPercent: smallint().notNull().default(0),
  announcedCostPercent: smallint().notNull().default(0),
});

/** A provider key that is stored under a name, and used instead of `client_api_key`. */
export const virtualKeys = pgTable(
  'virtual_keys',
  {
    id: text().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    name: text().notNull(),
    provider: text().notNull(),
    credentialId: uuid()
      .notNull()
      .references(() => credentials.id),
    config: jsonText<Record<string, unknown>>(),
    /** Its budget over all its grants, if it has one. */
    budgetId: uuid().references(() => budgets.id),
    createdAt: time().notNull().defaultNow(),
    revokedAt: time(),
  },
  (t) => [index().on(t.accountId), index().on(t.credentialId), index().on(t.budgetId)],
);

export const sessions = pgTable(
  'sessions',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    createdAt: time().notNull().defaultNow(),
    revokedAt: time(),
  },
  (t) => [index().on(t.accountId, t.createdAt)],
);

/** The permission of one issued URL. A token names it. */
export const grants = pgTable(
  'grants',
  {
    id: uuid().primaryKey(),
    accountId: uuid().notNull(),
    sessionId: uuid()
      .notNull()
      .references(() => sessions.id),
    budgetId: uuid()
      .notNull()
      .references(() => budgets.id),
    /** For a bundle: its sealed document, because the URLs in it carry tokens. */
    credentialId: uuid().references(() => credentials.id),
    virtualKeyId: text().references(() => virtualKeys.id),
    kind: text({ enum: GRANT_KINDS }).notNull(),
    /** The API key that issued it. Null for grants from before this column. */
    apiKeyId: uuid(),
    /** `mcp` for MCP grants. */
    provider: text().notNull(),
    /** LLM grants only. */
    method: text(),
    paths: jsonText<readonly string[]>(),
    config: jsonText<Record<string, unknown>>(),
    /** Grants of MCP servers only: the grant of the bundle, and the server. */
    bundleId: uuid(),
    server: jsonText<McpServerPolicy>(),
    externalSession: text(),
    externalUser: text(),
    metadata: jsonText<Record<string, unknown>>(),
    issuedAt: time().notNull(),
    expiresAt: time().notNull(),
    revokedAt: time(),
    /** Whether its expiry was announced. For a bundle, the bundle's own grant is announced, and those of its servers are not. */
    expiryAnnounced: boolean().notNull().default(false),
  },
  (t) => [
    index().on(t.sessionId),
    index().on(t.budgetId),
    index().on(t.expiresAt),
    index('grants_credential_index').on(t.credentialId).where(sql`${t.credentialId} is not null`),
    index('grants_expiry_index')
      .on(t.accountId, t.expiresAt)
      .where(sql`not ${t.expiryAnnounced} and ${t.revokedAt} is null and ${t.bundleId} is null`),
    index().on(t.bundleId).where(sql`${t.bundleId} is not null`),
    index().on(t.apiKeyId, t.issuedAt).where(sql`${t.apiKeyId} is not null`),
    index().on(t.accountId, t.externalUser).where(sql`${t.externalUser} is not null`),
    index().on(t.accountId, t.externalSession).where(sql`${t.externalSession} is not null`),
  ],
);

/**
 * The tokens of an OAuth refresh token: one row for each refresh token that was submitted, for any number of grants. A
 * server may revoke the whole chain when an old token is used again.
 */
export const oauthTokens = pgTable('oauth_tokens', {
  credentialId: uuid()
    .primaryKey()
    .references(() => credentials.id),
  /** HMAC of account, token address, client and the submitted refresh token. */
  origin: text().notNull().unique(),
  /** The newest tokens, sealed. Null until the first refresh. */
  sealed: text(),
  /** Counts refreshes. */
  version: integer().notNull().default(0),
  /** Until then, one gateway refreshes, and the others wait for its result. */
  leasedUntil: time(),
});

/** Associated data of `oauthTokens.sealed`. It differs from that of the credential, so that neither unseals as the other. */
export const oauthTokensContext = (accountId: string, credentialId: string): string =>
  `${credentialContext(accountId, credentialId)} oauth`;

/** The grants of requests with an `Idempotency-Key`, so that a repetition gets the same answer. Nothing secret is stored. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    accountId: uuid().notNull(),
    route: text().notNull(),
    key: text().notNull(),
    /** HMAC of the request body. */
    bodyMac: text().notNull(),
    grantId: uuid().notNull(),
    createdAt: time().notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.route, t.key] }), index().on(t.createdAt)],
);

/**
 * What Redis must take over: the transaction of a revocation, a deletion or a rotation writes a row for each grant or
 * credential that it changes, so that a sweep can finish what a killed issuer has begun.
 */
export const pendingChanges = pgTable(
  'pending_changes',
  {
    id: uuid().primaryKey().defaultRandom(),
    /** The request that made the change. */
    changeId: uuid().notNull(),
    /** A grant that was revoked, or a credential that was rotated or erased. */
    grantId: uuid().references(() => grants.id),
    credentialId: uuid().references(() => credentials.id),
    /** Whether Redis has it. The row stays for some minutes, in case Redis loses what it has taken over. */
    done: boolean().notNull().default(false),
    /** When a sweep applies the row, or deletes it once it is done. */
    dueAt: time().notNull(),
  },
  (t) => [
    index().on(t.changeId),
    index().on(t.dueAt),
    index().on(t.grantId).where(sql`${t.grantId} is not null`),
    index().on(t.credentialId).where(sql`${t.credentialId} is not null`),
  ],
);

/** The operator's price list: the last one without a large drop, and a newer one with large drops that waits for a yes. */
export const priceLists = pgTable('price_lists', {
  /** `file`, or `url:` and a hash of the address, which may hold a secret. */
  source: text().primaryKey(),
  /** The start of the SHA-256 of the list. */
  id: text().notNull(),
  /** As the source sent it. */
  list: text().notNull(),
  datedAt: time().notNull(),
  offeredId: text(),
  offered: text(),
  offeredAt: time(),
});
