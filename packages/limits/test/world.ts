import {
  type Admission,
  type BudgetState,
  findGrant,
  type GrantState,
  loadGrant,
  type RedisClient,
  seeder,
} from '../src/index.ts';
import { fromSeed, newBudget, newGrant, seedOf } from './grant.ts';
import { type Ledger, newLedger, readGrant } from './ledger.ts';
import { openPartition } from './redis.ts';
import type { Snapshot } from './snapshot.ts';

/** A call as its gateway and an all-seeing observer know it. */
export type Call = {
  readonly holdId: string;
  readonly grant: GrantState;
  readonly epoch: string;
  readonly uses: number;
  hold: number;
  /** The most tokens that it can use. */
  readonly tokens: number;
  /** The uses, cost and tokens that its gateway reports, once it has reported them. `usedTokens`: before they are bounded. */
  said?: { uses: number; cost: number; tokens: number; usedTokens: number | undefined };
  /** The final result. */
  is: 'live' | 'said' | 'full';
  leaseEnded: boolean;
  /** How often it was counted again, as a call of an epoch whose holds may be lost, until the ledger has it. */
  repeats: number;
};

/** A charged call as its gateway and an all-seeing observer know it. */
export type Charged = {
  readonly chargeId: string;
  readonly refundId: string;
  /** With the budgets that it was charged to. */
  grant: GrantState;
  readonly uses: number;
  readonly cost: number;
  /** Names it in the ledger, its refund too where its gateway knows no other. */
  readonly record: string;
  /** Whether its gateway heard an answer, or is to forestall it. */
  readonly heard: boolean;
  /** Its calls under way while their number is limited, until it has left or its lease has ended. */
  places: number;
  leaseEnded: boolean;
  /** Whether it ever counted. */
  counted: boolean;
  /** Whether its gateway has let go of it: a copy of it that arrives now is void. */
  void: boolean;
  /** The uses and cost that its gateway wants to give back, once it has said so. */
  said?: { uses: number; cost: number };
  /** The uses and cost that were given back. */
  back?: { uses: number; cost: number };
};

/** One revision of a budget, and of the end of the grant whose own budget it is. Undefined: the end was never moved. */
export type Revision = BudgetState & { readonly expiresAtMs?: number | undefined };

/** Every revision of a budget, as Postgres had them, and the last one that a PATCH was answered for. */
export type History = { readonly revisions: Revision[]; answered: number };

/** Whether the account was suspended after each of its changes, and the last change that was answered. */
export type Account = { readonly suspensions: boolean[]; answered: number };

/** A partition, its Postgres, its first four grants (two share a budget, all share one with windows), and what happened. */
export type World = {
  readonly gateways: readonly RedisClient[];
  readonly partition: number;
  readonly ledger: Ledger;
  readonly grants: GrantState[];
  /** Whose grants these are. */
  readonly account: Account;
  /** Budgets for good that new grants draw on, in addition to the present window. */
  readonly lasting: BudgetState[];
  /** The revisions of each budget, by its id. */
  readonly histories: Map<string, History>;
  /** The windows of a budget that grants share, in their order. */
  readonly windows: BudgetState[];
  /** Which of them counts now. Beyond the last one: that budget was deleted, and its last window is over. */
  present: number;
  /** Whether that budget was deleted. */
  isDeleted: boolean;
  /** Deleted budgets and windows. Their limits do not change any more. */
  readonly deleted: Set<string>;
  /** The grants as each gateway remembers them. */
  readonly known: ReadonlyMap<RedisClient, Map<string, GrantState>>;
  /** Grants as gateways have read them in Postgres, and may load late. */
  readonly reads: GrantState[];
  readonly revoked: Set<string>;
  readonly calls: Call[];
  readonly charges: Charged[];
  /**
   * Calls and charges that a loss took from Redis before the ledger had them, and charges given back again because
   * a loss took the first time.
   */
  readonly lost: Set<Call | Charged>;
  saved: { readonly snapshot: Snapshot; readonly made: ReadonlySet<Call | Charged> } | undefined;
};

