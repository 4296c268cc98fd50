import { sql } from 'drizzle-orm';
import { index, integer, pgTable, text, timestamp, uuid } from 'drizzle-orm/pg-core';
import type { WebhookEvent } from './api/webhook-events.ts';
import { DELIVERY_ERRORS, DELIVERY_STATUSES, WEBHOOK_EVENTS } from './api/webhooks.ts';
import { accounts, ledger } from './tables.ts';

const time = () => timestamp({ withTimezone: true, mode: 'date' });

/** Where an account wants to be told of events. */
export const webhooks = pgTable(
  'webhooks',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    url: text().notNull(),
    description: text(),
    /** Types of events; null: all. */
    events: text({ enum: WEBHOOK_EVENTS }).array(),
    /** The signing secret, sealed; associated data are this row's account and id. */
    sealed: text().notNull(),
    /** The secret before it, which signs beside it until then. */
    previousSealed: text(),
    previousUntil: time(),
    createdAt: time().notNull().defaultNow(),
    /** Since when it was last created or enabled: it hears of nothing that was before. */
    activeSince: time().notNull().defaultNow(),
    /** When the failures began that no success has ended. */
    failingSince: time(),
    disabledAt: time(),
    disabledReason: text({ enum: ['gone', 'failing'] }),
  },
  (t) => [index().on(t.accountId, t.createdAt)],
);

/** Associated data of an endpoint's sealed secrets. */
export const webhookContext = (accountId: string, webhookId: string): string =>
  `webhook ${accountId} ${webhookId}`;

/** What happened, as it is told: written by the transaction that makes it so, if any endpoint wants to hear of it. */
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
    /** Attempts since it was created or replayed, and in all: the latter tells a claim from a later one. */
    attempts: integer().notNull().default(0),
    claims: integer().notNull().default(0),
    /** When it is due. An issuer that sends it moves this on, so that another takes over should it die. */
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

/** Settled calls that `usage.settled` has yet to tell of: only of accounts that want to hear of them. */
export const pendingUsage = pgTable('pending_usage', {
  holdId: uuid()
    .primaryKey()
    .references(() => ledger.holdId),
  accountId: uuid().notNull(),
});
