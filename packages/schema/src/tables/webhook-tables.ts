import { sql } from 'drizzle-orm';
import { index, integer, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import type { WebhookEvent } from '../api/webhook-events.ts';
import { DELIVERY_ERRORS, DELIVERY_STATUSES, WEBHOOK_EVENTS, WEBHOOK_FORMATS } from '../api/webhooks.ts';
import { revision, time } from './columns.ts';
import { ledger } from './ledger-tables.ts';
import { accounts } from './tables.ts';

/** The endpoints that receive an account's events. */
export const webhooks = pgTable(
  'webhooks',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    /** How its requests look. */
    format: text({ enum: WEBHOOK_FORMATS }).notNull().default('standard'),
    /** For a Slack endpoint only the host, because its path is the secret. */
    url: text().notNull(),
    description: text(),
    /** Types of events. Null: all. */
    events: text({ enum: WEBHOOK_EVENTS }).array(),
    /** The sealed signing secret, or the whole URL of a Slack endpoint. The associated data are this row's account and id. */
    sealed: text().notNull(),
    /** The previous secret, which also signs until then. */
    previousSealed: text(),
    previousUntil: time(),
    createdAt: time().notNull().defaultNow(),
    /** When it was created or last enabled. It receives no event from before. */
    activeSince: time().notNull().defaultNow(),
    /** The first failure since the last success. */
    failingSince: time(),
    disabledAt: time(),
    disabledReason: text({ enum: ['gone', 'failing'] }),
    revision: revision(),
  },
  (t) => [index().on(t.accountId, t.createdAt)],
);

/** Associated data of an endpoint's sealed secrets. */
export const webhookContext = (accountId: string, webhookId: string): string =>
  `webhook ${accountId} ${webhookId}`;

/** Events. The transaction that causes an event writes it, if any endpoint subscribes to its type. */
export const webhookEvents = pgTable(
  'webhook_events',
  {
    /** Also the `webhook-id` of its deliveries. */
    id: uuid().primaryKey(),
    accountId: uuid().notNull(),
    type: text().$type<WebhookEvent['type']>().notNull(),
    /** The body, byte for byte as it is signed and sent. */
    payload: text().notNull(),
    createdAt: time().notNull().defaultNow(),
  },
  (t) => [index().on(t.createdAt)],
);

/** One event on its way to one endpoint. */
export const webhookDeliveries = pgTable(
  'webhook_deliveries',
  {
    id: uuid().primaryKey(),
    webhookId: uuid()
      .notNull()
      .references(() => webhooks.id, { onDelete: 'cascade' }),
    eventId: uuid()
      .notNull()
      .references(() => webhookEvents.id, { onDelete: 'cascade' }),
    status: text({ enum: DELIVERY_STATUSES }).notNull().default('pending'),
    /** `attempts`: since it was created or replayed. `claims`: all attempts, to distinguish a claim from a later one. */
    attempts: integer().notNull().default(0),
    claims: integer().notNull().default(0),
    /** When it is due. An issuer that sends it moves this time on, so that another one takes over if it dies. */
    nextTryAt: time().notNull().defaultNow(),
    /** HTTP status of the last attempt; null when no answer came, and why. */
    lastStatus: integer(),
    lastError: text({ enum: DELIVERY_ERRORS }),
    createdAt: time().notNull().defaultNow(),
    deliveredAt: time(),
  },
  (t) => [
    index().on(t.webhookId, t.createdAt),
    index('webhook_deliveries_due_index').on(t.webhookId, t.nextTryAt).where(sql`${t.status} = 'pending'`),
    index().on(t.eventId),
  ],
);

/** Settled calls that the next `usage.settled` event will list, for accounts that subscribe to it. */
export const pendingUsage = pgTable('pending_usage', {
  holdId: uuid()
    .primaryKey()
    .references(() => ledger.holdId),
  accountId: uuid().notNull(),
});
