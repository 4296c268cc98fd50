import type { RedisClient } from '@presign/limits';
import { type AuditAction, idParams, type Pending, RefusedError } from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { accounts, credentials, virtualKeys } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Logger } from 'pino';
import { recordChange } from '../events/audit-log.ts';
import { applyChange, queueAccount, queueCredential } from '../grants/pending-changes.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { type Account, describeAccount } from './accounts.ts';

/** `POST /v1/accounts/{id}/suspend`: every gateway refuses its calls and cuts running ones, until it resumes. */
export const suspendAccount = route(
  {
    method: 'post',
    path: '/v1/accounts/{id}/suspend',
    summary: 'Suspend an account',
    description:
      'Its API keys and all its URLs are refused, and calls under way are cut within a second. Nothing is deleted.',
    scope: 'operator',
    params: idParams,
    pending: true,
    errors: ['not_found', 'account_deleted', 'own_account'],
  },
  (deps) =>
    async ({ by, params }) =>
      change(deps, by, params.id, SUSPEND),
);

/** `POST /v1/accounts/{id}/resume`: URLs that have not ended in the meantime work again. */
export const resumeAccount = route(
  {
    method: 'post',
    path: '/v1/accounts/{id}/resume',
    summary: 'End the suspension of an account',
    scope: 'operator',
    params: idParams,
    pending: true,
    errors: ['not_found', 'account_deleted', 'own_account'],
  },
  (deps) =>
    async ({ by, params }) =>
      change(deps, by, params.id, RESUME),
);

/** `DELETE /v1/accounts/{id}`: suspends it permanently, and erases its secrets and its alerts. Usage and ledger are kept. */
export const deleteAccount = route(
  {
    method: 'delete',
    path: '/v1/accounts/{id}',
    summary: 'Delete an account',
    description:
      'As a suspension without an end. The provider keys of its virtual keys and the secrets of its webhook endpoints are erased, and its alerts deleted. Its usage and its calls are kept.',
    scope: 'operator',
    params: idParams,
    pending: true,
    errors: ['not_found', 'own_account'],
  },
  (deps) =>
    async ({ by, params }) =>
      change(deps, by, params.id, END),
);

/** A change that every gateway must follow. */
type StateChange = {
  readonly action: AuditAction;
  readonly next: (tx: Transaction, account: Account, now: Date) => Promise<Partial<Account>>;
  /** A deleted account accepts it, too, because nothing changes. */
  readonly isRepeatable?: true;
};

export const SUSPEND: StateChange = {
  action: 'account.suspended',
  next: async (_tx, { suspendedAt }, now) => ({ suspendedAt: suspendedAt ?? now }),
};

export const RESUME: StateChange = { action: 'account.resumed', next: async () => ({ suspendedAt: null }) };

export const END: StateChange = {
  action: 'account.deleted',
  next: async (tx, { id, suspendedAt, deletedAt }, now) => {
    await eraseVirtualKeys(tx, id, now);
    await endWebhooks(tx, id, now);
    return { suspendedAt: suspendedAt ?? now, deletedAt: deletedAt ?? now };
  },
  isRepeatable: true,
};

/** The stores and the clock of a change. */
type Deps = {
  readonly db: Database;
  readonly redis: RedisClient;
  readonly now: () => number;
  readonly log?: Logger;
};

/**
 * Changes an account: first in Postgres, and then in every Redis partition. A repeated change is written to Redis again.
 * @returns undefined once every gateway has it, else `PENDING`
 * @throws RefusedError `not_found`; `account_deleted`, unless it is deleted again; `own_account`
 */
export async function change(
  deps: Deps,
  by: Actor,
  id: string,
  { action, next, isRepeatable }: StateChange,
): Promise<Pending | undefined> {
  const now = new Date(deps.now());
  const stored = deps.db.transaction(async (tx) => {
    const [account] = await tx.select().from(accounts).where(eq(accounts.id, id)).for('no key update');
    if (!account) throw new RefusedError({ code: 'not_found' });
    if (account.deletedAt && !isRepeatable) throw new RefusedError({ code: 'account_deleted' });
    if (account.id === by.accountId) throw new RefusedError({ code: 'own_account' });
    const set = { ...(await next(tx, account, now)), version: account.version + 1 };
    const [changed = account] = await tx
      .update(accounts)
      .set(set)
      .where(eq(accounts.id, account.id))
      .returning();
    const [before, after] = [describeAccount(account), describeAccount(changed)];
    await recordChange(tx, by, { action, target: { kind: 'account', id: account.id }, before, after });
    return queueAccount(tx, account.id);
  });
  return applyChange(deps, await inTime(stored));
}

/** Deletes the virtual keys of an account, as `DELETE /v1/virtual-keys/{id}` does. A sweep removes the copies in Redis. */
async function eraseVirtualKeys(tx: Transaction, accountId: string, now: Date): Promise<void> {
  const ended = await tx
    .update(virtualKeys)
    .set({ revokedAt: now })
    .where(and(eq(virtualKeys.accountId, accountId), isNull(virtualKeys.revokedAt)))
    .returning({ id: virtualKeys.credentialId });
  const ids = ended.map(({ id }) => id);
  if (ids.length === 0) return;
  await tx.update(credentials).set({ revokedAt: now, sealed: '' }).where(inArray(credentials.id, ids));
  for (const id of ids) await queueCredential(tx, id);
}

/**
 * Deletes the alerts of an account, disables its endpoints, and erases their secrets, because anyone with the URL of a Slack endpoint can
 * post there.
 */
async function endWebhooks(tx: Transaction, accountId: string, now: Date): Promise<void> {
  // Locks alerts before endpoints, in the same order as an evaluation.
  await tx.delete(alerts).where(eq(alerts.accountId, accountId));
  await tx
    .update(webhooks)
    .set({
      ...{ sealed: '', previousSealed: null, previousUntil: null },
      disabledAt: sql`coalesce(${webhooks.disabledAt}, ${now.toISOString()}::timestamptz)`,
    })
    .where(eq(webhooks.accountId, accountId));
}
