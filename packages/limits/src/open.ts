import { type GrantRef, keys } from './keys.ts';
import { type RedisClient, script } from './script.ts';

const run = script('open');
/** A grant's keys outlive it by two days: longer than any call admitted before its expiry, and its settling. */
const KEEP_AFTER_EXPIRY_MS = 2 * 86_400_000;

/** A budget as Postgres has it. */
export type BudgetState = {
  readonly id: string;
  /** Null: unlimited. */
  readonly maxUses: number | null;
  readonly used: number;
  /** Null: no limit. */
  readonly costLimitMicrousd: number | null;
  readonly settledMicrousd: number;
  /** Null: as many as come. */
  readonly callsPerMinute: number | null;
  /** Whether it is of no use once the grant has expired. */
  readonly endsWithGrant: boolean;
};

/** A grant as one consistent read of Postgres has it. */
export type GrantState = {
  readonly ref: GrantRef;
  /** The partition's epoch, and the last stream entry that the budgets' figures contain. */
  readonly epoch: number;
  readonly lastId: string;
  readonly expiresAtMs: number;
  readonly credential: { readonly version: number; readonly sealed: string };
  readonly budgets: readonly BudgetState[];
  /** What the gateways want to find again with the grant: JSON. */
  readonly doc: string;
};

export type Opened = 'ok' | 'revoked' | 'stale' | 'closed';

/**
 * Puts a grant into Redis. Creates only what is absent, so that two restores, or a restore and a call,
 * cannot undo each other. `stale`: the ledger went on meanwhile, read Postgres again.
 */
export async function openGrant(redis: RedisClient, state: GrantState): Promise<Opened> {
  const { ref, credential } = state;
  const names = [
    keys.partition(ref.partition),
    keys.grant(ref.partition, ref.id),
    keys.credential(ref.partition, ref.credentialId),
    keys.usage(ref.partition),
    keys.survivors(ref.partition),
    ...state.budgets.map((budget) => keys.budget(ref.partition, budget.id)),
  ];
  const args = [
    state.epoch,
    state.lastId,
    state.doc,
    keysEndMs(state.expiresAtMs),
    credential.version,
    credential.sealed,
    ...state.budgets.flatMap((budget) => [
      budget.id,
      budget.maxUses ?? -1,
      budget.used,
      budget.costLimitMicrousd ?? -1,
      budget.settledMicrousd,
      budget.callsPerMinute ?? -1,
      budget.endsWithGrant ? 1 : 0,
    ]),
  ];
  const [is] = (await run(redis, names, args)) as [Opened];
  return is;
}

/** What Redis keeps of a grant for gateways that have not seen it. */
export async function findGrant(
  redis: RedisClient,
  partition: number,
  id: string,
): Promise<{ epoch: string; doc: string } | undefined> {
  const [epoch, doc] = await redis.hmget(keys.grant(partition, id), 'epoch', 'doc');
  return epoch && doc ? { epoch, doc } : undefined;
}

/** A credential as Redis keeps it: sealed. */
export async function findCredential(
  redis: RedisClient,
  partition: number,
  id: string,
): Promise<{ version: number; sealed: string } | undefined> {
  const [version, sealed] = await redis.hmget(keys.credential(partition, id), 'version', 'sealed');
  return version && sealed ? { version: Number(version), sealed } : undefined;
}

/** When the Redis keys of a grant end, in Unix ms. */
export const keysEndMs = (expiresAtMs: number) => expiresAtMs + KEEP_AFTER_EXPIRY_MS;
