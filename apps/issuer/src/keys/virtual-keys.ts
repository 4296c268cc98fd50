import { randomUUID } from 'node:crypto';
import { seal } from '@presign/crypto';
import type { RedisClient } from '@presign/limits';
import {
  type Budget,
  homePartition,
  pageQuery,
  RefusedError,
  type VirtualKeyAnswer,
  type VirtualKeyRequest,
  virtualKeyAnswer,
  virtualKeyPage,
  virtualKeyParams,
  virtualKeyRequest,
} from '@presign/schema';
import { budgets, credentialContext, credentials, virtualKeys } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq } from 'drizzle-orm';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import { checkKey, findProvider } from '../grants/check-callable.ts';
import { liveFigures } from '../grants/live-figures.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

/** `POST /v1/virtual-keys`: stores a provider's key under an id with which callers issue URLs. */
export const createVirtualKey = route(
  {
    method: 'post',
    path: '/v1/virtual-keys',
    summary: "Store a provider's key under an id of its own",
    scope: 'admin',
    body: virtualKeyRequest,
    answer: virtualKeyAnswer,
    status: 201,
    etag: true,
    links: { id: ['getVirtualKey', 'changeVirtualKey', 'rotateVirtualKey', 'deleteVirtualKey'] },
    errors: ['unknown_provider'],
  },
  (deps) =>
    async ({ by, body }) => {
      const id = await inTime(storeVirtualKey(deps, by, body));
      return describeVirtualKey(deps.redis, await inTime(loadVirtualKey(deps.db, by.accountId, id)));
    },
);

/** `GET /v1/virtual-keys`: the account's virtual keys, newest first, with deleted ones. */
export const listVirtualKeys = route(
  {
    method: 'get',
    path: '/v1/virtual-keys',
    summary: 'List virtual keys, newest first, with the use and spending of their budgets',
    scope: 'read',
    query: pageQuery,
    answer: virtualKeyPage,
  },
  ({ db, redis }) =>
    async ({ apiKey, query }) => {
      const rows = selectVirtualKeys(db)
        .where(and(eq(virtualKeys.accountId, apiKey.accountId), after(query.cursor, virtualKeys)))
        .orderBy(...newestFirst(virtualKeys))
        .limit(query.limit + 1);
      const page = pageOfRows(await inTime(rows), query.limit, (row) => row);
      const data = await Promise.all(page.data.map((row) => describeVirtualKey(redis, row)));
      return { data, next_cursor: page.next_cursor };
    },
);

/** `GET /v1/virtual-keys/{id}`. */
export const getVirtualKey = route(
  {
    method: 'get',
    path: '/v1/virtual-keys/{id}',
    summary: 'Get a virtual key, with the use and spending of its budget',
    scope: 'read',
    params: virtualKeyParams,
    answer: virtualKeyAnswer,
    etag: true,
    errors: ['not_found'],
  },
  ({ db, redis }) =>
    async ({ apiKey, params, c }) => {
      const row = await inTime(loadVirtualKey(db, apiKey.accountId, params.id));
      sendRevision(c, row.key);
      return describeVirtualKey(redis, row);
    },
);

type Deps = Pick<RouteDeps, 'db' | 'encryptionKeys' | 'providers' | 'now'>;

/**
 * Writes a virtual key with its credential and its budget, which counts from the first URL on, so that limits can be set later.
 * @returns its id
 * @throws RefusedError `unknown_provider`, `invalid_request`
 */
export async function storeVirtualKey(
  { db, encryptionKeys, providers, now }: Deps,
  by: Actor,
  { provider, name, key, config, budget }: VirtualKeyRequest,
): Promise<string> {
  const { accountId } = by;
  checkKey(findProvider(providers, provider), 'key', key);
  const id = `vk_${randomUUID()}`;
  const credentialId = randomUUID();
  // Sealed before it leaves this process, so that neither Postgres nor Redis ever has the key in plain text.
  const sealed = seal(encryptionKeys, key, credentialContext(accountId, credentialId));
  const budgetId = randomUUID();
  const createdAt = new Date(now());
  await db.transaction(async (tx) => {
    await tx.insert(credentials).values({ id: credentialId, accountId, sealed, createdAt });
    await tx.insert(budgets).values({ id: budgetId, ...limitsOf(accountId, budget) });
    const row = { id, accountId, name, provider, credentialId, config: config ?? null, budgetId, createdAt };
    await tx.insert(virtualKeys).values(row);
    const target = { kind: 'virtual_key', id } as const;
    const after = { name, provider, config: config ?? null, budget: budget ?? null };
    await recordChange(tx, by, { action: 'virtual_key.created', target, after });
  });
  return id;
}

/** All grants of the key use the partition of its budget, so that one script checks all their budgets. */
const limitsOf = (accountId: string, budget: VirtualKeyRequest['budget']) => ({
  partition: homePartition(accountId),
  maxUses: budget?.max_uses === undefined || budget.max_uses === -1 ? null : budget.max_uses,
  costLimitMicrousd: budget?.cost_limit ?? null,
});

/** A virtual key with the version of its credential and its budget. */
export type VirtualKeyRow = {
  readonly key: typeof virtualKeys.$inferSelect;
  readonly version: number;
  readonly budget: typeof budgets.$inferSelect;
};

/** A virtual key as its account sees it, without the provider's key. */
export async function describeVirtualKey(
  redis: RedisClient,
  { key, version, budget }: VirtualKeyRow,
): Promise<VirtualKeyAnswer> {
  return {
    id: key.id,
    name: key.name,
    provider: key.provider,
    config: key.config,
    budget: await describeBudget(redis, budget),
    version,
    revision: key.revision,
    created_at: unixSeconds(key.createdAt),
    revoked_at: key.revokedAt && unixSeconds(key.revokedAt),
  };
}

/**
 * A virtual key of the account.
 * @throws RefusedError `not_found`
 */
export async function loadVirtualKey(db: Database, accountId: string, id: string): Promise<VirtualKeyRow> {
  const [row] = await selectVirtualKeys(db).where(isOwnVirtualKey(accountId, id));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

/** Selects rows of virtual keys, each with its position in a list. */
export const selectVirtualKeys = (db: Database | Transaction) =>
  db
    .select({
      id: virtualKeys.id,
      micros: micros(virtualKeys.createdAt),
      key: virtualKeys,
      version: credentials.version,
      budget: budgets,
    })
    .from(virtualKeys)
    .innerJoin(credentials, eq(credentials.id, virtualKeys.credentialId))
    .innerJoin(budgets, eq(budgets.id, virtualKeys.budgetId));

/** The condition that a virtual key belongs to an account. */
export const isOwnVirtualKey = (accountId: string, id: string) =>
  and(eq(virtualKeys.accountId, accountId), eq(virtualKeys.id, id));

async function describeBudget(redis: RedisClient, budget: typeof budgets.$inferSelect): Promise<Budget> {
  return {
    max_uses: budget.maxUses,
    cost_limit: budget.costLimitMicrousd,
    settled: { used: budget.used, spent: budget.settledMicrousd },
    live: await liveFigures(redis, budget),
  };
}
