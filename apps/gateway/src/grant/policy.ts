import { findGrant, type GrantRef, type Opened, openGrant, type RedisClient } from '@presign/limits';
import { isJsonObject, type JsonObject, type McpServerPolicy, type Refusal } from '@presign/schema';
import { statusOfGrant } from '@presign/schema/grant-status';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { outageRefusal, UNAVAILABLE } from '../http/refuse.ts';
import type { GrantReader } from './read-grant.ts';
import type { VerifiedGrant } from './verify.ts';

/** The part of a grant that is not in its token. It never changes while the grant lives. */
export type Policy = {
  readonly ref: GrantRef;
  readonly accountId: string;
  /** The API key that issued it. Undefined: not recorded. */
  readonly apiKeyId: string | undefined;
  readonly virtualKeyId: string | undefined;
  readonly externalUser: string | undefined;
  readonly config: JsonObject | undefined;
  /** Only for the grant of an MCP server. */
  readonly server: McpServerPolicy | undefined;
  /** Whether any of its budgets limits spending. */
  readonly costLimited: boolean;
};

/** A stored credential of one version, encrypted. */
export type SealedCredential = { readonly version: number; readonly sealed: string };

/** The gateway's memory of grants. It has no counters, and no secret in clear. */
export type GrantMemory = {
  readonly policies: LRUCache<string, Policy>;
  readonly credentials: LRUCache<string, SealedCredential>;
};

export const grantMemory = (): GrantMemory => ({
  // `remember` states the size of a policy.
  policies: new LRUCache({ maxSize: POLICIES_BYTES }),
  credentials: new LRUCache({
    maxSize: CREDENTIALS_BYTES,
    sizeCalculation: ({ sealed }) => sealed.length + ENTRY_BYTES,
  }),
});

/** Room for the policies of as many grants as the verifier has tokens, unless their `config` is long. */
const POLICIES_BYTES = 48 * 1024 * 1024;
const CREDENTIALS_BYTES = 16 * 1024 * 1024;
/** An entry of the memory, without its longest text. */
const ENTRY_BYTES = 500;

/** Remembers a policy that takes as much memory as its text in Redis, and once more for its parts. */
const remember = ({ policies }: GrantMemory, policy: Policy, doc: string): void =>
  void policies.set(policy.ref.id, policy, { size: 2 * doc.length + ENTRY_BYTES });

export type PolicyDeps = {
  readonly readGrant: GrantReader;
  readonly redis: RedisClient;
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly log: Logger;
  readonly memory: GrantMemory;
};

/** How often one call may open its grant. Redis can lose the grant again meanwhile, but not without end. */
export const OPENINGS = 4;

/** Loads a grant's policy. On the grant's first call anywhere, this opens the grant in Redis. */
export async function loadPolicy(
  deps: PolicyDeps,
  requestId: string,
  grant: VerifiedGrant,
): Promise<{ policy: Policy } | { refusal: Refusal }> {
  try {
    for (let i = 0; i < OPENINGS; i++) {
      const policy = await findPolicy(deps, grant);
      if (policy) return { policy };
      const refusal = await openGrantOnce(deps, grant);
      if (refusal) return { refusal };
    }
    return { refusal: UNAVAILABLE };
  } catch (error) {
    return { refusal: outageRefusal(deps.log, requestId, error) };
  }
}

/** Opens a grant in Redis. Returns undefined when it is open, or when the caller has to try again. */
export async function openGrantOnce(deps: PolicyDeps, grant: VerifiedGrant): Promise<Refusal | undefined> {
  const opened = await openFromPostgres(deps, grant);
  switch (opened) {
    case 'ok':
    case 'stale':
      return undefined;
    case 'closed':
      return UNAVAILABLE;
    case 'revoked':
      return { code: 'grant_revoked' };
    case 'expired':
      return { code: 'token_expired' };
    case 'absent':
      return { code: 'token_invalid', reason: 'no_such_grant' };
  }
}

