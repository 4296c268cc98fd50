import { expect } from 'vitest';
import {
  type BudgetState,
  changeLimits,
  type GrantState,
  keys,
  loadGrant,
  moveEnd,
  type RedisClient,
  readEnd,
  setAccountState,
} from '../src/index.ts';
import { newBudget } from './grant.ts';
import { readGrant } from './ledger.ts';
import {
  endsOf,
  type History,
  latest,
  newHistory,
  one,
  type Revision,
  sibling,
  type World,
} from './world.ts';

type Limits = {
  readonly maxUses: number | null;
  readonly cost: number | null;
  readonly tokens: number | null;
};

type BudgetStep =
  | ({ readonly do: 'change'; readonly at: number } & Limits)
  | { readonly do: 'apply'; readonly at: number }
  | { readonly do: 'apply limits alone' | 'apply end alone'; readonly at: number }
  | { readonly do: 'apply late'; readonly at: number; readonly revision: number };

/** Where a PATCH moves the end of a grant: before or after the end that its token has, or so near that it passes at once. */
type End = 'before' | 'after' | 'now';

/**
 * One change of grants, budgets and accounts: the parts of a PATCH, a `load` that is late, a new grant or a new shared budget, the end of a
 * shared budget, and the parts of a suspension.
 */
export type ChangeStep =
  | BudgetStep
  | ({ readonly do: 'load overtaken'; readonly at: number } & Limits)
  | { readonly do: 'move end'; readonly at: number; readonly end: End }
  | { readonly do: 'issue' | 'create budget' | 'delete budget' | 'suspend'; readonly at: number }
  | { readonly do: 'apply suspension'; readonly at: number; readonly isLate: boolean }
  | { readonly do: 'read'; readonly at: number }
  | { readonly do: 'load late'; readonly at: number };

const DOES: ReadonlySet<string> = new Set([
  'change',
  'load overtaken',
  'move end',
  'apply',
  'apply limits alone',
  'apply end alone',
  'apply late',
  'read',
  'load late',
  'issue',
  'create budget',
  'delete budget',
  'suspend',
  'apply suspension',
] satisfies ChangeStep['do'][]);

export const isChangeStep = (step: { readonly do: string }): step is ChangeStep => DOES.has(step.do);

/** Does one step. */
export async function takeChange(world: World, redis: RedisClient, step: ChangeStep): Promise<void> {
  switch (step.do) {
    case 'read':
      world.reads.push(read(world, one(world.grants, step.at)));
      return;
    case 'load late':
      if (world.reads.length > 0) await loadLate(world, redis, one(world.reads, step.at));
      return;
    case 'load overtaken':
      return loadOvertaken(world, redis, step);
    case 'move end':
      return move(world, one(world.grants, step.at), step.end);
    case 'issue':
      return issue(world);
    case 'create budget':
      return create(world);
    case 'delete budget':
      return deleteShared(world, step.at);
    case 'suspend':
      world.account.suspensions.push(!world.account.suspensions.at(-1));
      return;
    case 'apply suspension':
      return applySuspension(world, redis, step.isLate ? step.at : -1);
    default:
      return takeBudget(world, redis, step);
  }
}

async function loadOvertaken(world: World, redis: RedisClient, step: { at: number } & Limits): Promise<void> {
  const state = read(world, one(world.grants, step.at));
  for (const id of state.ref.budgetIds) {
    change(world, id, step);
    await apply(world, redis, id);
  }
  await loadLate(world, redis, state);
}

async function takeBudget(world: World, redis: RedisClient, step: BudgetStep): Promise<void> {
  const [id, { revisions }] = one([...world.histories], step.at);
  const now = revisions.at(-1) as Revision;
  if (step.do === 'change') change(world, id, step);
  else if (step.do === 'apply') await apply(world, redis, id);
  else if (step.do === 'apply limits alone') await writeBudget(world, redis, now);
  else if (step.do === 'apply end alone') await writeEnd(world, redis, now);
  else if (step.do === 'apply late') await write(world, redis, one(revisions, step.revision));
}

