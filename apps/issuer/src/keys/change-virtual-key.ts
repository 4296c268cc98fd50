import type { RedisClient } from '@presign/limits';
import {
  type BudgetLimits,
  changedLimits,
  type Pending,
  RefusedError,
  type VirtualKeyChange,
  virtualKeyAnswer,
  virtualKeyChange,
  virtualKeyParams,
} from '@presign/schema';
import { credentials, grants, virtualKeys } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { eq, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import type { Logger } from 'pino';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { recordChange } from '../events/audit-log.ts';
import { applyChange, type ChangeId, queueCredential, queueLimits } from '../grants/pending-changes.ts';
import { refuseDeadUrls } from '../grants/refuse-dead.ts';
import { lockBudget, storeLimits } from '../grants/store-limits.ts';
import type { Actor, IssuerEnv } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { describeVirtualKey, isOwnVirtualKey, loadVirtualKey } from './virtual-keys.ts';

type Needs = Pick<RouteDeps, 'providers' | 'prices' | 'now'>;

/** `PATCH /v1/virtual-keys/{id}`: once answered, every call on every gateway is judged by the new budget. */
export const changeVirtualKey = route(
  {
    method: 'patch',
    path: '/v1/virtual-keys/{id}',
    summary: 'Rename a virtual key, or change its config or its budget',
    description:
      'Once answered, the next call of each of its URLs obeys the budget. A new `config` is for URLs that are issued from then on.',
    scope: 'admin',
    params: virtualKeyParams,
    body: virtualKeyChange,
    answer: virtualKeyAnswer,
    etag: true,
    pending: true,
    errors: ['not_found', 'virtual_key_revoked', 'revision_mismatch'],
  },
  (deps) =>
    async ({ by, params, body, c }) => {
      const { id } = params;
      const stored = deps.db.transaction((tx) => storeChange(tx, deps, { by, id, change: body, c }));
      const changeId = await inTime(stored);
      const pending = changeId && (await applyChange(deps, changeId));
      if (pending) return pending;
      const row = await inTime(loadVirtualKey(deps.db, by.accountId, id));
      sendRevision(c, row.key);
      return describeVirtualKey(deps.redis, row);
    },
);

type Asked = {
  readonly by: Actor;
  readonly id: string;
  readonly change: VirtualKeyChange;
  readonly c: Context<IssuerEnv>;
};

/** Stores a change with its audit entry, and queues the limits of a budget for Redis, even if they are unchanged. */
async function storeChange(
  tx: Transaction,
  deps: Needs,
  { by, id, change, c }: Asked,
): Promise<ChangeId | undefined> {
  const own = isOwnVirtualKey(by.accountId, id);
  const [key] = await tx.select().from(virtualKeys).where(own).for('no key update');
  if (!key) throw new RefusedError({ code: 'not_found' });
  checkRevision(c, key);
  if (key.revokedAt) throw new RefusedError({ code: 'virtual_key_revoked' });
  const { name = key.name, config = key.config } = change;
  const budget = await lockBudget(tx, key.budgetId);
  const limits = changedLimits(budget, change.budget === null ? NO_LIMITS : (change.budget ?? {}));
  await refuseDead(tx, deps, key, [budget, limits]);
  const before = { name: key.name, config: key.config, budget: describeLimits(budget) };
  const after = { name, config, budget: describeLimits(limits) };
  const target = { kind: 'virtual_key', id } as const;
  await recordChange(tx, by, { action: 'virtual_key.changed', target, before, after });
  const isOther = (...[a, b]: [unknown, unknown]) => JSON.stringify(a) !== JSON.stringify(b);
  if (isOther(before, after))
    await tx
      .update(virtualKeys)
      .set({ name, config, revision: key.revision + 1 })
      .where(own);
  if (isOther(before.budget, after.budget)) await storeLimits(tx, budget, limits);
  return change.budget === undefined ? undefined : queueLimits(tx, budget.id);
}

/** Refuses a first `cost_limit` under which no call of a live URL of the key could pass. */
async function refuseDead(
  tx: Transaction,
  deps: Needs,
  { id, credentialId }: typeof virtualKeys.$inferSelect,
  [before, after]: readonly [BudgetLimits, BudgetLimits],
): Promise<void> {
  if (before.costLimitMicrousd !== null || after.costLimitMicrousd === null) return;
  // This uses the index on the credential.
  const ofKey = sql`(${grants.credentialId} = ${credentialId} and ${grants.virtualKeyId} = ${id})`;
  await refuseDeadUrls(tx, deps, ofKey, { of: 'cost', param: 'budget.cost_limit' });
}

const describeLimits = ({ maxUses, costLimitMicrousd }: BudgetLimits) => ({
  max_uses: maxUses,
  cost_limit: costLimitMicrousd,
});

const NO_LIMITS = { max_uses: null, cost_limit: null };

/**
 * `DELETE /v1/virtual-keys/{id}`: once answered, every gateway refuses all URLs issued with the key, and running calls
 * end within a second. The record of the key is kept, without the provider's key.
 */
export const deleteVirtualKey = route(
  {
    method: 'delete',
    path: '/v1/virtual-keys/{id}',
    summary: 'Delete a virtual key, and end all URLs issued with it',
    scope: 'admin',
    params: virtualKeyParams,
    pending: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      endVirtualKey(deps, by, params.id),
);

/**
 * Revokes a virtual key and erases its sealed key: first in Postgres, and then in every Redis partition. For a key that
 * is already revoked, it withdraws the copies again.
 * @returns `PENDING` when the key is revoked but some gateways may still use it
 * @throws RefusedError `not_found`
 */
export async function endVirtualKey(
  deps: {
    readonly db: Database;
    readonly redis: RedisClient;
    readonly now: () => number;
    readonly log?: Logger;
  },
  by: Actor,
  id: string,
): Promise<Pending | undefined> {
  const now = new Date(deps.now());
  const ended = deps.db.transaction(async (tx) => queueCredential(tx, await erase(tx, by, id, now)));
  return applyChange(deps, await inTime(ended));
}

async function erase(tx: Transaction, by: Actor, id: string, now: Date): Promise<string> {
  const [key] = await tx
    .select()
    .from(virtualKeys)
    .where(isOwnVirtualKey(by.accountId, id))
    .for('no key update');
  if (!key) throw new RefusedError({ code: 'not_found' });
  const before = { name: key.name, provider: key.provider, config: key.config };
  const target = { kind: 'virtual_key', id } as const;
  await recordChange(tx, by, { action: 'virtual_key.deleted', target, before });
  const { credentialId } = key;
  if (key.revokedAt) return credentialId;
  await tx.update(virtualKeys).set({ revokedAt: now }).where(eq(virtualKeys.id, id));
  await tx.update(credentials).set({ revokedAt: now, sealed: '' }).where(eq(credentials.id, credentialId));
  return credentialId;
}
