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
import { BUDGET_SCOPES, BUDGET_WINDOWS } from '../api/budgets.ts';
import { time, whole } from './columns.ts';
import { accounts } from './tables.ts';

/**
 * Where the windows of some budgets begin and end: those with the same kind of window, time zone and anchor share a calendar.
 */
export const budgetCalendars = pgTable('budget_calendars', {
  /** Its kind, time zone and anchor. */
  id: text().primaryKey(),
  kind: text({ enum: BUDGET_WINDOWS }).notNull(),
  timeZone: text().notNull(),
  /** A moment at which a window begins. Null: windows begin with the hour, the day, the Monday or the month. */
  anchor: time(),
  /** The end of the last window that is stored. Null: it has no end. */
  knownUntil: time(),
});

/** The windows of calendars, without gaps. An issuer stores them long before they begin, so that no gateway needs time zones. */
export const budgetWindows = pgTable(
  'budget_windows',
  {
    calendarId: text()
      .notNull()
      .references(() => budgetCalendars.id),
    startsAt: time().notNull(),
    /** Null: it has no end. */
    endsAt: time(),
  },
  (t) => [primaryKey({ columns: [t.calendarId, t.startsAt] })],
);

/**
 * Budgets that many URLs share, and templates that make one for each user or value. The figures of a budget are in `budgets`: one row
 * for each window, never reset.
 */
export const sharedBudgets = pgTable(
  'shared_budgets',
  {
    id: uuid().primaryKey(),
    accountId: uuid()
      .notNull()
      .references(() => accounts.id),
    name: text(),
    /** The home of the account: the Redis partition of all its shared budgets. */
    partition: smallint().notNull(),
    scope: text({ enum: BUDGET_SCOPES }).notNull(),
    /** The key of `metadata` that it looks at. '' for other scopes. */
    scopeKey: text().notNull().default(''),
    /** The id, or value, that a URL must have. '' for an account, and for a template: any. */
    scopeValue: text().notNull(),
    isTemplate: boolean().notNull().default(false),
    /** The template that it was made from. */
    templateId: uuid(),
    calendarId: text()
      .notNull()
      .references(() => budgetCalendars.id),
    window: text({ enum: BUDGET_WINDOWS }).notNull(),
    /** Counts changes. */
    revision: integer().notNull().default(1),
    /** Whether its next window has the limits of its template. */
    inherits: boolean().notNull().default(false),
    /** Null: unlimited. */
    maxUses: whole(),
    /** Microdollars. Null: no limit. */
    costLimitMicrousd: whole(),
    /** Tokens of input and output. Null: no limit. */
    tokenLimit: whole(),
    /** Whether holders of its URLs see its limits and figures. */
    visible: boolean().notNull().default(false),
    /** Percents of a limit that are announced, rising. */
    thresholds: smallint().array().notNull().default([50, 80, 100]),
    createdAt: time().notNull(),
    deletedAt: time(),
  },
  (t) => [
    uniqueIndex('shared_budgets_scope_index')
      .on(t.accountId, t.scope, t.scopeKey, t.scopeValue, t.window, t.isTemplate)
      .where(sql`${t.deletedAt} is null`),
    index().on(t.accountId, t.createdAt),
    index().on(t.templateId).where(sql`${t.templateId} is not null`),
  ],
);
