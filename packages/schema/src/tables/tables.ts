import { sql } from 'drizzle-orm';
import {
  boolean,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core';
import type { AccountLimits } from '../api/accounts.ts';
import { AUDIT_ACTIONS, AUDIT_TARGETS } from '../api/audit.ts';
import type { McpServerPolicy } from '../api/bundle.ts';
import type { KeyPolicy } from '../api/policy.ts';
import type { Conditions } from '../api/presign.ts';
import { jsonText, revision, time, whole } from './columns.ts';

/** The kinds of grants, by what they give access to. */
export const GRANT_KINDS = ['llm', 'mcp', 'mcp_bundle'] as const;
export type GrantKind = (typeof GRANT_KINDS)[number];

/** The owners of keys, sessions and usage. */
export const accounts = pgTable('accounts', {
  id: uuid().primaryKey(),
  name: text().notNull(),
  createdAt: time().notNull().defaultNow(),
  /** Set while its API keys and its URLs are refused, for good once it is deleted. */
  suspendedAt: time(),
  deletedAt: time(),
  /** The most that it may have. Null: no limits. */
  limits: jsonText<AccountLimits>(),
  revision: revision(),
  /** Counts suspensions and their ends. Redis keeps the state of the highest version. */
  version: integer().notNull().default(0),
  /** Whether it has or had shared budgets: its new URLs are issued in its home partition. */
  hasBudgets: boolean().notNull().default(false),
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
  /** The URLs that it may issue. Null: all. */
  policy: jsonText<KeyPolicy>(),
  revision: revision(),
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

/** A set of limits, and the sums of the ledger under them. A grant, a bundle, a virtual key and each window of a shared budget has one. */
export const budgets = pgTable(
  'budgets',
  {
    id: uuid().primaryKey(),
    /** Redis partition, chosen at issue. It never changes. */
    partition: smallint().notNull(),
    /** Counts the changes of a virtual key's limits; for any other budget those of its grant. Redis keeps the highest. */
    revision: integer().notNull().default(1),
    /** Null: unlimited. */
    maxUses: whole(),
    /** Microdollars. null: no limit. 0: nothing may be spent. */
    costLimitMicrousd: whole(),
    /** Null: unlimited, as in those that follow. */
    callsPerMinute: integer(),
    callsPerDay: integer(),
    concurrentCalls: integer(),
    tokensPerMinute: integer(),
    /** Tokens of input and output. Null: no limit. Only windows have one. */
    tokenLimit: whole(),
    /** Whether holders see the limits and the figures. Only those of windows can be shown. */
    visible: boolean().notNull().default(false),
    /** Sums over the ledger, updated by the transaction that writes the ledger. */
    used: whole().notNull().default(0),
    settledMicrousd: whole().notNull().default(0),
    usedTokens: whole().notNull().default(0),
    /** The highest threshold of each limit, in percent, that was announced. Each is announced once. */
    announcedUsesPercent: smallint().notNull().default(0),
    announcedCostPercent: smallint().notNull().default(0),
    announcedTokensPercent: smallint().notNull().default(0),
    /** The shared budget whose window it is, and the time in which it counts calls. Null: it is no window. */
    sharedId: uuid(),
    startsAt: time(),
    /** Null: it has no end. */
    endsAt: time(),
    /** Whether the end of the window was announced. */
    resetAnnounced: boolean().notNull().default(false),
  },
  (t) => [
    uniqueIndex('budgets_window_index').on(t.sharedId, t.startsAt).where(sql`${t.sharedId} is not null`),
    index('budgets_ended_index').on(t.endsAt).where(sql`${t.endsAt} is not null`),
    index('budgets_reset_index').on(t.endsAt).where(sql`${t.endsAt} is not null and not ${t.resetAnnounced}`),
  ],
);

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
    /** Its budget over all its grants. */
    budgetId: uuid()
      .notNull()
      .references(() => budgets.id),
    createdAt: time().notNull().defaultNow(),
    revokedAt: time(),
    revision: revision(),
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
    /** The owner's name for it, and data. */
    name: text(),
    metadata: jsonText<Record<string, unknown>>(),
    revision: revision(),
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
    /** The API key that issued it. */
    apiKeyId: uuid(),
    /** `mcp` for MCP grants. */
    provider: text().notNull(),
    /** LLM grants only. */
    method: text(),
    paths: jsonText<readonly string[]>(),
    config: jsonText<Record<string, unknown>>(),
    /** The models that its calls may use. Null: all. */
    models: jsonText<readonly string[]>(),
    /** Null: none. */
    conditions: jsonText<Conditions>(),
    /** Grants of MCP servers only: the grant of the bundle, and the server. */
    bundleId: uuid(),
    server: jsonText<McpServerPolicy>(),
    externalSession: text(),
    externalUser: text(),
    metadata: jsonText<Record<string, unknown>>(),
    /** The shared budgets that its calls draw on, chosen when it was issued. Null: none. */
    sharedBudgetIds: uuid().array(),
    issuedAt: time().notNull(),
    /** When it ends. Its token may say later. */
    expiresAt: time().notNull(),
    /** When its newest token ends, if the end was ever moved. Null: at `expiresAt`. */
    signedUntil: time(),
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
    index('grants_live_index').on(t.accountId, t.expiresAt).where(sql`${t.revokedAt} is null`),
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

/** Requests with an `Idempotency-Key`, so that a repetition gets the same answer. Nothing secret is stored. */
export const idempotencyKeys = pgTable(
  'idempotency_keys',
  {
    accountId: uuid().notNull(),
    route: text().notNull(),
    key: text().notNull(),
    /** HMAC of the request body. */
    bodyMac: text().notNull(),
    /** The grant that was issued. On other routes a random id, from which the secret in the answer is derived. */
    grantId: uuid().notNull(),
    /** The answer of a route that issues no grant, without its secret. */
    answer: jsonText<Record<string, unknown>>(),
    createdAt: time().notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.route, t.key] }), index().on(t.createdAt)],
);

