import { whyUncounted } from '@presign/providers';
import {
  type BudgetLimits,
  changedGrant,
  changedLimits,
  type GrantAnswer,
  type GrantChange,
  grantAnswer,
  grantChange,
  LIMIT_NAMES,
  type LimitName,
  limitKind,
  limitsIn,
  NO_SSE,
  ONE_YEAR_SECONDS,
  RefusedError,
  showLimits,
} from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { statusOfGrant } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import { and, asc, eq } from 'drizzle-orm';
import type { Context } from 'hono';
import { z } from 'zod';
import { recordChange } from '../audit/audit-log.ts';
import type { Actor, IssuerDeps, IssuerEnv } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { costAbove } from '../issue/obey-account.ts';
import { signGrant } from '../issue/sign.ts';
import { route } from '../route.ts';
import { describeGrant } from './describe-grant.ts';
import { liveFigures } from './live-figures.ts';
import { applyChange, type ChangeId, queueLimits } from './pending-changes.ts';
import { checkRevision, lockBudget, sendRevision, storeLimits } from './store-limits.ts';

const params = z.object({ id: z.guid() });

/** `GET /v1/grants/{id}`: one grant. */
export const getGrant = route(
  {
    method: 'get',
    path: '/v1/grants/{id}',
    summary: 'Get one issued URL with its limits, uses and spending',
    description: 'The `ETag` of the answer is its revision. The URL itself is not stored.',
    scope: 'read',
    params,
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
      'Calls under way finish. `If-Match` with the `ETag` of an earlier answer refuses the change if another one came first. A URL that has ended stays ended.',
    scope: 'presign',
    params,
    body: grantChange,
    answer: changedGrant,
    etag: true,
    pending: true,
    errors: ['not_found', 'grant_ended', 'revision_mismatch', 'policy_forbids', 'account_limit'],
  },
  (deps) =>
    async ({ apiKey, by, params, body, c }) => {
      const onlyLowers = apiKey.policy !== null;
      const mostCost = apiKey.limits?.cost_limit ?? null;
      const asked = { by, id: params.id, change: body, c, onlyLowers, mostCost };
      const stored = deps.db.transaction((tx) => store(tx, deps, asked));
      const pending = await applyChange(deps, await inTime(stored));
      if (pending) return pending;
      const row = await inTime(findGrant(deps.db, by.accountId, params.id));
      return { ...(await answerGrant(deps, c, row)), url: urlOf(deps, row, body) };
    },
);

type Row = Awaited<ReturnType<typeof findGrant>>;