/** Commits new limits in Postgres. */
function change(world: World, id: string, { maxUses, cost, tokens }: Limits): void {
  const now = lastOf(world, id);
  if (isOver(now) || world.deleted.has(id)) return;
  const tokenLimit = now.window ? tokens : null;
  commit(world, { ...now, maxUses, costLimitMicrousd: cost, tokenLimit });
}

/** Commits the end of a grant in Postgres. One that has passed is not moved any more, and neither is that of a revoked grant. */
function move(world: World, { ref, expiresAtMs }: GrantState, end: End): void {
  const now = lastOf(world, ref.budgetIds[0] ?? '');
  if (isOver(now) || world.revoked.has(ref.id)) return;
  const moved = {
    before: expiresAtMs - 600_000,
    after: expiresAtMs + 3_600_000,
    now: Date.now() - 1,
  };
  commit(world, { ...now, expiresAtMs: moved[end] });
}

const isOver = ({ expiresAtMs = Infinity }: Revision) => expiresAtMs <= Date.now();
const lastOf = (world: World, id: string) => historyOf(world, id).revisions.at(-1) as Revision;
const commit = (world: World, changed: Revision) =>
  historyOf(world, changed.id).revisions.push({ ...changed, revision: changed.revision + 1 });

/** Issues a URL, while calls of others run. It draws on the budgets that there are. */
function issue(world: World): void {
  const window = world.isDeleted ? undefined : world.windows[world.present];
  const shared = [...world.lasting, ...(window ? [window] : [])];
  const grant = sibling(world.grants[0] as GrantState, [newBudget({ maxUses: 5 }), ...shared]);
  world.histories.set(...newHistory(grant.budgets[0] as BudgetState));
  world.grants.push(grant);
}

/** Creates a shared budget, while calls run. It covers the URLs that are issued after it. */
function create(world: World): void {
  const budget = newBudget({ maxUses: 3, costLimitMicrousd: 600, endsWithGrant: false });
  world.histories.set(...newHistory(budget));
  world.lasting.push(budget);
}

/** Deletes a shared budget, while calls run: it loses its limits, and later URLs do not draw on it. */
function deleteShared(world: World, at: number): void {
  const present = world.windows[world.present];
  const budget = one([...world.lasting, ...(present && !world.isDeleted ? [present] : [])], at);
  if (!budget) return;
  const now = lastOf(world, budget.id);
  commit(world, { ...now, maxUses: null, costLimitMicrousd: null, tokenLimit: null });
  world.deleted.add(budget.id);
  const place = world.lasting.indexOf(budget);
  if (place >= 0) world.lasting.splice(place, 1);
  else world.isDeleted = true;
}

/** Writes the state of the account to Redis: that of Postgres, and answers the request; or an earlier one, which is late. */
async function applySuspension(world: World, redis: RedisClient, late: number): Promise<void> {
  const { suspensions } = world.account;
  const version = late < 0 ? suspensions.length - 1 : late % suspensions.length;
  const id = world.grants[0]?.ref.accountId ?? '';
  const state = { id, version, isSuspended: suspensions[version] ?? false };
  await setAccountState(redis, state, [world.partition]);
  world.account.answered = Math.max(world.account.answered, version);
}

/** Writes the limits and the end of Postgres to Redis, and answers the PATCH. */
async function apply(world: World, redis: RedisClient, id: string): Promise<void> {
  const now = lastOf(world, id);
  await write(world, redis, now);
  historyOf(world, id).answered = now.revision;
}

async function write(world: World, redis: RedisClient, revision: Revision): Promise<void> {
  await writeBudget(world, redis, revision);
  await writeEnd(world, redis, revision);
}

async function writeBudget(world: World, redis: RedisClient, budget: Revision): Promise<void> {
  const own = world.grants.find(({ ref }) => ref.budgetIds[0] === budget.id);
  const ends = own ? signedUntil(world, own) : budget.window?.endsMs;
  await changeLimits(redis, world.partition, budget, budget.endsWithGrant ? ends : budget.window?.endsMs);
}

async function writeEnd(world: World, redis: RedisClient, { id, revision, expiresAtMs }: Revision) {
  const grant = world.grants.find(({ ref }) => ref.budgetIds[0] === id);
  if (!grant || expiresAtMs === undefined) return;
  const { credentialId, id: grantId } = grant.ref;
  const signedUntilMs = signedUntil(world, grant);
  await moveEnd(redis, world.partition, { id: grantId, credentialId, revision, expiresAtMs, signedUntilMs });
}

