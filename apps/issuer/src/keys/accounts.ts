import { randomUUID } from 'node:crypto';
import { generateApiKey } from '@presign/crypto';
import {
  type AccountAnswer,
  type AccountChange,
  type AccountLimits,
  type AccountLimitsChange,
  accountAnswer,
  accountChange,
  accountPage,
  accountRequest,
  accountsQuery,
  idParams,
  NO_LIMITS,
  newAccountAnswer,
  type PageQuery,
  RefusedError,
} from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { eq, getTableColumns } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime, inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { readUsages } from './account-usage.ts';
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
    etag: true,
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
            after: auditedFields(describeAccount(account)),
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
    query: accountsQuery,
    answer: accountPage,
  },
  ({ db, now }) => {
    const take = inTurn();
    return async ({ query, c }) => {
      if (query.include === undefined)
        return pageOfRows(await inTime(readPage(db, query)), query.limit, describeAccount);
      return take(c, async ({ goOn }) => {
        const rows = await readPage(db, query);
        goOn();
        const ids = rows.slice(0, query.limit).map(({ id }) => id);
        const usages = await readUsages(db, ids, new Date(now()));
        return pageOfRows(rows, query.limit, (row) => ({
          ...describeAccount(row),
          usage: usages.get(row.id),
        }));
      });
    };
  },
);

const readPage = (db: Database, { cursor, limit }: PageQuery) =>
  db
    .select({ ...getTableColumns(accounts), micros: micros(accounts.createdAt) })
    .from(accounts)
    .where(after(cursor, accounts))
    .orderBy(...newestFirst(accounts))
    .limit(limit + 1);

/** `GET /v1/accounts/{id}`. */
export const getAccount = route(
  {
    method: 'get',
    path: '/v1/accounts/{id}',
    summary: 'Get an account',
    scope: 'operator',
    params: idParams,
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

/** `PATCH /v1/accounts/{id}`: the next request of its API keys obeys the new limits. Existing things do not end. */
export const changeAccount = route(
  {
    method: 'patch',
    path: '/v1/accounts/{id}',
    summary: 'Rename an account, or change its limits',
    description:
      'The next request of its API keys obeys the limits. Keys, sessions and URLs that it has stay.',
    scope: 'operator',
    params: idParams,
    body: accountChange,
    answer: accountAnswer,
    etag: true,
    errors: ['not_found', 'account_deleted', 'revision_mismatch'],
  },
  ({ db }) =>
    async ({ by, params, body, c }) => {
      const check = (account: Account) => checkRevision(c, account);
      const changed = await inTime(db.transaction((tx) => storeAccount(tx, by, params.id, body, check)));
      sendRevision(c, changed);
      return describeAccount(changed);
    },
);

/**
 * Stores the name and the limits of an account, with the audit entry.
 * @param check refuses the account as it is
 * @throws RefusedError `not_found`, `account_deleted`
 */
export async function storeAccount(
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
  const [before, after] = [account, next].map((each) => auditedFields(describeAccount(each)));
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

/** The limits of an account after a change. Omitted fields are unchanged. */
export function changedLimits(limits: AccountLimits | null, change: AccountLimitsChange): AccountLimits {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return { ...NO_LIMITS, ...limits, ...Object.fromEntries(given) };
}

/** The fields of an account that an operator chooses. */
export const auditedFields = ({ name, limits }: AccountAnswer) => ({ name, limits });

export type Account = typeof accounts.$inferSelect;

/** An account as the operator sees it. */
export const describeAccount = (row: Account): AccountAnswer => ({
  id: row.id,
  name: row.name,
  created_at: unixSeconds(row.createdAt),
  suspended_at: row.suspendedAt && unixSeconds(row.suspendedAt),
  deleted_at: row.deletedAt && unixSeconds(row.deletedAt),
  limits: { ...NO_LIMITS, ...row.limits },
  revision: row.revision,
});
