import { sql } from 'drizzle-orm';
import {
  bigint,
  boolean,
  customType,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  timestamp,
  uuid,
} from 'drizzle-orm/pg-core';
import type { McpServerPolicy } from './api/mcp-presign.ts';

/** What a grant gives access to. */
export const GRANT_KINDS = ['llm', 'mcp', 'mcp_bundle'] as const;
export type GrantKind = (typeof GRANT_KINDS)[number];

/** Microdollars and counts: whole numbers up to 2^53 − 1. */
const whole = () => bigint({ mode: 'number' });
const time = () => timestamp({ withTimezone: true, mode: 'date' });

/** JSON kept as text: Postgres' own JSON types refuse or rewrite what callers may store (NUL, number forms). */
const jsonText = <T>() =>
  customType<{ data: T; driverData: string }>({
    dataType: () => 'text',
    toDriver: (value) => JSON.stringify(value),
    fromDriver: (value) => JSON.parse(value) as T,
  })();

/** Who owns keys, sessions and usage. */
export const accounts = pgTable('accounts', {
  id: uuid().primaryKey(),
  name: text().notNull(),
  createdAt: time().notNull().defaultNow(),
});

/** API keys of backends: only a hash is kept. */
export const apiKeys = pgTable('api_keys', {
  id: uuid().primaryKey(),
  accountId: uuid()
    .notNull()
    .references(() => accounts.id),
  name: text().notNull(),
  /** SHA-256 of the whole key, hex. */
  hash: text().notNull().unique(),
  /** Prefix and last characters, to tell keys apart. */
  hint: text().notNull(),
  scopes: text().array().notNull(),
  createdAt: time().notNull().defaultNow(),
  expiresAt: time(),
  revokedAt: time(),
  lastUsedAt: time(),
  /** Null: the operator's default. */
  requestsPerMinute: integer(),
});

/** A provider key or MCP authentication, sealed; grants and virtual keys name it. */
export const credentials = pgTable(
  'credentials',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    /** AEAD output; associated data are this row's account and id. '' once it is erased. */
    sealed: text().notNull(),
    /** Counts rotations; a cached copy of another version is not used. */
    version: integer().notNull().default(1),
    revokedAt: time(),
    createdAt: time().notNull().defaultNow(),
  },
  (t) => [index('credentials_kept_index').on(t.id).where(sql`${t.sealed} <> ''`)],
);

/** Associated data of a sealed credential: it unseals only as the record it was sealed for. */
export const credentialContext = (accountId: string, credentialId: string): string =>
  `credential ${accountId} ${credentialId}`;

/** One set of limits with what the ledger knows was used of it: a grant's own, a bundle's, a virtual key's budget. */
export const budgets = pgTable('budgets', {
  id: uuid().primaryKey(),
  /** Redis partition, chosen at issue and kept for good. */
  partition: smallint().notNull(),
  /** Null: unlimited. */
  maxUses: whole(),
  /** Microdollars; null: no limit, 0: nothing may be spent. */
  costLimitMicrousd: whole(),
  /** Null: as many as come. */
  callsPerMinute: integer(),
  /** Sum over the ledger, kept by the transaction that writes the ledger. */
  used: whole().notNull().default(0),
  settledMicrousd: whole().notNull().default(0),
  /** The highest thresholds of its limits, in percent, that were told of: each is told once. */
  announcedUsesPercent: smallint().notNull().default(0),
  announcedCostPercent: smallint().notNull().default(0),
});

/** A provider key kept by the operator's backend under a name, used in place of `client_api_key`. */
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
    /** Its own budget over all its grants, if it has one. */
    budgetId: uuid().references(() => budgets.id),
    createdAt: time().notNull().defaultNow(),
    revokedAt: time(),
  },
  (t) => [index().on(t.accountId), index().on(t.credentialId)],
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

