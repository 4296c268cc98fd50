import type { RedisClient } from '@presign/limits';
import {
  type BudgetAnswer,
  budgetAnswer,
  budgetPage,
  budgetsQuery,
  idParams,
  RefusedError,
  scopeOf,
} from '@presign/schema';
import { budgetCalendars, sharedBudgets } from '@presign/schema/budget-tables';
import { budgets } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, gt, isNull, lte, or, type SQL } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { liveWindow } from '../grants/live-figures.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

/** `GET /v1/budgets`: the account's shared budgets, newest first, with deleted ones. */
export const listBudgets = route(
  {
    method: 'get',
    path: '/v1/budgets',
    summary: 'List shared budgets, newest first, with the figures of their present windows',
    scope: 'read',
    query: budgetsQuery,
    answer: budgetPage,
  },
  (deps) =>
    async ({ apiKey, query }) => {
      const { template, external_user: user } = query;
      const filter = and(
        eq(sharedBudgets.accountId, apiKey.accountId),
        template === undefined ? undefined : eq(sharedBudgets.templateId, template),
        user === undefined ? undefined : isExactly('external_user', user),
        after(query.cursor, sharedBudgets),
      );
      const rows = selectBudgets(deps.db, deps.now())
        .where(filter)
        .orderBy(...newestFirst(sharedBudgets))
        .limit(query.limit + 1);
      const page = pageOfRows(await inTime(rows), query.limit, (row) => row);
      const data = await Promise.all(page.data.map((row) => describeBudget(deps.redis, row)));
      return { data, next_cursor: page.next_cursor };
    },
);

/** `GET /v1/budgets/{id}`. */
export const getBudget = route(
  {
    method: 'get',
    path: '/v1/budgets/{id}',
    summary: 'Get a shared budget with the figures of its present window',
    description: 'The `ETag` of the answer is its revision.',
    scope: 'read',
    params: idParams,
    answer: budgetAnswer,
    etag: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params, c }) => {
      const row = await findBudget(deps, apiKey.accountId, params.id);
      sendRevision(c, row.budget);
      return describeBudget(deps.redis, row);
    },
);

/** @throws RefusedError `not_found` */
export async function findBudget({ db, now }: Pick<RouteDeps, 'db' | 'now'>, accountId: string, id: string) {
  const own = and(eq(sharedBudgets.accountId, accountId), eq(sharedBudgets.id, id));
  const [row] = await inTime(selectBudgets(db, now()).where(own));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

export type Scope = Pick<
  typeof sharedBudgets.$inferSelect,
  'scope' | 'scopeKey' | 'scopeValue' | 'isTemplate'
>;

const isExactly = (scope: Scope['scope'], value: string): SQL | undefined =>
  and(
    eq(sharedBudgets.scope, scope),
    eq(sharedBudgets.scopeValue, value),
    eq(sharedBudgets.isTemplate, false),
  );

/** Shared budgets with their calendars, templates and present windows. */
export function selectBudgets(db: Database | Transaction, nowMs: number) {
  const template = alias(sharedBudgets, 'template');
  return db
    .select({
      id: sharedBudgets.id,
      micros: micros(sharedBudgets.createdAt),
      budget: sharedBudgets,
      calendar: budgetCalendars,
      template,
      window: budgets,
    })
    .from(sharedBudgets)
    .innerJoin(budgetCalendars, eq(budgetCalendars.id, sharedBudgets.calendarId))
    .leftJoin(template, eq(template.id, sharedBudgets.templateId))
    .leftJoin(budgets, and(eq(budgets.sharedId, sharedBudgets.id), isPresent(nowMs)));
}

/** Whether a window contains this time. */
function isPresent(nowMs: number) {
  const now = new Date(nowMs);
  return and(lte(budgets.startsAt, now), or(isNull(budgets.endsAt), gt(budgets.endsAt, now)));
}

type Row = Awaited<ReturnType<typeof selectBudgets>>[number];
export type Limits = Pick<Row['budget'], 'maxUses' | 'costLimitMicrousd' | 'tokenLimit'>;

/** The limits that are in force: those of the window, or those that the first window will have. */
export const limitsOf = ({
  budget,
  template,
  window,
}: Pick<Row, 'budget' | 'template' | 'window'>): Limits => {
  const stored = budget.inherits ? (template ?? budget) : budget;
  const { maxUses, costLimitMicrousd, tokenLimit } = budget.deletedAt ? budget : (window ?? stored);
  return { maxUses, costLimitMicrousd, tokenLimit };
};

/** A budget that was not changed itself has the thresholds of its template. */
export const thresholdsOf = ({ budget, template }: Pick<Row, 'budget' | 'template'>): number[] =>
  (budget.inherits ? (template ?? budget) : budget).thresholds;

/** Whether holders see it. As for limits, the window says so once it has begun. */
export const isVisible = ({
  budget,
  template,
  window,
}: Pick<Row, 'budget' | 'template' | 'window'>): boolean =>
  (budget.deletedAt ? budget : (window ?? (budget.inherits ? (template ?? budget) : budget))).visible;

/** A shared budget as its account sees it. */
export async function describeBudget(redis: RedisClient, row: Row): Promise<BudgetAnswer> {
  const { budget, calendar, window } = row;
  const limits = limitsOf(row);
  return {
    id: budget.id,
    kind: budget.isTemplate ? 'template' : 'budget',
    name: budget.name,
    scope: scopeOf(budget),
    template: budget.templateId,
    max_uses: limits.maxUses,
    cost_limit: limits.costLimitMicrousd,
    tokens: limits.tokenLimit,
    thresholds: thresholdsOf(row),
    visible: isVisible(row),
    window: budget.window,
    time_zone: calendar.timeZone,
    anchor: calendar.anchor && unixSeconds(calendar.anchor),
    revision: budget.revision,
    current: window?.startsAt
      ? {
          starts_at: unixSeconds(window.startsAt),
          ends_at: window.endsAt && unixSeconds(window.endsAt),
          settled: { used: window.used, spent: window.settledMicrousd, tokens: window.usedTokens },
          live: await liveWindow(redis, window),
        }
      : null,
    created_at: unixSeconds(budget.createdAt),
    deleted_at: budget.deletedAt && unixSeconds(budget.deletedAt),
  };
}
