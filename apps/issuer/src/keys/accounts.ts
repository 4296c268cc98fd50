import { randomUUID } from 'node:crypto';
import { generateApiKey } from '@presign/crypto';
import {
  type AccountAnswer,
  type AccountChange,
  type AccountLimits,
  type AccountLimitsChange,
  type AuditAction,
  accountAnswer,
  accountChange,
  accountPage,
  accountParams,
  accountRequest,
  NO_LIMITS,
  newAccountAnswer,
  type Pending,
  pageQuery,
  RefusedError,
} from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { accounts, apiKeys, credentials, virtualKeys } from '@presign/schema/tables';
import { and, eq, getTableColumns, inArray, isNull } from 'drizzle-orm';
import { recordChange } from '../audit/audit-log.ts';
import type { Actor, IssuerDeps } from '../deps.ts';
import { applyChange, queueAccount, queueCredential } from '../grants/pending-changes.ts';
import { checkRevision, sendRevision } from '../grants/store-limits.ts';
import { inTime } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { describeApiKey, newApiKey } from './api-keys.ts';

/** `POST /v1/accounts`: creates an account with its first API key. Only this answer shows the key. */
export const createAccount = route(
  {
    method: 'post',
    path: '/v1/accounts',
    summary: 'Create an account with its first API key',
    description: 'Only this answer shows the key, which has the scope `admin` in the new account.',
    scope: 'operator',
    body: accountRequest,
    answer: newAccountAnswer,
    status: 201,
    links: { id: ['getAccount', 'changeAccount', 'suspendAccount', 'resumeAccount', 'deleteAccount'] },
    secret: { field: 'api_key.key', write: generateApiKey },
  },
  (deps) =>
    async ({ by, body: { name, limits }, secret }) =>
      inTime(
        deps.db.transaction(async (tx) => {
          const set = limits ? changedLimits(null, limits) : null;
          const row = { id: randomUUID(), name, limits: set, createdAt: new Date(deps.now()) };
          const [account] = await tx.insert(accounts).values(row).returning();
          if (!account) throw new Error('no account was written');
          const target = { kind: 'account', id: account.id } as const;
          await recordChange(tx, by, {
            action: 'account.created',
            target,
            after: termsOf(describeAccount(account)),
          });
          const first = newApiKey(deps.now(), account.id, FIRST_KEY, secret);
          await tx.insert(apiKeys).values(first.row);
          return { ...describeAccount(account), api_key: { ...describeApiKey(first.row), key: first.key } };
        }),
      ),
);

const FIRST_KEY = {
  name: 'first key',
  scopes: ['admin' as const],
  expires_in: undefined,
  requests_per_minute: undefined,
  policy: undefined,
};

/** `GET /v1/accounts`: all accounts, newest first, with suspended and deleted ones. */
export const listAccounts = route(
  {
    method: 'get',
    path: '/v1/accounts',
    summary: 'List accounts, newest first',
    scope: 'operator',
    query: pageQuery,
    answer: accountPage,
  },
  ({ db }) =>
    async ({ query }) => {
      const rows = db
        .select({ ...getTableColumns(accounts), micros: micros(accounts.createdAt) })
        .from(accounts)
        .where(after(query.cursor, accounts))
        .orderBy(...newestFirst(accounts))
        .limit(query.limit + 1);
      return pageOfRows(await inTime(rows), query.limit, describeAccount);
    },
);

/** `GET /v1/accounts/{id}`. */
export const getAccount = route(
  {
    method: 'get',
    path: '/v1/accounts/{id}',
    summary: 'Get an account',
    scope: 'operator',
    params: accountParams,
    answer: accountAnswer,
    etag: true,
    errors: ['not_found'],
  },
  ({ db }) =>
    async ({ params, c }) => {
      const [row] = await inTime(db.select().from(accounts).where(eq(accounts.id, params.id)));
      if (!row) throw new RefusedError({ code: 'not_found' });
      sendRevision(c, row);
      return describeAccount(row);
    },
);

/** `PATCH /v1/accounts/{id}`: the next request of its API keys obeys the new limits. Nothing that it has ends. */
export const changeAccount = route(
  {
    method: 'patch',
    path: '/v1/accounts/{id}',
    summary: 'Rename an account, or change its limits',
    description:
      'The next request of its API keys obeys the limits. Keys, sessions and URLs that it has stay.',
    scope: 'operator',
    params: accountParams,
    body: accountChange,
    answer: accountAnswer,
    etag: true,
    errors: ['not_found', 'account_deleted', 'revision_mismatch'],
  },
  ({ db }) =>
    async ({ by, params, body, c }) => {
      const check = (account: Account) => checkRevision(c, account);
      const changed = await inTime(db.transaction((tx) => storeTerms(tx, by, params.id, body, check)));
      sendRevision(c, changed);
      return describeAccount(changed);
    },
);

