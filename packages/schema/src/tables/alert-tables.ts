import { sql } from 'drizzle-orm';
import { boolean, doublePrecision, index, pgTable, text, uuid } from 'drizzle-orm/pg-core';
import type { AlertCondition } from '../api/alerts.ts';
import { jsonText, revision, time } from './columns.ts';
import { accounts } from './tables.ts';
import { webhooks } from './webhook-tables.ts';

/** Conditions that are announced to an account, and whether they hold. */
export const alerts = pgTable(
  'alerts',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    name: text().notNull(),
    condition: jsonText<AlertCondition>().notNull(),
    /** The endpoint that gets its events. Null: none. */
    webhookId: uuid().references(() => webhooks.id, { onDelete: 'set null' }),
    isEnabled: boolean().notNull(),
    createdAt: time().notNull().defaultNow(),
    revision: revision(),
    /** When it is evaluated next. All times here are those of Postgres. */
    dueAt: time().notNull().defaultNow(),
    /** When it was evaluated last. Null: its condition is new. */
    checkedAt: time(),
    value: doublePrecision(),
    threshold: doublePrecision(),
    /** Since when it has this condition, and is enabled. Windows that ended before do not count. */
    conditionSince: time().notNull().defaultNow(),
    /** Its row in `alertFirings` while it fires, and since when. */
    firingId: uuid(),
    firingSince: time(),
    /** The start of the newest window in which the condition held: that window does not fire a second time. */
    heldWindow: time(),
    /** When it held last. */
    heldAt: time(),
  },
  (t) => [
    index().on(t.accountId, t.createdAt),
    index('alerts_webhook_index').on(t.webhookId).where(sql`${t.webhookId} is not null`),
    index('alerts_due_index').on(t.dueAt).where(sql`${t.isEnabled}`),
  ],
);

/** Times that alerts fired. */
export const alertFirings = pgTable(
  'alert_firings',
  {
    /** Also the id of its event `alert.fired`. */
    id: uuid().primaryKey(),
    alertId: uuid()
      .notNull()
      .references(() => alerts.id, { onDelete: 'cascade' }),
    createdAt: time().notNull().defaultNow(),
    resolvedAt: time(),
    value: doublePrecision().notNull(),
    threshold: doublePrecision().notNull(),
    /** The window that it fired for. */
    startsAt: time(),
    endsAt: time(),
  },
  (t) => [
    index().on(t.alertId, t.createdAt),
    index('alert_firings_old_index').on(t.resolvedAt).where(sql`${t.resolvedAt} is not null`),
  ],
);
