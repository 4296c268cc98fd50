import { sql } from 'drizzle-orm';
import {
  boolean,
  date,
  index,
  integer,
  numeric,
  pgTable,
  primaryKey,
  smallint,
  text,
  uuid,
} from 'drizzle-orm/pg-core';
import type { RefusedFigures } from '../api/usage/refused.ts';
import { jsonText, time, whole } from './columns.ts';

/** How far each Redis partition's usage stream has reached the ledger. */
export const partitions = pgTable('partitions', {
  id: smallint().primaryKey(),
  /** Raised whenever Redis has lost data. State of an older epoch in Redis is then ignored. */
  epoch: integer().notNull(),
  /** Id of the last stream entry in the ledger. */
  lastId: text().notNull(),
});

/** Values by key of metadata, in the order of the keys. */
export type Tags = Readonly<Record<string, string>>;

/** The failure of an MCP call that Redis charged after the gateway had refused it. */
export const NEVER_HEARD = 'limits_unavailable';

/** Every settled call, exactly once, until it is old enough to be only part of the sums in `usageDays`. */
export const ledger = pgTable(
  'ledger',
  {
    /** The hold's id, 128 random bits. It makes draining idempotent. */
    holdId: uuid().primaryKey(),
    accountId: uuid().notNull(),
    sessionId: uuid().notNull(),
    grantId: uuid().notNull(),
    /** The API key that issued the grant. Null for grants that have none. */
    apiKeyId: uuid(),
    /** The virtual key of the grant. */
    virtualKeyId: text(),
    /** The `x-presign-request-id` of the call. A refund has that of its call. */
    requestId: uuid(),
    provider: text().notNull(),
    model: text(),
    /** MCP: the name of the server, and the tool or method that was called. */
    server: text(),
    tool: text(),
    externalUser: text(),
    /** Values of the keys of metadata that the operator declared, as the grant had them. Null: none. */
    tags: jsonText<Tags>(),
    /** 0 when the use was returned. Below 0 in a refund of another row's charge. */
    uses: integer().notNull(),
    /** Null: the cost is not known. */
    costMicrousd: whole(),
    /** The cost of the reported usage beyond the hold. No budget is charged for it, and it ends the grant. */
    overrunMicrousd: whole().notNull().default(0),
    /** Null: nothing was held. */
    heldMicrousd: whole(),
    /** `source:id` of the list that priced the call. */
    priceList: text(),
    /** The version of the knowledge that bounded the call. Null for MCP calls. */
    knowledge: text(),
    /**
     * The cost line by line: unit, count, and rate in microdollars for a million tokens or for each other unit. Null when the cost
     * does not follow from a usage.
     */
    priceLines: jsonText<readonly (readonly [unit: string, count: number, rate: number])[]>(),
    /** All tokens of input and of output, as the provider reported them. Null when it did not. */
    inputTokens: whole(),
    outputTokens: whole(),
    /** The provider's status. Null when no answer came. */
    status: integer(),
    /**
     * How the call ended: `settled`, or `expired` when its gateway died and the lease ended. `refunded`: a row that
     * returns the charge of an MCP call that surely did not run.
     */
    outcome: text({ enum: ['settled', 'expired', 'refunded'] }).notNull(),
    /** How it failed. Null: its holder got a whole answer below 400, or it is an MCP call under way. */
    failure: text(),
    /** From its arrival to the first byte of the answer, and to its end. Null: not known. */
    firstByteMs: integer(),
    totalMs: integer(),
    /** The time that the gateway took of it, in microseconds. */
    ownUs: integer(),
    /** `X-Stainless-Retry-Count`. Null: not stated. */
    retryCount: smallint(),
    /** The beginning of `User-Agent`. */
    userAgent: text(),
    /** The socket that it is a turn of, by the request id of its handshake, and its number there. Null: it had a request of its own. */
    connectionId: uuid(),
    turn: integer(),
    startedAt: time().notNull(),
    settledAt: time().notNull(),
  },
  (t) => [
    index().on(t.accountId, t.settledAt),
    index().on(t.grantId),
    index().on(t.sessionId),
    index().on(t.requestId).where(sql`${t.requestId} is not null`),
    index().on(t.accountId, t.externalUser, t.settledAt).where(sql`${t.externalUser} is not null`),
  ],
);

