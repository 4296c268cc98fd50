import { randomBytes, randomUUID } from 'node:crypto';
import {
  type Admission,
  type Ask,
  admit,
  type BudgetState,
  type Charge,
  charge,
  fixedHold,
  type GrantState,
  keys,
  loadGrant,
  type Outcome,
  type RedisClient,
  type Refund,
  type Seed,
} from '../src/index.ts';

/** A budget nothing was drawn from yet; unlimited unless said. */
export function newBudget(limits: Partial<BudgetState> = {}): BudgetState {
  return {
    id: randomUUID(),
    revision: 1,
    maxUses: null,
    used: 0,
    costLimitMicrousd: null,
    settledMicrousd: 0,
    endsWithGrant: true,
    ...limits,
  };
}

/** A grant as Postgres has it when its partition is in its first epoch and nothing was drained. */
export function newGrant(partition: number, ...budgets: BudgetState[]): GrantState {
  const credentialId = randomUUID();
  return {
    ref: {
      id: randomUUID(),
      partition,
      accountId: randomUUID(),
      credentialId,
      budgetIds: budgets.map((budget) => budget.id),
    },
    epoch: 1,
    lastId: '0-0',
    expiresAtMs: Date.now() + 3_600_000,
    signedUntilMs: undefined,
    credential: { version: 1, sealed: 'k1.sealed' },
    budgets,
    doc: '{"provider":"sandbox"}',
  };
}

/** The seed of a grant that was issued in this epoch. */
export function seedOf({ ref, expiresAtMs, credential, budgets }: GrantState, epoch = 1): Seed {
  const [budget = newBudget()] = budgets;
  return {
    ...{ epoch, accountId: ref.accountId, apiKeyId: null, externalUser: null, config: null, expiresAtMs },
    credential: { ...credential, id: ref.credentialId },
    budget,
  };
}

/** The grant as a gateway loads it from its seed. */
export const fromSeed = (grant: GrantState, epoch = 1): GrantState => ({
  ...grant,
  epoch,
  lastId: undefined,
});

/** A grant with one budget, known to Redis. */
export async function loadedGrant(
  redis: RedisClient,
  partition: number,
  limits: Partial<BudgetState> = {},
): Promise<GrantState> {
  const grant = newGrant(partition, newBudget(limits));
  await loadGrant(redis, grant);
  return grant;
}

export const newHoldId = () => randomBytes(16).toString('hex');

/** An `Ask` whose cost is fixed, or unknown. */
type FixedAsk = Partial<Ask> & { readonly holdMicrousd?: number | undefined };

/** A call of one use and no cost that may take a minute, unless said. */
export function newAsk(given: FixedAsk = {}): Ask {
  const { holdMicrousd, ...ask } = { holdMicrousd: 0, ...given };
  return {
    holdId: newHoldId(),
    uses: 1,
    hold: holdMicrousd === undefined ? undefined : fixedHold(holdMicrousd),
    leaseMs: 60_000,
    record: '{"prv":"sandbox"}',
    ...ask,
  };
}

/** Admits a call that must pass; returns the hold's id. */
export async function admitted(redis: RedisClient, grant: GrantState, ask: FixedAsk = {}): Promise<string> {
  const asked = newAsk(ask);
  const admission = await admit(redis, grant.ref, asked);
  if (admission.is !== 'admitted') throw new Error(`not admitted: ${admission.is}`);
  return asked.holdId;
}

/** A call that came to one use and cost nothing, unless said. */
export function newOutcome(holdId: string, outcome: Partial<Outcome> = {}): Outcome {
  return { holdId, epoch: '1', uses: 1, costMicrousd: 0, record: '{"prv":"sandbox","sta":200}', ...outcome };
}

/** A call of one use that costs nothing, unless said. */
export function newCharge(given: Partial<Charge> = {}): Charge {
  return { chargeId: newHoldId(), uses: 1, costMicrousd: 0, record: '{"prv":"mcp"}', ...given };
}

/** Charges a call that must pass. */
export async function charged(
  redis: RedisClient,
  grant: GrantState,
  given: Partial<Charge> = {},
): Promise<Charge> {
  const asked = newCharge(given);
  const admission = await charge(redis, grant.ref, asked);
  if (admission.is !== 'admitted') throw new Error(`not charged: ${admission.is}`);
  return asked;
}

/** All of a charge, unless said. */
export function newRefund(of: Charge, given: Partial<Refund> = {}): Refund {
  return { ...of, refundId: newHoldId(), record: '{"prv":"mcp","sta":502}', ...given };
}

/** A budget's figures as Redis has them, as text; undefined when it has none. */
export async function figures(
  redis: RedisClient,
  partition: number,
  budgetId: string | undefined,
): Promise<{ used: string; settled: string; held: string } | undefined> {
  const [used, settled, held] = await redis.hmget(
    keys.budget(partition, budgetId ?? ''),
    'used',
    'settled',
    'held',
  );
  return used && settled && held ? { used, settled, held } : undefined;
}

/** The tokens that a window counts, as text; undefined for a budget without a window. */
export async function tokenFigures(
  redis: RedisClient,
  partition: number,
  budgetId: string | undefined,
): Promise<{ tokens: string; held: string } | undefined> {
  const [tokens, held] = await redis.hmget(keys.budget(partition, budgetId ?? ''), 'tokens', 'tokens_held');
  return tokens && held ? { tokens, held } : undefined;
}

/** How many of these admissions were answered how. */
export function tally(admissions: readonly Admission[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { is } of admissions) counts[is] = (counts[is] ?? 0) + 1;
  return counts;
}