/** One issued URL's permission; what a token names. */
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
    /** A bundle's own is its document, sealed: its servers' URLs carry tokens. */
    credentialId: uuid().references(() => credentials.id),
    virtualKeyId: text().references(() => virtualKeys.id),
    kind: text({ enum: GRANT_KINDS }).notNull(),
    /** `mcp` for MCP grants. */
    provider: text().notNull(),
    /** Of an LLM grant. */
    method: text(),
    paths: jsonText<readonly string[]>(),
    config: jsonText<Record<string, unknown>>(),
    /** Of an MCP server's grant: the grant of its bundle, and the server. */
    bundleId: uuid(),
    server: jsonText<McpServerPolicy>(),
    externalSession: text(),
    externalUser: text(),
    metadata: jsonText<Record<string, unknown>>(),
    issuedAt: time().notNull(),
    expiresAt: time().notNull(),
    revokedAt: time(),
    /** Whether its expiry was told of; of a bundle its own grant is told of, not those of its servers. */
    expiryAnnounced: boolean().notNull().default(false),
  },
  (t) => [
    index().on(t.sessionId),
    index('grants_credential_index').on(t.credentialId).where(sql`${t.credentialId} is not null`),
    index('grants_expiry_index')
      .on(t.accountId, t.expiresAt)
      .where(sql`not ${t.expiryAnnounced} and ${t.revokedAt} is null and ${t.bundleId} is null`),
    index().on(t.bundleId).where(sql`${t.bundleId} is not null`),
    index().on(t.accountId, t.externalUser).where(sql`${t.externalUser} is not null`),
    index().on(t.accountId, t.externalSession).where(sql`${t.externalSession} is not null`),
  ],
);

/**
 * The tokens that an OAuth refresh token led to: one row for each refresh token that was handed in, however many
 * grants it was handed in for, because a server may revoke the whole chain when an old one is used again.
 */
export const oauthTokens = pgTable('oauth_tokens', {
  credentialId: uuid()
    .primaryKey()
    .references(() => credentials.id),
  /** HMAC of account, token address, client and the refresh token that was handed in. */
  origin: text().notNull().unique(),
  /** The newest tokens, sealed; null until the first refresh. */
  sealed: text(),
  /** Counts refreshes. */
  version: integer().notNull().default(0),
  /** Until then one gateway is refreshing, and others wait for its result. */
  leasedUntil: time(),
});

/** Associated data of `oauthTokens.sealed`: other than its credential's, so that neither unseals as the other. */
export const oauthTokensContext = (accountId: string, credentialId: string): string =>
  `${credentialContext(accountId, credentialId)} oauth`;

/** Answers that a repeated `Idempotency-Key` finds again; nothing secret is kept. */
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
  (t) => [index().on(t.changeId), index().on(t.dueAt)],
);

/** How far each Redis partition's usage stream has reached the ledger. */
export const partitions = pgTable('partitions', {
  id: smallint().primaryKey(),
  /** Raised whenever Redis is found to have lost data; older Redis state is then no longer believed. */
  epoch: integer().notNull(),
  /** Id of the last stream entry in the ledger. */
  lastId: text().notNull(),
});

/** Every settled call, exactly once. */
export const ledger = pgTable(
  'ledger',
  {
    /** The hold's id, 128 random bits: what makes draining idempotent. */
    holdId: uuid().primaryKey(),
    accountId: uuid().notNull(),
    sessionId: uuid().notNull(),
    grantId: uuid().notNull(),
    provider: text().notNull(),
    model: text(),
    /** MCP: name of the server; tool or method that was called. */
    server: text(),
    tool: text(),
    externalUser: text(),
    /** 0 when the use was given back; below 0 in a row that gives back what another row has charged. */
    uses: integer().notNull(),
    /** Null: the cost is not known. */
    costMicrousd: whole(),
    /** What the provider's usage came to beyond the hold; charged to nobody, and the end of the grant. */
    overrunMicrousd: whole().notNull().default(0),
    /** Tokens of input and output in all, as the provider reported them; null when it did not. */
    inputTokens: whole(),
    outputTokens: whole(),
    /** The provider's status; null when no answer came. */
    status: integer(),
    /**
     * How the call ended: `settled`, or `expired` when its gateway died and the lease ran out. `refunded`: a row
     * of its own, because an MCP call that was charged did surely not run.
     */
    outcome: text({ enum: ['settled', 'expired', 'refunded'] }).notNull(),
    startedAt: time().notNull(),
    settledAt: time().notNull(),
  },
  (t) => [index().on(t.accountId, t.settledAt), index().on(t.grantId), index().on(t.sessionId)],
);