/**
 * Stores the name and the limits of an account, with the audit entry.
 * @param check refuses the account as it is
 * @throws RefusedError `not_found`, `account_deleted`
 */
export async function storeTerms(
  tx: Transaction,
  by: Actor,
  id: string,
  change: AccountChange,
  check: (account: Account) => void = () => {},
): Promise<Account> {
  const [account] = await tx.select().from(accounts).where(eq(accounts.id, id)).for('no key update');
  if (!account) throw new RefusedError({ code: 'not_found' });
  if (account.deletedAt) throw new RefusedError({ code: 'account_deleted' });
  check(account);
  const limits = change.limits ? changedLimits(account.limits, change.limits) : account.limits;
  const next = { ...account, name: change.name ?? account.name, limits };
  const [before, after] = [account, next].map((each) => termsOf(describeAccount(each)));
  const target = { kind: 'account', id: account.id } as const;
  await recordChange(tx, by, {
    action: 'account.changed',
    target,
    ...(before && { before }),
    ...(after && { after }),
  });
  if (JSON.stringify(before) === JSON.stringify(after)) return account;
  const stored = { ...next, revision: account.revision + 1 };
  await tx.update(accounts).set(stored).where(eq(accounts.id, account.id));
  return stored;
}

/** The limits of an account after a change. Fields that it leaves out stay. */
export function changedLimits(limits: AccountLimits | null, change: AccountLimitsChange): AccountLimits {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...NO_LIMITS, ...limits, ...Object.fromEntries(given) };
}

/** The fields of an account that an operator chooses. */
export const termsOf = ({ name, limits }: AccountAnswer) => ({ name, limits });

/** `POST /v1/accounts/{id}/suspend`: every gateway refuses its calls and cuts those under way, until it resumes. */
export const suspendAccount = route(
  {
    method: 'post',
    path: '/v1/accounts/{id}/suspend',
    summary: 'Suspend an account',
    description:
      'Its API keys and all its URLs are refused, and calls under way are cut within a second. Nothing is deleted.',
    scope: 'operator',
    params: accountParams,
    pending: true,
    errors: ['not_found', 'account_deleted', 'own_account'],
  },
  (deps) =>
    async ({ by, params }) =>
      change(deps, by, params.id, SUSPEND),
);

/** `POST /v1/accounts/{id}/resume`: URLs that have not ended meanwhile work again. */
export const resumeAccount = route(
  {
    method: 'post',
    path: '/v1/accounts/{id}/resume',
    summary: 'End the suspension of an account',
    scope: 'operator',
    params: accountParams,
    pending: true,
    errors: ['not_found', 'account_deleted', 'own_account'],
  },
  (deps) =>
    async ({ by, params }) =>
      change(deps, by, params.id, RESUME),
);

/** `DELETE /v1/accounts/{id}`: suspends it for good, and erases the keys of its virtual keys. Usage and ledger stay. */
export const deleteAccount = route(
  {
    method: 'delete',
    path: '/v1/accounts/{id}',
    summary: 'Delete an account',
    description:
      'As a suspension without an end. The provider keys of its virtual keys are erased. Its usage and its calls are kept.',
    scope: 'operator',
    params: accountParams,
    pending: true,
    errors: ['not_found', 'own_account'],
  },
  (deps) =>
    async ({ by, params }) =>
      change(deps, by, params.id, END),
);

type Account = typeof accounts.$inferSelect;

/** A change that every gateway must follow. */
type StateChange = {
  readonly action: AuditAction;
  readonly next: (tx: Transaction, account: Account, now: Date) => Promise<Partial<Account>>;
  /** A deleted account takes it, too, because it stays as it is. */
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
    return { suspendedAt: suspendedAt ?? now, deletedAt: deletedAt ?? now };
  },
  isRepeatable: true,
};

/** The stores and the clock of a change. */
type Deps = Pick<IssuerDeps, 'db' | 'redis' | 'now'> & Partial<Pick<IssuerDeps, 'log'>>;

/**
 * Changes an account: first in Postgres, and then in every Redis partition. A change that is repeated is written to Redis
 * again.
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

/** Deletes the virtual keys of an account, as `DELETE /v1/virtual-keys/{id}` does. A sweep takes the copies in Redis. */
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

/** An account as the operator sees it. */
export const describeAccount = (row: Account): AccountAnswer => ({
  id: row.id,
  name: row.name,
  created_at: seconds(row.createdAt),
  suspended_at: row.suspendedAt && seconds(row.suspendedAt),
  deleted_at: row.deletedAt && seconds(row.deletedAt),
  limits: { ...NO_LIMITS, ...row.limits },
  revision: row.revision,
});

const seconds = (time: Date) => time.getTime() / 1000;
