import type { CredentialVersion } from './credential.ts';
import { type GrantRef, KEYS_KEPT_MS, keys } from './keys.ts';
import { type RedisClient, writeTogether } from './redis.ts';
import { flag, numbers, oneOf } from './reply.ts';
import { script } from './script.ts';

const openScript = script('open', {
  keys: ['partition', 'grant', 'credential', 'usage', 'survivors', 'seed'],
  args: ['epoch', 'lastId', 'doc', 'expiresMs', 'endMs', 'version', 'sealed'],
  each: {
    keys: ['budget'],
    args: ['id', 'maxUses', 'used', 'costLimit', 'settled', 'perMinute', 'endsWithGrant'],
  },
  reply: oneOf({ ok: {}, revoked: {}, expired: {}, stale: {}, closed: {} }),
});
const revokeScript = script('revoke', { keys: ['grant'], args: ['endMs', 'leastMs'], reply: flag });
const revokedScript = script('revoked', { each: { keys: ['grant', 'credential'] }, reply: numbers });

/** A budget as Postgres has it. */
export type BudgetState = {
  readonly id: string;
  /** Null: unlimited. */
  readonly maxUses: number | null;
  readonly used: number;
  /** Null: no limit. */
  readonly costLimitMicrousd: number | null;
  readonly settledMicrousd: number;
  /** Null: no rate limit. */
  readonly callsPerMinute: number | null;
  /** Whether it is of no use once the grant has expired. */
  readonly endsWithGrant: boolean;
};

/** A grant as one consistent read of Postgres has it. */
export type GrantState = {
  readonly ref: GrantRef;
  /** The partition's epoch, and the last stream entry that the budgets' figures contain. Undefined: it is from a seed. */
  readonly epoch: number;
  readonly lastId: string | undefined;
  readonly expiresAtMs: number;
  readonly credential: Omit<CredentialVersion, 'id'>;
  readonly budgets: readonly BudgetState[];
  /** The part of the grant that gateways need, as JSON. */
  readonly doc: string;
};

export type Opened = 'ok' | 'revoked' | 'expired' | 'stale' | 'closed';

/**
 * Puts a grant into Redis. Creates only what is absent, so that two restores, or a restore and a call, cannot undo
 * each other.
 * @returns `stale` when the ledger went on meanwhile, or the seed is of no use: read Postgres again. `expired` is judged by
 *   the clock of Redis. Throws what ioredis throws.
 */
export async function openGrant(redis: RedisClient, state: GrantState): Promise<Opened> {
  const { ref, credential } = state;
  const at = ref.partition;
  const { is } = await openScript.run(redis, {
    keys: {
      partition: keys.partition(at),
      grant: keys.grant(at, ref.id),
      credential: keys.credential(at, ref.credentialId),
      usage: keys.usage(at),
      survivors: keys.survivors(at),
      seed: keys.seed(at, ref.id),
    },
    args: {
      epoch: state.epoch,
      lastId: state.lastId,
      doc: state.doc,
      expiresMs: state.expiresAtMs,
      endMs: keysEndMs(state.expiresAtMs),
      version: credential.version,
      sealed: credential.sealed,
    },
    each: state.budgets.map((budget) => ({
      budget: keys.budget(at, budget.id),
      id: budget.id,
      maxUses: budget.maxUses ?? -1,
      used: budget.used,
      costLimit: budget.costLimitMicrousd ?? -1,
      settled: budget.settledMicrousd,
      perMinute: budget.callsPerMinute ?? -1,
      endsWithGrant: budget.endsWithGrant ? 1 : 0,
    })),
  });
  return is;
}

/**
 * Reads what Redis keeps of a grant for gateways that have not seen it: its `doc` if it was opened, or else its seed, if
 * its issuer has just left one. Throws what ioredis throws.
 */
export async function findGrant(
  redis: RedisClient,
  partition: number,
  id: string,
): Promise<{ doc: string } | { seed: Seed } | undefined> {
  writeTogether(redis);
  const [[epoch, doc], seed] = await Promise.all([
    redis.hmget(keys.grant(partition, id), 'epoch', 'doc'),
    redis.get(keys.seed(partition, id)),
  ]);
  if (epoch && doc) return { doc };
  return seed ? { seed: JSON.parse(seed) as Seed } : undefined;
}

/** A grant that was issued a moment ago, with a credential and a budget of its own. */
export type Seed = {
  /** The epoch of its partition, read before the grant was committed. */
  readonly epoch: number;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly externalUser: string | null;
  readonly config: Record<string, unknown> | null;
  readonly expiresAtMs: number;
  readonly credential: CredentialVersion;
  readonly budget: Pick<BudgetState, 'id' | 'maxUses' | 'costLimitMicrousd' | 'callsPerMinute'>;
};

