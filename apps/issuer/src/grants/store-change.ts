import {
  type BudgetLimits,
  changedLimits,
  type GrantChange,
  LIMIT_NAMES,
  type LimitName,
  limitKind,
  limitsIn,
  NO_SSE,
  ONE_YEAR_SECONDS,
  RefusedError,
  showLimits,
} from '@presign/schema';
import { statusOfGrant } from '@presign/schema/grant-status';
import { budgets, grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { asc, eq, inArray, type SQL } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import type { Actor, ApiKey } from '../identity/caller.ts';
import { maySeeUrl, type Viewer } from '../identity/may-see.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { checkFirstLimit } from './check-callable.ts';
import { costAbove } from './obey-account.ts';
import { signGrant } from './sign.ts';
import { storeLimits } from './store-limits.ts';

type Needs = Pick<RouteDeps, 'signingKey' | 'providers' | 'prices' | 'issuerUrl' | 'gatewayUrl' | 'now'>;

/** A change of a URL, and the API key that asks for it. */
export type AskedChange = {
  readonly by: Actor;
  readonly apiKey: Pick<ApiKey, 'limits'> & Viewer;
  readonly change: GrantChange;
};

/**
 * Stores the change of a URL whose rows are locked, with its audit entry.
 * @param all the grants of its budget
 * @returns whether it changes anything
 * @throws RefusedError `invalid_request`, `policy_forbids`, `account_limit` that names the field
 */
export async function storeChange(
  tx: Transaction,
  deps: Needs,
  { by, apiKey, change }: AskedChange,
  { grants: grant, budgets: budget }: GrantRow,
  all: readonly Sibling[],
): Promise<boolean> {
  const end = endOf(grant, change, deps.now());
  const before = limitsIn(budget);
  refuseUnfit(deps, grant, all, { change, before });
  const limits = changedLimits(before, change);
  const mostCost = apiKey.limits?.cost_limit ?? null;
  if (mostCost !== null && change.cost_limit !== undefined) refuseCost(limits.costLimitMicrousd, mostCost);
  // An API key with a policy must not raise what it issued within it.
  if (apiKey.policy !== null)
    refuseRaise(auditedFields(before, grant.expiresAt), auditedFields(limits, end.expiresAt));
  const metadata = change.metadata === undefined ? grant.metadata : change.metadata;
  const isMoved = end.expiresAt.getTime() !== grant.expiresAt.getTime();
  const isOther = JSON.stringify(metadata) !== JSON.stringify(grant.metadata);
  await recordChange(tx, by, {
    action: 'grant.changed',
    target: { kind: 'grant', id: grant.id },
    before: auditedFields(before, grant.expiresAt),
    after: { ...auditedFields(limits, end.expiresAt), ...(isOther && { metadata: 'changed' }) },
  });
  if (!isMoved && !isOther && JSON.stringify(limits) === JSON.stringify(before)) return false;
  await storeLimits(tx, budget, limits);
  if (isMoved) await tx.update(grants).set(end).where(eq(grants.budgetId, budget.id));
  if (isOther) await tx.update(grants).set({ metadata }).where(eq(grants.id, grant.id));
  return true;
}

/** A grant with everything that its change and its answer depend on. */
export type GrantRow = Awaited<ReturnType<typeof findGrants>>[number];
type Grant = GrantRow['grants'];
/** A grant of the same budget. */
type Sibling = Pick<Grant, 'server'>;

export const findGrants = (db: Database | Transaction, which: SQL | undefined) =>
  db
    .select({ grants, budgets, sessions, virtual_keys: virtualKeys })
    .from(grants)
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(which)
    .orderBy(asc(grants.id));

/**
 * Locks all grants of budgets that are locked, in the order of a revocation.
 * @returns the grants by the ids of their budgets
 */
export async function lockGrants(
  tx: Transaction,
  budgetIds: readonly string[],
): Promise<ReadonlyMap<string, readonly Sibling[]>> {
  const all = await tx
    .select({ budgetId: grants.budgetId, server: grants.server })
    .from(grants)
    .where(inArray(grants.budgetId, [...budgetIds]))
    .orderBy(asc(grants.id))
    .for('no key update');
  const ofBudget = new Map(budgetIds.map((id) => [id, [] as Sibling[]]));
  for (const grant of all) ofBudget.get(grant.budgetId)?.push(grant);
  return ofBudget;
}

/** A URL that has expired or was revoked never comes back. A spent limit can be raised. */
export function hasEnded(row: GrantRow, now: number): boolean {
  const { grants: grant, sessions: session, virtual_keys: virtualKey, budgets: budget } = row;
  const figures = { used: budget.used, spentMicrousd: budget.settledMicrousd };
  const status = statusOfGrant({ grant, session, virtualKey, budget, figures }, now);
  return status === 'expired' || status === 'revoked';
}

/**
 * The URL whose token ends when the caller wants, if the caller may see it. An extended one has a new token; one grant has one for
 * each end.
 */
export function urlOf(
  deps: Needs,
  { grants: grant, budgets: budget }: GrantRow,
  change: GrantChange,
  caller: Viewer,
): string | null {
  if (!maySeeUrl(caller, grant)) return null;
  const { method, paths, signedUntil, expiresAt } = grant;
  const signed = (signedUntil ?? expiresAt).getTime();
  if (change.expires_at === undefined || change.expires_at * 1000 !== signed) return null;
  if (method === null || paths === null) return null;
  return signGrant(deps, { ...grant, method, paths, partition: budget.partition, limits: budget }).url;
}

/** The new end of a grant, and that of its newest token. */
function endOf(grant: Grant, { expires_at: seconds }: GrantChange, now: number) {
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
  deps: Needs,
  { kind, provider, method, paths, config }: Grant,
  all: readonly Sibling[],
  { change, before }: { readonly change: GrantChange; readonly before: BudgetLimits },
): void {
  const asked = LIMIT_NAMES.filter((name) => (change[name] ?? null) !== null);
  const unfit = asked.find((name) => kind !== 'llm' && limitKind(name).urls === 'llm');
  if (unfit) throw wrongLimit(unfit, 'only a URL of an LLM provider can have it');
  const isSse = all.some(({ server }) => server?.transport === 'sse');
  if (isSse && asked.includes('concurrent_calls')) throw wrongLimit('concurrent_calls', NO_SSE);
  const served = deps.providers.get(provider);
  if (!served || !method || !paths) return;
  // A limit that the URL has can always be lowered.
  const isFirst = (name: LimitName) => asked.includes(name) && before[limitKind(name).property] === null;
  const url = { provider: served, method, paths, config };
  if (isFirst('cost_limit')) checkFirstLimit(deps, 'cost', 'cost_limit', url);
  if (isFirst('tokens_per_minute')) checkFirstLimit(deps, 'tokens', 'tokens_per_minute', url);
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
function refuseRaise(before: AuditedFields, after: AuditedFields): void {
  const most = (value: number | null) => (value === null ? Number.POSITIVE_INFINITY : value);
  const raised = (Object.keys(after) as (keyof AuditedFields)[]).find(
    (name) => most(after[name]) > most(before[name]),
  );
  if (raised === undefined) return;
  const message = `${raised}: an API key with a policy can lower and shorten what was issued, and not raise it.`;
  throw new RefusedError({ code: 'policy_forbids', param: raised, message });
}

type AuditedFields = ReturnType<typeof auditedFields>;

/** The fields of a grant that the audit log has. */
const auditedFields = (limits: BudgetLimits, expiresAt: Date) => ({
  ...showLimits(limits),
  expires_at: unixSeconds(expiresAt),
});