async function findGrant(db: Database | Transaction, accountId: string, id: string) {
  const [row] = await db
    .select({ grants, budgets, sessions, virtual_keys: virtualKeys })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(and(eq(grants.accountId, accountId), eq(grants.id, id)));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

async function answerGrant(deps: IssuerDeps, c: Context<IssuerEnv>, row: Row): Promise<GrantAnswer> {
  sendRevision(c, row.budgets);
  const live = await liveFigures(deps.redis, row.budgets);
  return { ...describeGrant(row, live, row.sessions, deps.now()), session_id: row.sessions.id };
}

/** The URL whose token ends when the caller wants. An extended one has a new token; one grant has one for each end. */
function urlOf(deps: IssuerDeps, { grants: grant, budgets: budget }: Row, change: GrantChange) {
  const { method, paths, signedUntil, expiresAt } = grant;
  const signed = (signedUntil ?? expiresAt).getTime();
  if (change.expires_at === undefined || change.expires_at * 1000 !== signed) return null;
  if (method === null || paths === null) return null;
  return signGrant(deps, { ...grant, method, paths, partition: budget.partition, limits: budget }).url;
}

type Asked = {
  readonly by: Actor;
  readonly id: string;
  readonly change: GrantChange;
  readonly c: Context<IssuerEnv>;
  /** The API key has a policy: what it issued within it must not be raised above it. */
  readonly onlyLowers: boolean;
  /** The highest cost_limit that the account allows. Null: any. */
  readonly mostCost: number | null;
};

/**
 * Stores a change with its audit entry, and queues it for Redis. A change that changes nothing is queued again, so that its
 * caller learns when Redis has it.
 */
async function store(tx: Transaction, deps: IssuerDeps, asked: Asked): Promise<ChangeId> {
  const { by, id, change, c } = asked;
  const { budgetId } = (await findGrant(tx, by.accountId, id)).grants;
  const budget = await lockBudget(tx, budgetId);
  const ofBudget = eq(grants.budgetId, budgetId);
  // All of a bundle, in the order of a revocation.
  const all = await tx
    .select({ server: grants.server })
    .from(grants)
    .where(ofBudget)
    .orderBy(asc(grants.id))
    .for('no key update');
  // Read again under the locks.
  const row = await findGrant(tx, by.accountId, id);
  const grant = row.grants;
  if (grant.bundleId !== null) throw partOfBundle(grant.bundleId);
  checkRevision(c, budget);
  refuseEnded(row, deps.now());
  const end = endOf(row, change, deps.now());
  refuseUnfit(deps, grant, all, change);
  const before = limitsIn(budget);
  const limits = changedLimits(before, change);
  if (asked.mostCost !== null && change.cost_limit !== undefined)
    refuseCost(limits.costLimitMicrousd, asked.mostCost);
  if (asked.onlyLowers) refuseRaise(termsOf(before, grant.expiresAt), termsOf(limits, end.expiresAt));
  const metadata = change.metadata === undefined ? grant.metadata : change.metadata;
  const isMoved = end.expiresAt.getTime() !== grant.expiresAt.getTime();
  const isOther = JSON.stringify(metadata) !== JSON.stringify(grant.metadata);
  const target = { kind: 'grant', id: grant.id } as const;
  await recordChange(tx, by, {
    action: 'grant.changed',
    target,
    before: termsOf(before, grant.expiresAt),
    after: { ...termsOf(limits, end.expiresAt), ...(isOther && { metadata: 'changed' }) },
  });
  if (isMoved || isOther || JSON.stringify(limits) !== JSON.stringify(before)) {
    await storeLimits(tx, budget, limits);
    if (isMoved) await tx.update(grants).set(end).where(ofBudget);
    if (isOther) await tx.update(grants).set({ metadata }).where(eq(grants.id, grant.id));
  }
  return queueLimits(tx, budgetId);
}

const partOfBundle = (bundleId: string) =>
  new RefusedError({
    code: 'invalid_request',
    param: 'id',
    message: `id: this URL is a server of the bundle ${bundleId}. Change the bundle: its servers share its limits.`,
  });

/** A URL that has expired or was revoked never comes back. A spent limit can be raised. */
function refuseEnded(
  { grants: grant, sessions: session, virtual_keys: virtualKey, budgets: budget }: Row,
  now: number,
) {
  const figures = { used: budget.used, spentMicrousd: budget.settledMicrousd };
  const status = statusOfGrant({ grant, session, virtualKey, budget, figures }, now);
  if (status === 'expired' || status === 'revoked') throw new RefusedError({ code: 'grant_ended' });
}

/** The new end of a grant, and that of its newest token. */
function endOf({ grants: grant }: Row, { expires_at: seconds }: GrantChange, now: number) {
  const signed = grant.signedUntil ?? grant.expiresAt;
  if (seconds === undefined) return { expiresAt: grant.expiresAt, signedUntil: grant.signedUntil };
  const expiresAt = new Date(seconds * 1000);
  if (expiresAt.getTime() <= now)
    throw wrongEnd('expected a time to come. DELETE /v1/grants/{id} ends a URL at once');
  if (expiresAt.getTime() > now + ONE_YEAR_SECONDS * 1000)
    throw wrongEnd('expected at most one year from now');
  if (grant.kind === 'mcp_bundle' && expiresAt > signed)
    throw wrongEnd('a bundle cannot last longer than its tokens. Issue a new bundle');
  return { expiresAt, signedUntil: expiresAt > signed ? expiresAt : signed };
}

const wrongEnd = (problem: string) =>
  new RefusedError({ code: 'invalid_request', param: 'expires_at', message: `expires_at: ${problem}.` });

/**
 * Refuses a limit that such a URL could not have been issued with.
 * @param all the grants of its budget
 * @throws RefusedError `invalid_request`
 */
function refuseUnfit(
  { providers }: IssuerDeps,
  { kind, provider, method, paths }: Row['grants'],
  all: readonly Pick<Row['grants'], 'server'>[],
  change: GrantChange,
): void {
  const asked = LIMIT_NAMES.filter((name) => (change[name] ?? null) !== null);
  const unfit = asked.find((name) => kind !== 'llm' && limitKind(name).urls === 'llm');
  if (unfit) throw wrongLimit(unfit, 'only a URL of an LLM provider can have it');
  const isSse = all.some(({ server }) => server?.transport === 'sse');
  if (isSse && asked.includes('concurrent_calls')) throw wrongLimit('concurrent_calls', NO_SSE);
  const served = providers.get(provider);
  if (!served || !method || !paths || !asked.includes('tokens_per_minute')) return;
  const dead = whyUncounted(served, { method, paths });
  if (dead) throw wrongLimit('tokens_per_minute', `${dead.reason}, so no call could pass`);
}

const wrongLimit = (param: LimitName, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/** @throws RefusedError `account_limit` */
function refuseCost(costLimitMicrousd: number | null, most: number): void {
  if (costLimitMicrousd === null || costLimitMicrousd > most) throw costAbove(most);
}

/**
 * Refuses a change by an API key with a policy that would allow more than before.
 * @throws RefusedError `policy_forbids`
 */
function refuseRaise(before: Terms, after: Terms): void {
  const most = (value: number | null) => (value === null || value === -1 ? Number.POSITIVE_INFINITY : value);
  const raised = (Object.keys(after) as (keyof Terms)[]).find(
    (name) => most(after[name]) > most(before[name]),
  );
  if (raised === undefined) return;
  const message = `${raised}: an API key with a policy can lower and shorten what was issued, and not raise it.`;
  throw new RefusedError({ code: 'policy_forbids', param: raised, message });
}

type Terms = ReturnType<typeof termsOf>;

/** The fields of a grant that the audit log has. */
const termsOf = (limits: BudgetLimits, expiresAt: Date) => ({
  ...showLimits(limits),
  expires_at: expiresAt.getTime() / 1000,
});