/** From memory, else from Redis. Undefined when only Postgres can know the grant. */
async function findPolicy({ redis, memory }: PolicyDeps, grant: VerifiedGrant): Promise<Policy | undefined> {
  const remembered = memory.policies.get(grant.id);
  if (remembered) return remembered;
  const found = await findGrant(redis, grant.partition, grant.id);
  if (!found) return undefined;
  const policy = readDoc(grant, found.doc);
  remember(memory, policy, found.doc);
  return policy;
}

/** Reads a grant and its limits from Postgres in one statement, and opens the grant in Redis. */
async function openFromPostgres(deps: PolicyDeps, verified: VerifiedGrant): Promise<Opened | 'absent'> {
  const row = await deps.readGrant(verified.id);
  if (!row) return 'absent';
  const { grants: grant, sessions: session, virtual_keys: virtualKey, budgets: budget } = row;
  const figures = { used: budget.used, spentMicrousd: budget.settledMicrousd };
  const status = statusOfGrant({ grant, session, virtualKey, budget, figures }, deps.now());
  // `admit` refuses an exhausted grant, by figures that are newer than the ledger's.
  if (status === 'revoked' || status === 'expired') return status;
  const own = { ...budget, endsWithGrant: true };
  const shared = row.shared ? [{ ...row.shared, endsWithGrant: false }] : [];
  const state = [own, ...shared];
  const policy: Policy = {
    ref: {
      id: grant.id,
      partition: budget.partition,
      credentialId: row.credentials.id,
      budgetIds: state.map((each) => each.id),
    },
    accountId: grant.accountId,
    apiKeyId: grant.apiKeyId ?? undefined,
    virtualKeyId: grant.virtualKeyId ?? undefined,
    externalUser: grant.externalUser ?? undefined,
    config: grant.config ?? undefined,
    server: grant.server ?? undefined,
    costLimited: state.some((each) => each.costLimitMicrousd !== null),
  };
  const doc = writeDoc(policy);
  const opened = await openGrant(deps.redis, {
    ref: policy.ref,
    epoch: row.partitions.epoch,
    lastId: row.partitions.lastId,
    expiresAtMs: grant.expiresAt.getTime(),
    credential: row.credentials,
    budgets: state,
    doc,
  });
  if (opened === 'ok') remember(deps.memory, policy, doc);
  return opened;
}

/** The policy as Redis stores it, with short names. */
type Doc = {
  acc: string;
  crd: string;
  budget: string[];
  key?: string;
  vky?: string;
  usr?: string;
  cfg?: JsonObject;
  srv?: McpServerPolicy;
  lim?: true;
};

function writeDoc(policy: Policy): string {
  const { ref, accountId, apiKeyId, virtualKeyId, externalUser, config, server, costLimited } = policy;
  const doc: Doc = {
    acc: accountId,
    crd: ref.credentialId,
    budget: [...ref.budgetIds],
    ...(apiKeyId === undefined ? {} : { key: apiKeyId }),
    ...(virtualKeyId === undefined ? {} : { vky: virtualKeyId }),
    ...(externalUser === undefined ? {} : { usr: externalUser }),
    ...(config === undefined ? {} : { cfg: config }),
    ...(server === undefined ? {} : { srv: server }),
    ...(costLimited ? { lim: true as const } : {}),
  };
  return JSON.stringify(doc);
}

function readDoc(grant: VerifiedGrant, text: string): Policy {
  const doc = JSON.parse(text) as Doc;
  return {
    ref: { id: grant.id, partition: grant.partition, credentialId: doc.crd, budgetIds: doc.budget },
    accountId: doc.acc,
    apiKeyId: doc.key,
    virtualKeyId: doc.vky,
    externalUser: doc.usr,
    config: isJsonObject(doc.cfg) ? doc.cfg : undefined,
    server: doc.srv,
    costLimited: doc.lim === true,
  };
}