export async function newWorld(gateways: readonly RedisClient[]): Promise<World> {
  const partition = await openPartition(one(gateways, 0));
  const budget = newBudget({ maxUses: 9, costLimitMicrousd: 1_200, endsWithGrant: false });
  const window = newWindow({ maxUses: 11, costLimitMicrousd: 1_500, tokenLimit: 900 }, Date.now() - 60_000);
  const seeded = newGrant(partition, newBudget({ maxUses: 4, costLimitMicrousd: 1_000 }));
  const grant = (...budgets: BudgetState[]) => sibling(seeded, budgets);
  const grants = [
    seeded,
    grant(newBudget({ maxUses: 6 }), budget, window),
    grant(newBudget({ costLimitMicrousd: 800, concurrentCalls: 3 }), budget, window),
    grant(newBudget({ maxUses: 8 }), window),
  ];
  seeder(one(gateways, 0))(partition, seeded.ref.id, seedOf(seeded));
  const ledger = newLedger(partition);
  return {
    gateways,
    partition,
    ledger,
    grants,
    account: { suspensions: [false], answered: 0 },
    lasting: [],
    histories: new Map(grants.flatMap(({ budgets }) => budgets.map(newHistory))),
    windows: [window],
    present: 0,
    isDeleted: false,
    deleted: new Set(),
    known: new Map(gateways.map((gateway) => [gateway, new Map()])),
    reads: [],
    revoked: new Set(),
    calls: [],
    charges: [],
    lost: new Set(),
    saved: undefined,
  };
}

/** Loads from the seed, or else reads Postgres and loads; a grant that Postgres calls revoked is not loaded. */
export async function load(world: World, redis: RedisClient, grant: GrantState): Promise<boolean> {
  const found = await findGrant(redis, world.partition, grant.ref.id);
  if (found && 'seed' in found && (await loadGrant(redis, fromSeed(grant, found.seed.epoch))) === 'ok')
    return true;
  if (world.revoked.has(grant.ref.id)) return false;
  const state = readGrant(world.ledger, latest(world, grant));
  const isLoaded = (await loadGrant(redis, state)) === 'ok';
  if (isLoaded) world.known.get(redis)?.set(grant.ref.id, state);
  return isLoaded;
}

/** Whether a gateway reads Postgres and asks again. */
export const isAskedAgain = ({ is }: Admission): boolean => is === 'unknown' || is === 'another_window';

/** A grant as a gateway remembers it, perhaps with a window that is over. */
export const knownTo = (world: World, redis: RedisClient, grant: GrantState): GrantState =>
  world.known.get(redis)?.get(grant.ref.id) ?? grant;

/** A window of an hour, unless it is ended before. */
export const newWindow = (limits: Partial<BudgetState>, startsMs: number): BudgetState =>
  newBudget({
    ...limits,
    endsWithGrant: false,
    window: { startsMs, endsMs: startsMs + 3_600_000 },
  });

export function one<T>(list: readonly T[], at: number): T {
  return list[at % list.length] as T;
}

/** Another grant of the same account in the same partition. */
export function sibling({ ref: { partition, accountId } }: GrantState, budgets: BudgetState[]): GrantState {
  const grant = newGrant(partition, ...budgets);
  return { ...grant, ref: { ...grant.ref, accountId } };
}

export const newHistory = (budget: BudgetState): [string, History] => [
  budget.id,
  { revisions: [budget], answered: budget.revision },
];

/** A grant with the limits, the end and the window that Postgres has now. */
export function latest(world: World, grant: GrantState): GrantState {
  const present = world.windows[world.present];
  const budgets = grant.budgets.flatMap((budget) => {
    const now = budget.window ? present : budget;
    return now ? (world.histories.get(now.id)?.revisions.at(-1) ?? now) : [];
  });
  const budgetIds = budgets.map(({ id }) => id);
  const ends = endsOf(world, grant).flatMap((end) => end ?? []);
  return {
    ...grant,
    budgets,
    ref: { ...grant.ref, budgetIds },
    doc: JSON.stringify({ budget: budgetIds }),
    ...(ends.length > 0 && {
      expiresAtMs: ends.at(-1) ?? 0,
      signedUntilMs: Math.max(grant.expiresAtMs, ...ends),
    }),
  };
}

/** The end of a grant in each revision of its own budget. Undefined: it was not moved yet. */
export const endsOf = (world: World, { ref }: GrantState): (number | undefined)[] =>
  (world.histories.get(ref.budgetIds[0] ?? '')?.revisions ?? []).map(({ expiresAtMs }) => expiresAtMs);