/** How long a seed lives. */
const SEED_MS = 60_000;
const SEED_MAX_CHARS = 8 * 1024;
/** Seeds of one issuer that live at once. Each takes about 1 KB. */
const SEEDS_MAX = 20_000;

/**
 * Leaves seeds in Redis. They only save time: none is waited for, and one that fails, is too long or would be too many is
 * left out.
 */
export function seeder(redis: RedisClient): (partition: number, grantId: string, seed: Seed) => void {
  const plantedMs = new Float64Array(SEEDS_MAX).fill(-SEED_MS);
  let at = 0;
  return (partition, grantId, seed) => {
    const now = performance.now();
    const text = JSON.stringify(seed);
    if (text.length > SEED_MAX_CHARS || now - (plantedMs[at] ?? 0) < SEED_MS) return;
    plantedMs[at] = now;
    at = (at + 1) % SEEDS_MAX;
    redis.set(keys.seed(partition, grantId), text, 'PX', SEED_MS).catch(() => {});
  };
}

/**
 * Makes every gateway refuse a grant from its next call on, whether Redis knows it or not. The tombstone lives as long as
 * the grant's other keys, and at least as long as the longest call, also for a grant that has expired. Postgres must have committed the
 * revocation. Throws what ioredis throws.
 */
export async function revokeGrant(
  redis: RedisClient,
  grant: { readonly id: string; readonly partition: number; readonly expiresAtMs: number },
): Promise<void> {
  await revokeScript.run(redis, {
    keys: { grant: keys.grant(grant.partition, grant.id) },
    args: { endMs: keysEndMs(grant.expiresAtMs), leastMs: KEYS_KEPT_MS },
  });
}

/** Returns the ids of those grants of one partition that are revoked, or whose credential is. */
export async function findRevoked(
  redis: RedisClient,
  partition: number,
  grants: readonly Pick<GrantRef, 'id' | 'credentialId'>[],
): Promise<readonly string[]> {
  const positions = await revokedScript.run(redis, {
    each: grants.map(({ id, credentialId }) => ({
      grant: keys.grant(partition, id),
      credential: keys.credential(partition, credentialId),
    })),
  });
  return positions.map((position) => grants[position - 1]?.id ?? '');
}

/**
 * When the Redis keys of a grant end, in Unix ms: when no call can run that was admitted before it expired. `open` refuses from
 * the expiry on, so nothing can rebuild a budget without the holds and calls that it has lost by then.
 */
export const keysEndMs = (expiresAtMs: number) => expiresAtMs + KEYS_KEPT_MS;

/** A budget as Redis has it. */
export type BudgetFigures = {
  /** Undefined: unlimited. */
  readonly maxUses: number | undefined;
  readonly used: number;
  readonly costLimitMicrousd: number | undefined;
  readonly settledMicrousd: number;
  readonly heldMicrousd: number;
  /** Undefined: no rate limit. */
  readonly callsPerMinute: number | undefined;
  /** How the last call failed, as the JSON that `settle` stored. Undefined if it did not fail. */
  readonly lastCall: string | undefined;
};

/**
 * Reads the live figures of these budgets.
 * @returns them in the order of `budgetIds`; undefined for a budget that Redis does not know. Throws what ioredis throws.
 */
export function readFigures(
  redis: RedisClient,
  { partition, budgetIds }: Pick<GrantRef, 'partition' | 'budgetIds'>,
): Promise<(BudgetFigures | undefined)[]> {
  return Promise.all(budgetIds.map((id) => readBudget(redis, keys.budget(partition, id))));
}

async function readBudget(redis: RedisClient, key: string): Promise<BudgetFigures | undefined> {
  const fields = ['max_uses', 'used', 'cost_limit', 'settled', 'held', 'per_minute', 'last_call'];
  const [maxUses, used, costLimit, settled, held, perMinute, lastCall] = await redis.hmget(key, ...fields);
  if (!maxUses || !costLimit) return undefined;
  return {
    maxUses: limit(maxUses),
    used: Number(used),
    costLimitMicrousd: limit(costLimit),
    settledMicrousd: Number(settled),
    heldMicrousd: Number(held),
    callsPerMinute: limit(perMinute ?? '-1'),
    lastCall: lastCall ?? undefined,
  };
}

const limit = (text: string) => (Number(text) < 0 ? undefined : Number(text));