/** When the newest token of a grant ends. */
const signedUntil = (world: World, grant: GrantState): number =>
  Math.max(grant.expiresAtMs, ...endsOf(world, grant).map((end) => end ?? 0));

const read = (world: World, grant: GrantState) => readGrant(world.ledger, latest(world, grant));

/** A gateway that has read Postgres some time ago loads the grant now. */
async function loadLate(world: World, redis: RedisClient, state: GrantState): Promise<void> {
  if (!world.revoked.has(state.ref.id)) await loadGrant(redis, state);
}

const historyOf = (world: World, id: string): History => world.histories.get(id) as History;

/** The highest limits that a budget ever had. Null: there was none at some time. */
export function highest(
  world: World,
  id: string,
): Pick<BudgetState, 'maxUses' | 'costLimitMicrousd'> & { tokenLimit: number | null } {
  const revisions = world.histories.get(id)?.revisions ?? [];
  const most = (limits: (number | null)[]) =>
    limits.includes(null) ? null : Math.max(...limits.map((limit) => limit ?? 0));
  return {
    maxUses: most(revisions.map(({ maxUses }) => maxUses)),
    costLimitMicrousd: most(revisions.map(({ costLimitMicrousd }) => costLimitMicrousd)),
    tokenLimit: most(revisions.map(({ tokenLimit = null }) => tokenLimit)),
  };
}

/** The limits that Redis judges a budget by, which are those of one revision; undefined where it is not loaded. */
export async function inForce(world: World, id: string): Promise<BudgetState | undefined> {
  const redis = world.gateways[0] as RedisClient;
  const fields = ['epoch', 'revision', 'max_uses', 'cost_limit', 'token_limit'];
  const [now, [epoch, revision, maxUses, costLimit, tokenLimit] = []] = await Promise.all([
    redis.hget(keys.partition(world.partition), 'epoch'),
    redis.hmget(keys.budget(world.partition, id), ...fields),
  ]);
  if (!epoch || epoch !== now) return undefined;
  const { revisions = [], answered = 0 } = world.histories.get(id) ?? {};
  const known = revisions.find((each) => each.revision === Number(revision));
  expect({ maxUses, costLimit, tokenLimit: tokenLimit ?? '-1' }).toEqual({
    maxUses: `${known?.maxUses ?? -1}`,
    costLimit: `${known?.costLimitMicrousd ?? -1}`,
    tokenLimit: `${known?.tokenLimit ?? -1}`,
  });
  expect(Number(revision), 'no revision from before an answered PATCH').toBeGreaterThanOrEqual(answered);
  return known;
}

/** Whether the grant has ended by Redis, whose end is that of one revision, and not of one from before an answered PATCH. */
export async function hasEnded(world: World, { ref }: GrantState): Promise<boolean> {
  const redis = world.gateways[0] as RedisClient;
  const { revisions, answered } = historyOf(world, ref.budgetIds[0] ?? '');
  const revision = Number(await redis.hget(keys.grant(world.partition, ref.id), 'revision'));
  const ends = await readEnd(redis, ref);
  // A PATCH of limits alone does not write the end of a grant that was never moved.
  const wasMoved = revisions.find((each) => each.revision === answered)?.expiresAtMs !== undefined;
  if (wasMoved) expect(revision, 'no end from before an answered PATCH').toBeGreaterThanOrEqual(answered);
  expect(ends).toBe(revisions.find((each) => each.revision === revision)?.expiresAtMs);
  return (ends ?? Infinity) <= Date.now();
}

/** Whether Redis has the account as suspended, which it was after its last change that was answered, or a later one. */
export async function isSuspended(world: World): Promise<boolean> {
  const redis = world.gateways[0] as RedisClient;
  const key = keys.account(world.partition, world.grants[0]?.ref.accountId ?? '');
  const [version = null, suspended] = await redis.hmget(key, 'version', 'suspended');
  const { suspensions, answered } = world.account;
  expect(Number(version), 'no state from before an answered request').toBeGreaterThanOrEqual(answered);
  expect(suspended === '1').toBe(suspensions[Number(version)]);
  return suspended === '1';
}
