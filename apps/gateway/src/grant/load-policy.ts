import {
  type BudgetState,
  findGrant,
  type GrantState,
  hasLimit,
  type Loaded,
  loadGrant,
  type RedisClient,
  type Seed,
} from '@presign/limits';
import type { Conditions, McpServerPolicy, Refusal } from '@presign/schema';
import { statusOfGrant } from '@presign/schema/grant-status';
import type { Logger } from 'pino';
import { outageRefusal, UNAVAILABLE } from '../http/refuse.ts';
import { type Asking, bindRefusal, type ClientAddress } from './bind.ts';
import { type GrantMemory, type Policy, readDoc, remember, rememberSealed, writeDoc } from './policy.ts';
import type { GrantReader } from './read-grant.ts';
import type { VerifiedGrant } from './verify.ts';

export type PolicyDeps = {
  readonly readGrant: GrantReader;
  readonly redis: RedisClient;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
  readonly memory: GrantMemory;
};

/** How often one call may load its grant. Redis can lose the grant again meanwhile, but not without end. */
export const LOADS_MAX = 4;

/** Loads a grant's policy. On the grant's first call anywhere, this loads the grant into Redis. */
export async function loadPolicy(
  deps: PolicyDeps,
  requestId: string,
  grant: VerifiedGrant,
): Promise<{ policy: Policy } | { refusal: Refusal }> {
  let atMs: number | undefined;
  try {
    for (let i = 0; i < LOADS_MAX; i++) {
      const { policy, seed } = await findPolicy(deps, grant);
      if (policy) return { policy };
      const loaded = await loadGrantOnce(deps, grant, { seed, atMs });
      if ('refusal' in loaded) return loaded;
      if (loaded.policy) return { policy: loaded.policy };
      atMs = loaded.atMs;
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}

/**
 * Loads the policy of a grant for a caller, and adds it to the report.
 * @returns a refusal, also if the grant is not bound to the caller's origin or address
 */
export async function loadPolicyFor(
  deps: PolicyDeps & { readonly clientAddress: ClientAddress },
  report: { readonly requestId: string; policy: Policy | undefined },
  incoming: Asking,
  grant: VerifiedGrant,
): Promise<{ readonly policy: Policy } | { readonly refusal: Refusal }> {
  const policy = deps.memory.policies.get(grant.id);
  const loaded = policy ? { policy } : await loadPolicy(deps, report.requestId, grant);
  if ('refusal' in loaded) return loaded;
  report.policy = loaded.policy;
  const stranger = bindRefusal(loaded.policy, incoming, deps.clientAddress);
  return stranger ? { refusal: stranger } : loaded;
}

/**
 * Loads a grant into Redis, from its seed if there is one, or else from Postgres. An unusable seed is deleted.
 * @param atMs the time of Redis, if Redis has reported that a window is not current
 * @returns the policy when Redis has the grant; without one, the caller has to try again
 */
export async function loadGrantOnce(
  deps: PolicyDeps,
  grant: VerifiedGrant,
  { seed, atMs }: { readonly seed?: Seed | undefined; readonly atMs?: number | undefined } = {},
): Promise<Tried | { readonly refusal: Refusal }> {
  const loaded = await (seed ? loadFromSeed(deps, grant, seed) : loadFromPostgres(deps, grant, atMs));
  if (typeof loaded === 'object') return 'nowMs' in loaded ? { atMs: loaded.nowMs } : loaded;
  switch (loaded) {
    case 'stale':
      return {};
    case 'closed':
    case 'no_window':
      return { refusal: UNAVAILABLE };
    case 'revoked':
      return { refusal: { code: 'grant_revoked' } };
    case 'suspended':
      return { refusal: { code: 'account_suspended' } };
    case 'expired':
      return { refusal: { code: 'token_expired' } };
    case 'absent':
      return { refusal: { code: 'token_invalid', reason: 'no_such_grant' } };
  }
}

/**
 * Loads the policy of a grant again if a limit of money or tokens was removed after the gateway cached it.
 * @returns undefined if its limits are unchanged, or if Redis does not answer
 */
export async function withLimitsOfNow(
  deps: PolicyDeps,
  grant: VerifiedGrant,
  { ref, costLimited, tokenLimited }: Policy,
): Promise<Policy | undefined> {
  const known = [...(costLimited ? ['cost' as const] : []), ...(tokenLimited ? ['tokens' as const] : [])];
  try {
    const standing = await Promise.all(known.map((of) => hasLimit(deps.redis, ref, of)));
    if (standing.every((each) => each === true)) return undefined;
    for (let i = 0; i < LOADS_MAX; i++) {
      const loaded = await loadGrantOnce(deps, grant);
      if ('refusal' in loaded) return undefined;
      if (loaded.policy) return loaded.policy;
    }
    return undefined;
  } catch {
    // The caller then keeps its refusal.
    return undefined;
  }
}

/** The outcome of an attempt to load a grant. `atMs`: the time of Redis, for the next attempt. */
type Tried = { readonly policy?: Policy; readonly atMs?: number };

type Attempt = Exclude<Loaded, 'ok'> | { readonly policy: Policy } | 'absent' | 'suspended' | 'no_window';

/** Reads from memory, or else from Redis. If neither has the grant, only Postgres can have it. */
async function findPolicy(
  { redis, memory }: PolicyDeps,
  grant: VerifiedGrant,
): Promise<{ policy?: Policy; seed?: Seed }> {
  const remembered = memory.policies.get(grant.id);
  if (remembered) return { policy: remembered };
  const found = await findGrant(redis, grant.partition, grant.id);
  if (!found || 'seed' in found) return found ?? {};
  const policy = readDoc(grant, found.doc);
  remember(memory, policy, found.doc);
  return { policy };
}

/** The columns of a grant that its policy has. */
type PolicyColumns = Pick<
  Seed,
  'accountId' | 'apiKeyId' | 'externalUser' | 'config' | 'models' | 'conditions'
> & {
  readonly virtualKeyId: string | null;
  readonly server: McpServerPolicy | null;
};

/** Loads a grant from its seed: no call has used its budget. A virtual key would need a row of Postgres. */
function loadFromSeed(deps: PolicyDeps, { id, partition }: VerifiedGrant, seed: Seed): Promise<Attempt> {
  const { accountId, epoch, expiresAtMs, credential, budget } = seed;
  const signedUntilMs = undefined;
  const budgets = [{ ...budget, used: 0, settledMicrousd: 0, endsWithGrant: true }];
  const ref = { id, partition, accountId, credentialId: credential.id, budgetIds: [budget.id] };
  const columns = { ...seed, virtualKeyId: null, server: (seed.server ?? null) as McpServerPolicy | null };
  return loadAs(deps, columns, [], {
    ref,
    epoch,
    lastId: undefined,
    expiresAtMs,
    signedUntilMs,
    credential,
    budgets,
  });
}

/** Reads a grant and its limits from Postgres in one statement, and loads the grant into Redis. */
async function loadFromPostgres(
  deps: PolicyDeps,
  verified: VerifiedGrant,
  atMs = deps.now(),
): Promise<Attempt> {
  const row = await deps.readGrant(verified.id, atMs);
  if (!row) return 'absent';
  if (row.accounts.suspendedAt) return 'suspended';
  const { grants: grant, sessions: session, virtual_keys: virtualKey, budgets: budget } = row;
  const figures = { used: budget.used, spentMicrousd: budget.settledMicrousd };
  const status = statusOfGrant({ grant, session, virtualKey, budget, figures }, deps.now());
  // `admit` refuses an exhausted grant, by figures that are newer than the ledger's.
  if (status === 'revoked' || status === 'expired') return status;
  const windows = row.windows.flatMap(({ window }) => window ?? []);
  if (windows.length < row.windows.length) {
    deps.log.error({ grant: grant.id }, 'a budget has no window for this time');
    return 'no_window';
  }
  const own = { ...budget, endsWithGrant: true };
  const ofKey = row.shared ? [{ ...row.shared, endsWithGrant: false }] : [];
  const state: BudgetState[] = [own, ...ofKey, ...windows];
  const sharedIds = row.windows.map(({ sharedId }) => sharedId);
  const credentialId = row.credentials.id;
  return loadAs(deps, grant, sharedIds, {
    ref: {
      id: grant.id,
      partition: budget.partition,
      accountId: grant.accountId,
      credentialId,
      budgetIds: state.map(({ id }) => id),
    },
    epoch: row.partitions.epoch,
    lastId: row.partitions.lastId,
    expiresAtMs: grant.expiresAt.getTime(),
    signedUntilMs: grant.signedUntil?.getTime(),
    credential: row.credentials,
    budgets: state,
  });
}

async function loadAs(
  deps: PolicyDeps,
  columns: PolicyColumns,
  sharedIds: readonly string[],
  state: Omit<GrantState, 'doc'>,
): Promise<Attempt> {
  const policy: Policy = {
    ref: state.ref,
    accountId: columns.accountId,
    apiKeyId: columns.apiKeyId ?? undefined,
    virtualKeyId: columns.virtualKeyId ?? undefined,
    externalUser: columns.externalUser ?? undefined,
    config: columns.config ?? undefined,
    models: columns.models ?? undefined,
    conditions: (columns.conditions ?? undefined) as Conditions | undefined,
    server: columns.server ?? undefined,
    costLimited: state.budgets.some((each) => each.costLimitMicrousd !== null),
    tokenLimited: state.budgets.some((each) => (each.tokensPerMinute ?? each.tokenLimit ?? null) !== null),
    sharedIds,
  };
  const doc = writeDoc(policy);
  const loaded = await loadGrant(deps.redis, { ...state, doc });
  if (loaded !== 'ok') return loaded;
  remember(deps.memory, policy, doc);
  rememberSealed(deps.memory, state.ref.credentialId, state.credential.version, state.credential.sealed);
  return { policy };
}
