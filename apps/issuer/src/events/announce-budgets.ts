import { scopeOf } from '@presign/schema';
import { budgetCalendars, sharedBudgets } from '@presign/schema/budget-tables';
import { budgets } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, getTableColumns, inArray, isNull, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { type ChangedBudget, type Crossing, crossingsOf, markAnnounced, wasExhausted } from './levels.ts';
import { type AccountEvent, recordEvents } from './record-events.ts';

/**
 * Records `budget.threshold` for each threshold that a window of a shared budget has reached, and `budget.exhausted`. The
 * window stores the highest one, under the lock of its row, so that each is announced once.
 */
export async function announceBudgets(tx: Transaction, changed: readonly ChangedBudget[]): Promise<void> {
  const windows = changed.filter(({ sharedId }) => sharedId !== null);
  const shared = await loadShared(tx, windows);
  const crossings = windows.flatMap((window) =>
    crossingsOf(window, levelsOf(shared.get(window.sharedId ?? ''))),
  );
  await markAnnounced(tx, crossings);
  await recordEvents(tx, [...thresholds(crossings, shared), ...exhausted(crossings, shared)]);
}

type Shared = Awaited<ReturnType<typeof selectShared>>[number];

/** The levels of a budget: its thresholds, and the whole limit. A deleted budget has none. */
const levelsOf = (shared: Shared | undefined): readonly number[] =>
  shared ? [...new Set([...shared.thresholds, 100])] : [];

function thresholds(crossings: readonly Crossing[], all: ReadonlyMap<string, Shared>): AccountEvent[] {
  return crossings.flatMap(({ budget, limit, levels }) => {
    const shared = all.get(budget.sharedId ?? '');
    if (!shared) return [];
    return levels
      .filter((percent) => shared.thresholds.includes(percent))
      .map((percent) => eventOf(shared, { type: 'budget.threshold', window: budget, percent, limit }));
  });
}

/** A window is exhausted once, by the limit that is reached first. */
function exhausted(crossings: readonly Crossing[], all: ReadonlyMap<string, Shared>): AccountEvent[] {
  const full = new Map<string, AccountEvent>();
  for (const { budget, limit, levels } of crossings) {
    const shared = all.get(budget.sharedId ?? '');
    if (!shared || !levels.includes(100) || wasExhausted(budget) || full.has(budget.id)) continue;
    full.set(budget.id, eventOf(shared, { type: 'budget.exhausted', window: budget, limit }));
  }
  return [...full.values()];
}

/** Windows that one transaction announces the end of. */
const BATCH = 500;

/**
 * Records `budget.reset` for windows that have ended, once each, over any number of issuers. A window in which no URL was used has no
 * row, and no event. A window that ended before its account subscribed is marked without an event.
 * @returns whether there may be more
 */
export function announceResets(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const ended = await tx
      .update(budgets)
      .set({ resetAnnounced: true })
      .where(sql`${budgets.id} in (${ENDED})`)
      .returning(getTableColumns(budgets));
    const shared = await loadShared(tx, ended);
    const since = await subscribedSince(tx, [...shared.values()]);
    const events = ended.flatMap((window) => {
      const owner = shared.get(window.sharedId ?? '');
      const from = owner && since.get(owner.accountId);
      if (!owner || !from || !window.endsAt || window.endsAt <= from) return [];
      return eventOf(owner, { type: 'budget.reset', window, at: window.endsAt });
    });
    await recordEvents(tx, events);
    return ended.length === BATCH;
  });
}

/**
 * Ids of windows to announce, locked, and none that ended before the oldest endpoint was there. Materialized, because a subquery that
 * runs twice would lock other rows.
 */
const ENDED = sql`
  with ended as materialized (
    select id from ${budgets} as each where each.ends_at <= now() and not each.reset_announced
    and each.ends_at > (select min(active_since) from ${webhooks} where disabled_at is null)
    order by each.ends_at limit ${BATCH}
    for no key update skip locked
  ) select id from ended`;

/** Since when each of the accounts has an endpoint for `budget.reset`. */
async function subscribedSince(
  tx: Transaction,
  among: readonly Shared[],
): Promise<ReadonlyMap<string, Date>> {
  if (among.length === 0) return new Map();
  const ids = [...new Set(among.map(({ accountId }) => accountId))];
  const wants = sql`(${webhooks.events} is null or 'budget.reset' = any(${webhooks.events}))`;
  const rows = await tx
    .select({
      id: webhooks.accountId,
      since: sql`min(${webhooks.activeSince})`.mapWith(webhooks.activeSince),
    })
    .from(webhooks)
    .where(and(inArray(webhooks.accountId, ids), isNull(webhooks.disabledAt), wants))
    .groupBy(webhooks.accountId);
  return new Map(rows.map(({ id, since }) => [id, since]));
}

/** Returns the shared budgets of windows by their ids, without those that are deleted. */
async function loadShared(
  tx: Transaction,
  windows: readonly ChangedBudget[],
): Promise<ReadonlyMap<string, Shared>> {
  const ids = [...new Set(windows.flatMap(({ sharedId }) => sharedId ?? []))];
  if (ids.length === 0) return new Map();
  return new Map((await selectShared(tx, ids)).map((row) => [row.id, row]));
}

/** A budget that was not changed itself has the thresholds of its template. */
function selectShared(tx: Transaction, ids: string[]) {
  const template = alias(sharedBudgets, 'template');
  const inherited = sql`case when ${sharedBudgets.inherits} then ${template.thresholds} end`;
  return tx
    .select({
      ...getTableColumns(sharedBudgets),
      thresholds: sql`coalesce(${inherited}, ${sharedBudgets.thresholds})`.mapWith(sharedBudgets.thresholds),
      timeZone: budgetCalendars.timeZone,
    })
    .from(sharedBudgets)
    .innerJoin(budgetCalendars, eq(budgetCalendars.id, sharedBudgets.calendarId))
    .leftJoin(template, eq(template.id, sharedBudgets.templateId))
    .where(and(inArray(sharedBudgets.id, ids), isNull(sharedBudgets.deletedAt)));
}

type Happened = { readonly window: ChangedBudget } & (
  | { readonly type: 'budget.threshold'; readonly limit: Crossing['limit']; readonly percent: number }
  | { readonly type: 'budget.exhausted'; readonly limit: Crossing['limit'] }
  | { readonly type: 'budget.reset'; readonly at: Date }
);

function eventOf(shared: Shared, happened: Happened): AccountEvent {
  const { window } = happened;
  const data = {
    budget: shared.id,
    name: shared.name,
    scope: scopeOf(shared),
    template: shared.templateId,
    window: shared.window,
    starts_at: (window.startsAt ?? new Date(0)).toISOString(),
    ends_at: window.endsAt && window.endsAt.toISOString(),
    max_uses: window.maxUses,
    cost_limit: window.costLimitMicrousd,
    tokens: window.tokenLimit,
    settled: { used: window.used, spent: window.settledMicrousd, tokens: window.usedTokens },
  };
  const timestamp = (happened.type === 'budget.reset' ? happened.at : new Date()).toISOString();
  const { accountId } = shared;
  if (happened.type === 'budget.reset')
    return { accountId, event: { type: 'budget.reset', timestamp, data } };
  const { limit } = happened;
  if (happened.type === 'budget.exhausted')
    return { accountId, event: { type: 'budget.exhausted', timestamp, data: { ...data, limit } } };
  const { percent } = happened;
  return { accountId, event: { type: 'budget.threshold', timestamp, data: { ...data, limit, percent } } };
}
