import {
  type BudgetAnswer,
  type BudgetChange,
  budgetAnswer,
  budgetChange,
  idParams,
  type Pending,
  RefusedError,
  scopeOf,
} from '@presign/schema';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { budgets, grants } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, asc, eq, gt, isNull, or, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { announceBudgets } from '../events/announce-budgets.ts';
import { recordChange } from '../events/audit-log.ts';
import { announcedUnder, type ChangedBudget } from '../events/levels.ts';
import { applyChange, type ChangeId, queueLimits } from '../grants/pending-changes.ts';
import { refuseDeadUrls } from '../grants/refuse-dead.ts';
import type { Actor, IssuerEnv } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import {
  describeBudget,
  findBudget,
  isVisible,
  type Limits,
  limitsOf,
  selectBudgets,
  thresholdsOf,
} from './describe-budget.ts';

type Needs = Pick<RouteDeps, 'providers' | 'prices' | 'now'>;

/** `PATCH /v1/budgets/{id}`: once answered, every call on every gateway is judged by the new limits. */
export const changeBudget = route(
  {
    method: 'patch',
    path: '/v1/budgets/{id}',
    summary: 'Raise, lower or rename a shared budget',
    description:
      'Calls under way finish. A change of a template holds for users who come later, and from their next window on for users whose own budget was not changed. `If-Match` with the `ETag` of an earlier answer refuses the change if another one came first.',
    scope: 'admin',
    params: idParams,
    body: budgetChange,
    answer: budgetAnswer,
    etag: true,
    pending: true,
    errors: ['not_found', 'budget_deleted', 'revision_mismatch'],
  },
  (deps) =>
    async ({ by, params, body, c }): Promise<BudgetAnswer | Pending> => {
      const stored = deps.db.transaction((tx) => change(tx, deps, { by, id: params.id, c }, body));
      const pending = await applyChange(deps, await inTime(stored));
      if (pending) return pending;
      const row = await findBudget(deps, by.accountId, params.id);
      sendRevision(c, row.budget);
      return describeBudget(deps.redis, row);
    },
);

/** `DELETE /v1/budgets/{id}`: once answered, it refuses no call. */
export const deleteBudget = route(
  {
    method: 'delete',
    path: '/v1/budgets/{id}',
    summary: 'Delete a shared budget',
    description:
      'It refuses no call from then on, and its record stays. Budgets that a deleted template has made stay, too.',
    scope: 'admin',
    params: idParams,
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) => {
      const stored = deps.db.transaction((tx) => remove(tx, deps, by, params.id));
      return applyChange(deps, await inTime(stored));
    },
);

type Asked = { readonly by: Actor; readonly id: string; readonly c: Context<IssuerEnv> };
type Settings = Limits & Pick<typeof sharedBudgets.$inferSelect, 'thresholds' | 'visible'>;

const settingsOf = (row: Parameters<typeof limitsOf>[0]): Settings => ({
  ...limitsOf(row),
  thresholds: thresholdsOf(row),
  visible: isVisible(row),
});

