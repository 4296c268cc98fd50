import { expect } from 'vitest';
import {
  type BudgetState,
  changeLimits,
  type GrantState,
  keys,
  openGrant,
  type RedisClient,
} from '../src/index.ts';
import { readGrant } from './ledger.ts';
import { latest, one, type Terms, type World } from './world.ts';

type Limits = {
  readonly maxUses: number | null;
  readonly cost: number | null;
  readonly tokens: number | null;
};

/** One thing that happens to limits: the parts of a PATCH, and an `open` that is late. */
export type TermsStep =
  | ({ readonly do: 'change' | 'open overtaken'; readonly at: number } & Limits)
  | { readonly do: 'apply'; readonly at: number }
  | { readonly do: 'apply late'; readonly at: number; readonly revision: number }
  | { readonly do: 'read'; readonly at: number }
  | { readonly do: 'open late'; readonly at: number };

const DOES: ReadonlySet<string> = new Set([
  'change',
  'open overtaken',
  'apply',
  'apply late',
  'read',
  'open late',
] satisfies TermsStep['do'][]);

export const isTermsStep = (step: { readonly do: string }): step is TermsStep => DOES.has(step.do);

/** Does one step. */
export async function takeTerms(world: World, redis: RedisClient, step: TermsStep): Promise<void> {
  if (step.do === 'read') {
    world.reads.push(read(world, one(world.grants, step.at)));
  } else if (step.do === 'open late') {
    if (world.reads.length > 0) await openLate(world, redis, one(world.reads, step.at));
  } else if (step.do === 'open overtaken') {
    const state = read(world, one(world.grants, step.at));
    for (const id of state.ref.budgetIds) {
      change(world, id, step);
      await apply(world, redis, id);
    }
    await openLate(world, redis, state);
  } else {
    const [id, { revisions }] = one([...world.terms], step.at);
    if (step.do === 'apply late') await write(world, redis, one(revisions, step.revision));
    else if (step.do === 'apply') await apply(world, redis, id);
    else change(world, id, step);
  }
}

/** Commits new limits in Postgres. */
function change(world: World, id: string, { maxUses, cost, tokens }: Limits): void {
  const { revisions } = termsOf(world, id);
  const now = revisions.at(-1) as BudgetState;
  const tokenLimit = now.window ? tokens : null;
  revisions.push({ ...now, maxUses, costLimitMicrousd: cost, tokenLimit, revision: now.revision + 1 });
}

/** Writes the limits of Postgres to Redis, and answers the PATCH. */
async function apply(world: World, redis: RedisClient, id: string): Promise<void> {
  const terms = termsOf(world, id);
  const now = terms.revisions.at(-1) as BudgetState;
  await write(world, redis, now);
  terms.answered = now.revision;
}

const write = (world: World, redis: RedisClient, budget: BudgetState) =>
  changeLimits(
    redis,
    world.partition,
    budget,
    budget.endsWithGrant ? Date.now() + 3_600_000 : budget.window?.endsMs,
  );

const read = (world: World, grant: GrantState) => readGrant(world.ledger, latest(world, grant));

/** A gateway that has read Postgres some time ago opens the grant now. */
async function openLate(world: World, redis: RedisClient, state: GrantState): Promise<void> {
  if (!world.revoked.has(state.ref.id)) await openGrant(redis, state);
}

const termsOf = (world: World, id: string): Terms => world.terms.get(id) as Terms;

/** The highest limits that a budget ever had. Null: there was none at some time. */
export function highest(
  world: World,
  id: string,
): Pick<BudgetState, 'maxUses' | 'costLimitMicrousd'> & { tokenLimit: number | null } {
  const revisions = world.terms.get(id)?.revisions ?? [];
  const most = (limits: (number | null)[]) =>
    limits.includes(null) ? null : Math.max(...limits.map((limit) => limit ?? 0));
  return {
    maxUses: most(revisions.map(({ maxUses }) => maxUses)),
    costLimitMicrousd: most(revisions.map(({ costLimitMicrousd }) => costLimitMicrousd)),
    tokenLimit: most(revisions.map(({ tokenLimit = null }) => tokenLimit)),
  };
}

/** The limits that Redis judges a budget by, which are those of one revision; undefined where it is not open. */
export async function inForce(world: World, id: string): Promise<BudgetState | undefined> {
  const redis = world.gateways[0] as RedisClient;
  const fields = ['epoch', 'revision', 'max_uses', 'cost_limit', 'token_limit'];
  const [epoch, revision, maxUses, costLimit, tokenLimit] = await redis.hmget(
    keys.budget(world.partition, id),
    ...fields,
  );
  if (!epoch || epoch !== (await redis.hget(keys.partition(world.partition), 'epoch'))) return undefined;
  const { revisions = [], answered = 0 } = world.terms.get(id) ?? {};
  const terms = revisions.find((each) => each.revision === Number(revision));
  expect({ maxUses, costLimit, tokenLimit: tokenLimit ?? '-1' }).toEqual({
    maxUses: `${terms?.maxUses ?? -1}`,
    costLimit: `${terms?.costLimitMicrousd ?? -1}`,
    tokenLimit: `${terms?.tokenLimit ?? -1}`,
  });
  expect(Number(revision), 'no revision from before an answered PATCH').toBeGreaterThanOrEqual(answered);
  return terms;
}
