import { type BudgetLimits, STORED_LIMITS } from '@presign/schema/limits';
import { BACKLOG_MAX } from './admit.ts';
import type { CredentialVersion } from './credential.ts';
import { type GrantRef, KEYS_KEPT_MS, keys } from './keys.ts';
import { type RedisClient, writeTogether } from './redis.ts';
import { figure, flag, numbers, oneOf } from './reply.ts';
import { script } from './script.ts';

const loadScript = script('load', {
  keys: ['partition', 'grant', 'credential', 'usage', 'survivors', 'seed'],
  args: ['epoch', 'lastId', 'backlogMax', 'doc', 'expiresMs', 'endMs', 'isBounded', 'version', 'sealed'],
  each: {
    keys: ['budget'],
    args: ['id', 'revision', 'limits', 'used', 'settled', 'usedTokens', 'keyEndsMs', 'window'],
  },
  reply: oneOf({
    ok: {},
    revoked: {},
    expired: {},
    stale: {},
    closed: {},
    another_window: { nowMs: figure },
  }),
});
const revokeScript = script('revoke', { keys: ['grant'], args: ['endMs', 'leastMs'], reply: flag });
const limitsScript = script('change/limits', {
  keys: ['budget'],
  args: ['revision', 'limits', 'endMs'],
  reply: flag,
});
const endScript = script('change/end', {
  keys: ['grant', 'credential'],
  args: ['revision', 'endsMs', 'endMs'],
  reply: flag,
});
const endsScript = script('find-ends', {
  each: { keys: ['grant', 'credential', 'account'] },
  reply: oneOf({ found: { revoked: numbers, suspended: numbers, moved: numbers, endsMs: numbers } }),
});

/** The limits of a budget as gateways and issuers pass them. Omitted limits are unlimited. */
type Limits = Pick<BudgetLimits, 'maxUses' | 'costLimitMicrousd'> &
  Partial<BudgetLimits> & {
    /** Tokens of input and output. Only windows have it. Null: no limit. */
    readonly tokenLimit?: number | null;
    /** Whether holders see it. Only windows are shown. */
    readonly visible?: boolean;
  };

/** A budget as Postgres has it. */
export type BudgetState = Limits & {
  readonly id: string;
  /** Increases when its limits change, or when the expiry of a grant whose own budget it is changes. */
  readonly revision: number;
  readonly used: number;
  readonly settledMicrousd: number;
  /** Only windows count tokens. Omitted: none were used. */
  readonly usedTokens?: number;
  /** Whether it is no longer needed once the grant has expired. */
  readonly endsWithGrant: boolean;
  /** The time in which it counts calls. Omitted: always. */
  readonly window?: Window | undefined;
};

/** A window of a budget: it counts the calls that are admitted from its beginning on and before its end. Unix ms. */
export type Window = {
  readonly startsMs: number;
  /** Undefined: it has no end. */
  readonly endsMs: number | undefined;
};

/** A grant as one consistent read of Postgres has it. */
export type GrantState = {
  readonly ref: GrantRef;
  /** The partition's epoch, and the last stream entry that the budgets' figures contain. Undefined: it is from a seed. */
  readonly epoch: number;
  readonly lastId: string | undefined;
  /** When the grant ends. Its token may end later. */
  readonly expiresAtMs: number;
  /** When its newest token ends, if the expiry was ever changed. Undefined: together with the grant. */
  readonly signedUntilMs: number | undefined;
  readonly credential: Omit<CredentialVersion, 'id'>;
  readonly budgets: readonly BudgetState[];
  /** The part of the grant that gateways need, as JSON. */
  readonly doc: string;
};

export type Loaded =
  | ('ok' | 'revoked' | 'expired' | 'stale' | 'closed')
  /** By the clock of Redis, whose time this is, a window of a budget has ended or not begun. */
  | { readonly nowMs: number };

/**
 * Puts a grant into Redis. Creates only missing keys, so that two restores, or a restore and a call, cannot undo each
 * other. Keeps the limits of the later revision.
 * @returns `stale` if the ledger went on meanwhile, the limits changed, or the seed is unusable; then read Postgres
 * again. `expired` is judged by the clock of Redis. Throws what ioredis throws.
 */
export async function loadGrant(redis: RedisClient, state: GrantState): Promise<Loaded> {
  const { ref, credential } = state;
  const at = ref.partition;
  const reply = await loadScript.run(redis, {
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
      backlogMax: BACKLOG_MAX,
      doc: state.doc,
      expiresMs: state.expiresAtMs,
      endMs: keysEndMs(state.signedUntilMs ?? state.expiresAtMs),
      isBounded: state.signedUntilMs === undefined ? 0 : 1,
      version: credential.version,
      sealed: credential.sealed,
    },
    each: state.budgets.map((budget) => ({
      budget: keys.budget(at, budget.id),
      id: budget.id,
      revision: budget.revision,
      limits: writeLimits(budget),
      used: budget.used,
      settled: budget.settledMicrousd,
      usedTokens: budget.usedTokens ?? 0,
      keyEndsMs: budgetKeyEndsMs(state, budget),
      window: budget.window && writeWindow(budget.window),
    })),
  });
  return reply.is === 'another_window' ? { nowMs: reply.nowMs } : reply.is;
}

/** In the format of `lua/shared/limits.lua`. */
const writeLimits = (limits: Limits): string => {
  const values = STORED_LIMITS.map(
    ({ property, field, isAlwaysStored }) => `${field} ${limits[property] ?? (isAlwaysStored ? -1 : '-')}`,
  );
  return `${values.join(' ')} visible ${limits.visible ? 1 : '-'}`;
};

const writeWindow = ({ startsMs, endsMs }: Window) => `${startsMs} ${endsMs ?? ''}`;

