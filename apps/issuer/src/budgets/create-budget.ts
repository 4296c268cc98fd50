import { randomUUID } from 'node:crypto';
import {
  ANY_VALUE,
  type BudgetRequest,
  budgetAnswer,
  budgetRequest,
  homePartition,
  RefusedError,
} from '@presign/schema';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { accounts, apiKeys, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, isNull } from 'drizzle-orm';
import { recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { storeCalendar } from './calendars.ts';
import { describeBudget, findBudget, type Scope } from './describe-budget.ts';

type Needs = Pick<RouteDeps, 'now'>;

/** `POST /v1/budgets`: URLs that are issued after the answer draw on the budget. */
export const createBudget = route(
  {
    method: 'post',
    path: '/v1/budgets',
    summary:
      'Create a budget that URLs share, or a template that makes one for each user or value of a metadata key',
    description:
      'It covers URLs that are issued after the answer. A call of such a URL passes only if the URL and each of its budgets have room.',
    scope: 'admin',
    body: budgetRequest,
    answer: budgetAnswer,
    status: 201,
    etag: true,
    errors: ['budget_conflict'],
  },
  (deps) =>
    async ({ by, body }) => {
      const id = await inTime(deps.db.transaction((tx) => store(tx, deps, by, body)));
      return describeBudget(deps.redis, await findBudget(deps, by.accountId, id));
    },
);

/** @throws RefusedError `budget_conflict`, `invalid_request` for a key that the account does not have */
async function store(tx: Transaction, deps: Needs, by: Actor, request: BudgetRequest): Promise<string> {
  const { accountId } = by;
  const partition = homePartition(accountId);
  // One creation at a time, so that two cannot pass what one may not.
  await tx.update(accounts).set({ hasBudgets: true }).where(eq(accounts.id, accountId));
  const scope = readScope(request);
  await checkOwner(tx, accountId, scope);
  await checkOthers(tx, accountId, scope, request.window);
  const { window, time_zone: timeZone, anchor, name = null, max_uses: uses = -1, thresholds } = request;
  const anchorMs = anchor === undefined ? undefined : anchor * 1000;
  const calendarId = await storeCalendar(tx, { kind: window, timeZone, anchorMs }, deps.now());
  const id = randomUUID();
  const limits = {
    maxUses: uses === -1 ? null : uses,
    costLimitMicrousd: request.cost_limit ?? null,
    tokenLimit: request.tokens ?? null,
    // Its user alone learns of it. Others could read how much the rest of them have left.
    visible: request.visible ?? scope.scope === 'external_user',
  };
  const createdAt = new Date(deps.now());
  const row = {
    id,
    accountId,
    name,
    partition,
    ...scope,
    calendarId,
    window,
    ...limits,
    thresholds,
    createdAt,
  };
  const made = await tx
    .insert(sharedBudgets)
    .values(row)
    .onConflictDoNothing()
    .returning({ id: sharedBudgets.id });
  // A URL was issued meanwhile, and its template has made a budget of its user.
  if (made.length === 0) throw await conflictWith(tx, accountId, scope, window);
  await recordChange(tx, by, { action: 'budget.created', target: { kind: 'budget', id }, after: request });
  return id;
}

function readScope({ scope }: BudgetRequest): Scope {
  const { api_key, virtual_key, external_user, metadata } = scope;
  const by = (scope: Scope['scope'], scopeValue: string, scopeKey = '') => ({
    scope,
    scopeKey,
    scopeValue,
    isTemplate: false,
  });
  const each = (scope: Scope['scope'], value: string, scopeKey = '') =>
    value === ANY_VALUE ? { ...by(scope, '', scopeKey), isTemplate: true } : by(scope, value, scopeKey);
  if (api_key !== undefined) return by('api_key', api_key);
  if (virtual_key !== undefined) return by('virtual_key', virtual_key);
  if (external_user !== undefined) return each('external_user', external_user);
  const [[key, value] = []] = Object.entries(metadata ?? {});
  return key === undefined || value === undefined ? by('account', '') : each('metadata', value, key);
}

/** A budget of a key that does not exist would cover nothing, without a sign of it. */
async function checkOwner(
  tx: Transaction,
  accountId: string,
  { scope, scopeValue: id }: Scope,
): Promise<void> {
  if (scope !== 'api_key' && scope !== 'virtual_key') return;
  const table = scope === 'api_key' ? apiKeys : virtualKeys;
  const own = and(eq(table.accountId, accountId), eq(table.id, id), isNull(table.revokedAt));
  const found = await tx.select({ id: table.id }).from(table).where(own);
  if (found.length > 0) return;
  const param = `scope.${scope}`;
  const what = scope === 'api_key' ? 'API key' : 'virtual key';
  throw new RefusedError({
    code: 'invalid_request',
    param,
    message: `${param}: this account has no ${what} with this id that is in use.`,
  });
}

const isLiveOf = (accountId: string) =>
  and(eq(sharedBudgets.accountId, accountId), isNull(sharedBudgets.deletedAt));

/** The refusal if the account has a budget with this scope and window. */
async function conflictWith(
  tx: Transaction,
  accountId: string,
  { scope, scopeKey, scopeValue, isTemplate }: Scope,
  window: BudgetRequest['window'],
): Promise<RefusedError | undefined> {
  const same = and(
    isLiveOf(accountId),
    eq(sharedBudgets.scope, scope),
    eq(sharedBudgets.scopeKey, scopeKey),
    eq(sharedBudgets.scopeValue, scopeValue),
    eq(sharedBudgets.isTemplate, isTemplate),
    eq(sharedBudgets.window, window),
  );
  const [other] = await tx.select({ id: sharedBudgets.id }).from(sharedBudgets).where(same);
  if (!other) return undefined;
  const message = `The budget ${other.id} has this scope and this window already. Change or delete it.`;
  return new RefusedError({ code: 'budget_conflict', param: 'scope', message });
}

/** A call meets at most one budget of each kind and window, and so many in all. */
const MOST_PER_CALL = 8;

async function checkOthers(
  tx: Transaction,
  accountId: string,
  asked: Scope,
  window: BudgetRequest['window'],
): Promise<void> {
  const isLive = isLiveOf(accountId);
  const conflict = await conflictWith(tx, accountId, asked, window);
  if (conflict) throw conflict;
  const kinds = await tx
    .selectDistinct({
      scope: sharedBudgets.scope,
      scopeKey: sharedBudgets.scopeKey,
      window: sharedBudgets.window,
    })
    .from(sharedBudgets)
    .where(isLive);
  const isNew = !kinds.some(
    (kind) => kind.scope === asked.scope && kind.scopeKey === asked.scopeKey && kind.window === window,
  );
  if (!isNew || kinds.length < MOST_PER_CALL) return;
  const message = `A call can draw on at most ${MOST_PER_CALL} budgets, and this account has that many kinds and windows. Delete one first.`;
  throw new RefusedError({ code: 'budget_conflict', param: 'scope', message });
}