/**
 * Changes that Redis must take over. The transaction of a revocation, a deletion or a rotation writes a row for each grant or
 * credential that it changes. A sweep finishes what a killed issuer has begun.
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
    /** An account that was suspended or serves again. */
    accountId: uuid().references(() => accounts.id),
    /** Or a budget whose limits changed, with the ends of the grants whose own it is. */
    budgetId: uuid().references(() => budgets.id),
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
    index().on(t.accountId).where(sql`${t.accountId} is not null`),
    index().on(t.budgetId).where(sql`${t.budgetId} is not null`),
  ],
);

/** Lists that an operator keeps current: the last one that loosens nothing, and a newer one that waits for a yes. */
const kept = (name: string) =>
  pgTable(name, {
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

export type KeptTable = ReturnType<typeof kept>;

/** The operator's prices. */
export const priceLists = kept('price_lists');

/** The knowledge file of the operator. */
export const knowledgeFiles = kept('knowledge_files');

/** Changes: by whom, when, from where. The transaction of a change writes its entry. Nothing in it is secret. */
export const audit = pgTable(
  'audit',
  {
    id: uuid().primaryKey().defaultRandom(),
    accountId: uuid().notNull(),
    at: time().notNull().defaultNow(),
    /** The id of an API key, `cli` or `issuer`. */
    actor: text().notNull(),
    action: text({ enum: AUDIT_ACTIONS }).notNull(),
    targetKind: text({ enum: AUDIT_TARGETS }).notNull(),
    targetId: text().notNull(),
    /** Null: the change was no request. The address is that of the connection, perhaps of a proxy. */
    requestId: uuid(),
    remoteAddress: text(),
    before: jsonText<Record<string, unknown>>(),
    after: jsonText<Record<string, unknown>>(),
  },
  (t) => [index().on(t.accountId, t.at), index().on(t.accountId, t.targetId, t.at), index().on(t.at)],
);