/** Locks a budget, so that no window of it begins with earlier limits. */
async function lock(tx: Transaction, { now }: Needs, by: Actor, id: string) {
  const own = and(eq(sharedBudgets.accountId, by.accountId), eq(sharedBudgets.id, id));
  const locked = await tx.select().from(sharedBudgets).where(own).for('no key update');
  const [row] = locked.length === 0 ? [] : await selectBudgets(tx, now()).where(own);
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

async function change(
  tx: Transaction,
  deps: Needs,
  asked: Asked,
  { name, max_uses: uses, cost_limit: cost, tokens, thresholds, visible }: BudgetChange,
): Promise<ChangeId> {
  const row = await lock(tx, deps, asked.by, asked.id);
  const { budget } = row;
  checkRevision(asked.c, budget);
  if (budget.deletedAt) throw new RefusedError({ code: 'budget_deleted' });
  const before = { name: budget.name, ...settingsOf(row) };
  const limits = {
    maxUses: uses === undefined ? before.maxUses : uses === -1 ? null : uses,
    costLimitMicrousd: cost === undefined ? before.costLimitMicrousd : cost,
    tokenLimit: tokens === undefined ? before.tokenLimit : tokens,
  };
  await refuseDead(tx, deps, row.budget, [before, limits]);
  const settings = {
    ...limits,
    thresholds: thresholds ?? before.thresholds,
    visible: visible ?? before.visible,
  };
  const after = { name: name === undefined ? budget.name : name, ...settings };
  const changesSettings = [uses, cost, tokens, thresholds, visible].some((each) => each !== undefined);
  await tx
    .update(sharedBudgets)
    .set({
      name: after.name,
      revision: budget.revision + 1,
      ...(changesSettings && { ...settings, inherits: false }),
    })
    .where(eq(sharedBudgets.id, budget.id));
  const target = { kind: 'budget', id: budget.id } as const;
  const states = { before: auditedFields(before), after: auditedFields(after) };
  await recordChange(tx, asked.by, { action: 'budget.changed', target, ...states });
  return changesSettings ? changeWindows(tx, deps, budget.id, settings) : queueLimits(tx);
}

/** Refuses a first limit of money or tokens under which no call of a live URL of the budget could pass. */
async function refuseDead(
  tx: Transaction,
  deps: Needs,
  { id, accountId, isTemplate }: typeof sharedBudgets.$inferSelect,
  [before, after]: readonly [Limits, Limits],
): Promise<void> {
  // The next window of a budget that inherits has the limits of its template.
  const ids = isTemplate
    ? sql`array(select heir.id from ${sharedBudgets} heir where heir.template_id = ${id} and heir.inherits and heir.deleted_at is null)`
    : sql`array[${id}]::uuid[]`;
  const ofBudget = sql`(${grants.accountId} = ${accountId} and ${grants.sharedBudgetIds} && ${ids})`;
  if (before.costLimitMicrousd === null && after.costLimitMicrousd !== null)
    await refuseDeadUrls(tx, deps, ofBudget, { of: 'cost', param: 'cost_limit' });
  if (before.tokenLimit === null && after.tokenLimit !== null)
    await refuseDeadUrls(tx, deps, ofBudget, { of: 'tokens', param: 'tokens' });
}

async function remove(tx: Transaction, deps: Needs, by: Actor, id: string): Promise<ChangeId> {
  const row = await lock(tx, deps, by, id);
  const { budget } = row;
  const target = { kind: 'budget', id: budget.id } as const;
  const before = { ...auditedFields({ name: budget.name, ...settingsOf(row) }), scope: scopeOf(budget) };
  await recordChange(tx, by, { action: 'budget.deleted', target, before });
  if (!budget.deletedAt)
    await tx
      .update(sharedBudgets)
      .set({ deletedAt: new Date(deps.now()), revision: budget.revision + 1 })
      .where(eq(sharedBudgets.id, budget.id));
  // URLs that were issued earlier still draw on its window, which limits nothing any more.
  return changeWindows(tx, deps, budget.id, { ...NO_LIMITS, thresholds: [], visible: false });
}

const NO_LIMITS: Limits = { maxUses: null, costLimitMicrousd: null, tokenLimit: null };

/** The clock of Redis may be behind, so that the last window still counts there. */
const BEHIND_MS = 3_600_000;

/**
 * Stores the next revision of the limits of all windows that may count calls, and queues them for Redis. Thresholds that a window
 * has reached already are announced by the same transaction, and those that it has left behind may be reached again.
 */
async function changeWindows(
  tx: Transaction,
  { now }: Needs,
  sharedId: string,
  { thresholds, visible, ...limits }: Settings,
): Promise<ChangeId> {
  const since = new Date(now() - BEHIND_MS);
  const counting = and(eq(budgets.sharedId, sharedId), or(isNull(budgets.endsAt), gt(budgets.endsAt, since)));
  const locked = await tx
    .select()
    .from(budgets)
    .where(counting)
    .orderBy(asc(budgets.id))
    .for('no key update');
  const changed: ChangedBudget[] = [];
  for (const window of locked) {
    const announced = announcedUnder(window, limits, [...thresholds, 100]);
    const revision = window.revision + 1;
    await tx
      .update(budgets)
      .set({ ...limits, visible, revision, ...announced })
      .where(eq(budgets.id, window.id));
    if (!window.endsAt || window.endsAt > new Date(now()))
      changed.push({ ...window, ...limits, ...announced });
  }
  await announceBudgets(tx, changed);
  return queueLimits(tx, ...locked.map(({ id }) => id));
}

/** The fields of a budget that the audit log has. */
const auditedFields = ({
  name,
  maxUses,
  costLimitMicrousd,
  tokenLimit,
  thresholds,
  visible,
}: Settings & { readonly name: string | null }) => ({
  name,
  max_uses: maxUses,
  cost_limit: costLimitMicrousd,
  tokens: tokenLimit,
  thresholds,
  visible,
});
