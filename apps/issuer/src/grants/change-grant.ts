import {
  type ChangedGrant,
  changedGrant,
  type GrantAnswer,
  grantAnswer,
  grantChange,
  idParams,
  RefusedError,
} from '@presign/schema';
import { grants } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import type { IssuerEnv } from '../identity/caller.ts';
import { mayRead, refuseUnseen } from '../identity/may-see.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { describeOwn } from './describe-grant.ts';
import { liveFigures } from './live-figures.ts';
import { applyChange, type ChangeId, queueLimits } from './pending-changes.ts';
import {
  type AskedChange,
  findGrants,
  type GrantRow,
  hasEnded,
  lockGrants,
  storeChange,
  urlOf,
} from './store-change.ts';
import { lockBudgets } from './store-limits.ts';

type Needs = Pick<
  RouteDeps,
  'redis' | 'signingKey' | 'providers' | 'prices' | 'issuerUrl' | 'gatewayUrl' | 'now'
>;

/** `GET /v1/grants/{id}`: one grant. */
export const getGrant = route(
  {
    method: 'get',
    path: '/v1/grants/{id}',
    summary: 'Get one issued URL with its limits, uses and spending',
    description: 'The `ETag` of the answer is its revision. The URL itself is not stored.',
    scope: 'read',
    params: idParams,
    answer: grantAnswer,
    etag: true,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params, c }) =>
      answerGrant(deps, c, await inTime(findGrant(deps.db, apiKey.accountId, params.id))),
);

/** `PATCH /v1/grants/{id}`: once answered, every call on every gateway is judged by the new limits. */
export const changeGrant = route(
  {
    method: 'patch',
    path: '/v1/grants/{id}',
    summary: 'Raise, lower, extend or shorten an issued URL, or a bundle',
    description:
      'Calls under way finish. `If-Match` with the `ETag` of an earlier answer refuses the change if another one came first. A URL that has ended stays ended. Without the scope `read` the answer has only `id`, `session_id`, `expires_at`, `revision` and `url`.',
    scope: 'presign',
    params: idParams,
    body: grantChange,
    answer: changedGrant,
    etag: true,
    pending: true,
    errors: ['not_found', 'grant_ended', 'revision_mismatch', 'policy_forbids', 'account_limit'],
  },
  (deps) =>
    async ({ apiKey, by, params, body, c }) => {
      const asked = { by, id: params.id, change: body, c, apiKey };
      const stored = deps.db.transaction((tx) => store(tx, deps, asked));
      const pending = await applyChange(deps, await inTime(stored));
      if (pending) return pending;
      const row = await inTime(findGrant(deps.db, by.accountId, params.id));
      return answerChange(deps, asked, row);
    },
);

async function findGrant(db: Database | Transaction, accountId: string, id: string): Promise<GrantRow> {
  const [row] = await findGrants(db, and(eq(grants.accountId, accountId), eq(grants.id, id)));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

async function answerGrant(deps: Needs, c: Context<IssuerEnv>, row: GrantRow): Promise<GrantAnswer> {
  sendRevision(c, row.budgets);
  const live = await liveFigures(deps.redis, row.budgets);
  return describeOwn(row, live, deps.now());
}

/** The answer to a change, with what the caller may see. */
async function answerChange(deps: Needs, asked: Asked, row: GrantRow): Promise<ChangedGrant> {
  const { apiKey, change, c } = asked;
  const { id, expiresAt } = row.grants;
  const url = urlOf(deps, row, change, apiKey);
  if (mayRead(apiKey)) return { ...(await answerGrant(deps, c, row)), url };
  sendRevision(c, row.budgets);
  const { revision } = row.budgets;
  return { id, session_id: row.sessions.id, expires_at: unixSeconds(expiresAt), revision, url };
}

type Asked = AskedChange & { readonly id: string; readonly c: Context<IssuerEnv> };

/**
 * Stores a change, and queues it for Redis. A change that changes nothing is queued again, so that its caller learns when Redis
 * has it.
 */
async function store(tx: Transaction, deps: Needs, asked: Asked): Promise<ChangeId> {
  const { by, id } = asked;
  const { budgetId, ...found } = (await findGrant(tx, by.accountId, id)).grants;
  refuseUnseen(asked.apiKey, found);
  await lockBudgets(tx, [budgetId]);
  const all = await lockGrants(tx, [budgetId]);
  // Read again under the locks.
  const row = await findGrant(tx, by.accountId, id);
  if (row.grants.bundleId !== null) throw partOfBundle(row.grants.bundleId);
  checkRevision(asked.c, row.budgets);
  if (hasEnded(row, deps.now())) throw new RefusedError({ code: 'grant_ended' });
  await storeChange(tx, deps, asked, row, all.get(budgetId) ?? []);
  return queueLimits(tx, budgetId);
}

const partOfBundle = (bundleId: string) =>
  new RefusedError({
    code: 'invalid_request',
    param: 'id',
    message: `id: this URL is a server of the bundle ${bundleId}. Change the bundle: its servers share its limits.`,
  });