function budgetKeyEndsMs(
  { signedUntilMs, expiresAtMs }: GrantState,
  { endsWithGrant, window }: BudgetState,
): number | undefined {
  if (endsWithGrant) return keysEndMs(signedUntilMs ?? expiresAtMs);
  return window?.endsMs === undefined ? undefined : keysEndMs(window.endsMs);
}

/**
 * Reads a grant from Redis for a gateway that has not cached it: its `doc` if it was loaded, or else its seed, if the
 * issuer has just written one. Throws what ioredis throws.
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

/** A newly issued grant, with a credential and an unused budget. */
export type Seed = {
  /** The epoch of its partition, read before the grant was committed. */
  readonly epoch: number;
  readonly accountId: string;
  readonly apiKeyId: string | null;
  readonly externalUser: string | null;
  readonly config: Record<string, unknown> | null;
  /** The models that its calls may use. Null: all. */
  readonly models?: readonly string[] | null;
  /** The conditions of its calls, in the gateways' format. Null: none. */
  readonly conditions?: object | null;
  /** Its MCP server, in the gateways' format. Omitted: none. */
  readonly server?: object | undefined;
  readonly expiresAtMs: number;
  readonly credential: CredentialVersion;
  readonly budget: Omit<BudgetState, 'used' | 'settledMicrousd' | 'endsWithGrant'>;
};

export type PlantSeed = (partition: number, grantId: string, seed: Seed) => void;

/** How long a seed lives. */
const SEED_MS = 60_000;
const SEED_MAX_CHARS = 8 * 1024;
/** The most live seeds of one issuer. Each takes about 1 KB. */
const SEEDS_MAX = 20_000;

/**
 * Writes seeds to Redis. They only save time, so nothing waits for them. A seed that fails, is too long or exceeds the maximum number is
 * skipped.
 */
export function seeder(redis: RedisClient): PlantSeed {
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
 * Makes every gateway refuse a grant from its next call on, whether Redis knows it or not. The tombstone lives as long as the grant's other
 * keys, and at least as long as the longest call, even if the grant has expired. Postgres must have committed the revocation. Throws what
 * ioredis throws.
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

/**
 * Puts a budget's new limits in force for the next call on every gateway, whether Redis has it or not. Postgres
 * must have committed them. An earlier revision changes nothing. Throws what ioredis throws.
 * @param endsMs when the newest token of its grants ends, or its window; undefined for a budget that has no end
 */
export async function changeLimits(
  redis: RedisClient,
  partition: number,
  budget: Limits & Pick<BudgetState, 'id' | 'revision'>,
  endsMs: number | undefined,
): Promise<void> {
  await limitsScript.run(redis, {
    keys: { budget: keys.budget(partition, budget.id) },
    args: {
      revision: budget.revision,
      limits: writeLimits(budget),
      endMs: endsMs === undefined ? undefined : keysEndMs(endsMs),
    },
  });
}

/** A grant whose expiry was changed. */
export type MovedEnd = {
  readonly id: string;
  readonly credentialId: string;
  /** The revision of its own budget. */
  readonly revision: number;
  readonly expiresAtMs: number;
  readonly signedUntilMs: number;
};

/** Like `changeLimits`, for the expiry of a grant. */
export async function moveEnd(redis: RedisClient, partition: number, grant: MovedEnd): Promise<void> {
  const { id, credentialId, revision, expiresAtMs: endsMs, signedUntilMs } = grant;
  await endScript.run(redis, {
    keys: { grant: keys.grant(partition, id), credential: keys.credential(partition, credentialId) },
    args: { revision, endsMs, endMs: keysEndMs(signedUntilMs) },
  });
}

/**
 * Reads the expiry of a grant in Unix ms, if it was ever changed.
 * @returns undefined if the token's expiry applies. Throws what ioredis throws.
 */
export async function readEnd(redis: RedisClient, { partition, id }: GrantRef): Promise<number | undefined> {
  const ends = await redis.hget(keys.grant(partition, id), 'ends');
  return ends === null ? undefined : Number(ends);
}

/**
 * A grant whose calls must end because the grant or its credential is revoked, or its account is suspended; or a grant whose expiry was
 * changed, with the new time in Unix ms.
 */
export type Ends =
  | { readonly id: string; readonly why: 'revoked' | 'suspended' }
  | { readonly id: string; readonly why: 'moved'; readonly endsMs: number };

/** Returns the grants of one partition that are revoked or suspended, or whose expiry was changed. Throws what ioredis throws. */
export async function findEnds(
  redis: RedisClient,
  partition: number,
  grants: readonly Pick<GrantRef, 'id' | 'accountId' | 'credentialId'>[],
): Promise<readonly Ends[]> {
  const { revoked, suspended, moved, endsMs } = await endsScript.run(redis, {
    each: grants.map(({ id, accountId, credentialId }) => ({
      grant: keys.grant(partition, id),
      credential: keys.credential(partition, credentialId),
      account: keys.account(partition, accountId),
    })),
  });
  const idAt = (position: number) => grants[position - 1]?.id ?? '';
  return [
    ...revoked.map((at) => ({ id: idAt(at), why: 'revoked' as const })),
    ...suspended.map((at) => ({ id: idAt(at), why: 'suspended' as const })),
    ...moved.map((at, i) => ({ id: idAt(at), why: 'moved' as const, endsMs: endsMs[i] ?? 0 })),
  ];
}

/**
 * When the Redis keys of a grant end, in Unix ms. By then no call can run that was admitted before the expiry. `load` refuses an expired
 * grant, so no budget can be rebuilt without the holds and calls that were deleted with its keys.
 */
export const keysEndMs = (expiresAtMs: number) => expiresAtMs + KEYS_KEPT_MS;