/** Sums of the ledger by day in UTC, which outlive its rows. The transaction that writes a call from before the mark adds it. */
export const usageDays = pgTable(
  'usage_days',
  {
    /** Derived from the day, the account and all dimensions, which identify the row. */
    id: uuid().primaryKey(),
    accountId: uuid().notNull(),
    day: date({ mode: 'string' }).notNull(),
    provider: text().notNull(),
    model: text(),
    server: text(),
    tool: text(),
    externalUser: text(),
    apiKeyId: uuid(),
    virtualKeyId: text(),
    /** How they ended. */
    outcome: text(),
    tags: jsonText<Tags>(),
    calls: numeric().notNull(),
    uses: numeric().notNull(),
    costMicrousd: numeric().notNull(),
    callsOfUnknownCost: numeric().notNull(),
    inputTokens: numeric().notNull(),
    outputTokens: numeric().notNull(),
    /** The pieces of the day that have calls, by their place: `DAY_STARTS` divides it. */
    pieces: smallint().array().notNull().default([]),
    /** The six sums up to the end of each of these pieces but the last, which has those of the day. */
    running: numeric().array().notNull().default([]),
  },
  (t) => [index().on(t.accountId, t.day)],
);

/**
 * Calls by the hour in UTC, how they ended, and how long they took. The drainer appends rows, so that it waits for no other, and a sweep
 * merges those of past hours.
 */
export const callHours = pgTable(
  'call_hours',
  {
    accountId: uuid().notNull(),
    hour: time().notNull(),
    provider: text().notNull(),
    model: text(),
    server: text(),
    outcome: text().notNull(),
    /** Intervals of `latency.ts` of the issuer. Null: not known. */
    firstByte: smallint(),
    total: smallint(),
    calls: whole().notNull(),
    isMerged: boolean().notNull().default(false),
  },
  (t) => [index().on(t.accountId, t.hour), index().on(t.hour).where(sql`not ${t.isMerged}`)],
);

/**
 * For each account: calls before `summedUntil` are in the sums. Calls before `keptFrom` may be deleted from the ledger, and sums of
 * days before `sumsFrom`, too. Days before `dividedFrom` have no pieces.
 */
export const usageMarks = pgTable('usage_marks', {
  accountId: uuid().primaryKey(),
  summedUntil: time().notNull(),
  keptFrom: time(),
  sumsFrom: time(),
  dividedFrom: time(),
});

/** Files of the archive that its store has yet to confirm. Their rows are here alone. */
export const archiveParts = pgTable('archive_parts', {
  name: text().primaryKey(),
  /** The task that deleted the rows: it deletes no more while one of its parts waits. */
  job: text().notNull(),
  /** The bytes of the file in base64, which all drivers read alike. */
  body: text().notNull(),
  /** Until then, an issuer is sending it. */
  claimedUntil: time().notNull().defaultNow(),
  createdAt: time().notNull().defaultNow(),
});

/**
 * Calls that gateways refused, of each grant and code the first ones of an hour. Partitioned by day in UTC: the table of 31 January 2026
 * is `refused_calls_20260131`, which `days.ts` of the issuer makes and drops.
 */
export const refusedCalls = pgTable(
  'refused_calls',
  {
    requestId: uuid().notNull(),
    refusedAt: time().notNull(),
    accountId: uuid().notNull(),
    sessionId: uuid().notNull(),
    grantId: uuid().notNull(),
    apiKeyId: uuid(),
    virtualKeyId: text(),
    externalUser: text(),
    tags: jsonText<Tags>(),
    provider: text().notNull(),
    /** Null: it has no price, or the call was refused before it was known. */
    model: text(),
    /** MCP: the name of the server, and the tool or method that was called. */
    server: text(),
    tool: text(),
    /** The status that its holder got. */
    status: integer().notNull(),
    code: text().notNull(),
    /** Null: the code says it all. */
    reason: text(),
    /** The field, kind or model for which no bound or price is known. */
    name: text(),
    /** Which limit refused it, with its figures, and the socket on which it was to be a turn. Null: none of these. */
    figures: jsonText<RefusedFigures>(),
    /** The length of its body as its holder stated it. */
    bodyBytes: whole(),
  },
  (t) => [
    primaryKey({ columns: [t.requestId, t.refusedAt] }),
    index().on(t.accountId, t.refusedAt),
    index().on(t.grantId),
    index().on(t.accountId, t.externalUser, t.refusedAt).where(sql`${t.externalUser} is not null`),
  ],
);

/** How many calls were refused on a day of UTC, by code, and by the name that they were refused for. */
export const refusalDays = pgTable(
  'refusal_days',
  {
    accountId: uuid().notNull(),
    day: date({ mode: 'string' }).notNull(),
    code: text().notNull(),
    /** Empty: calls that have none. */
    name: text().notNull(),
    calls: numeric().notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountId, t.day, t.code, t.name] }), index().on(t.day)],
);

/** How far each Redis partition's stream of refused calls has reached `refusedCalls` and `refusalDays`. */
export const refusedMarks = pgTable('refused_marks', {
  partition: smallint().primaryKey(),
  /** Id of the last entry. */
  lastId: text().notNull(),
});
