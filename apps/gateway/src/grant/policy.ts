import { findGrant, type GrantRef, type Opened, openGrant, type RedisClient } from '@presign/limits';
import {
  isJsonObject,
  type JsonObject,
  type McpServerPolicy,
  type Refusal,
  RefusedError,
} from '@presign/schema';
import { type Database, isDatabaseOutage } from '@presign/schema/database';
import { statusOfGrant } from '@presign/schema/grant-status';
import { budgets, credentials, grants, partitions, sessions, virtualKeys } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { outageRefusal, UNAVAILABLE } from '../http/refuse.ts';
import type { VerifiedGrant } from './verify.ts';

/** The part of a grant that is not in its token. It never changes while the grant lives. */
export type Policy = {
  readonly ref: GrantRef;
  readonly accountId: string;
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
  policies: new LRUCache({ max: 10_000 }),
  credentials: new LRUCache({ max: 10_000 }),
});

export type GrantReader = ReturnType<typeof grantReader>;

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
      return { code: 'token_invalid' };
  }
}

/** From memory, else from Redis. Undefined when only Postgres can know the grant. */
async function findPolicy({ redis, memory }: PolicyDeps, grant: VerifiedGrant): Promise<Policy | undefined> {
  const remembered = memory.policies.get(grant.id);
  if (remembered) return remembered;
  const found = await findGrant(redis, grant.partition, grant.id);
  if (!found) return undefined;
  const policy = readDoc(grant, found.doc);
  memory.policies.set(grant.id, policy);
  return policy;
}

/** Reads a grant and its limits from Postgres in one statement, and opens the grant in Redis. */
async function openFromPostgres(
  deps: PolicyDeps,
  verified: VerifiedGrant,
): Promise<Opened | 'expired' | 'absent'> {
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
    externalUser: grant.externalUser ?? undefined,
    config: grant.config ?? undefined,
    server: grant.server ?? undefined,
    costLimited: state.some((each) => each.costLimitMicrousd !== null),
  };
  const opened = await openGrant(deps.redis, {
    ref: policy.ref,
    epoch: row.partitions.epoch,
    lastId: row.partitions.lastId,
    expiresAtMs: grant.expiresAt.getTime(),
    credential: row.credentials,
    budgets: state,
    doc: writeDoc(policy),
  });
  if (opened === 'ok') deps.memory.policies.set(grant.id, policy);
  return opened;
}

/**
 * Reads a grant with its limits. One statement reads one snapshot: the budgets' sums belong to the partition's cursor. It is
 * built once, because building it takes 400 µs of CPU.
 */
export function grantReader(db: Database) {
  let statement: ReturnType<typeof grantStatement> | undefined;
  return async (id: string) => {
    statement ??= grantStatement(db);
    const [row] = await statement.execute({ id }).catch((error: unknown) => {
      throw isDatabaseOutage(error)
        ? new RefusedError({ code: 'database_unavailable', retryAfterSeconds: 1 }, { cause: error })
        : error;
    });
    return row;
  };
}

function grantStatement(db: Database) {
  const shared = alias(budgets, 'shared');
  return db
    .select()
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(credentials, eq(credentials.id, grants.credentialId))
    .innerJoin(partitions, eq(partitions.id, budgets.partition))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .leftJoin(shared, eq(shared.id, virtualKeys.budgetId))
    .where(eq(grants.id, sql.placeholder('id')))
    .prepare('read_grant');
}

/** The policy as Redis stores it, with short names. */
type Doc = {
  acc: string;
  crd: string;
  budget: string[];
  usr?: string;
  cfg?: JsonObject;
  srv?: McpServerPolicy;
  lim?: true;
};

function writeDoc({ ref, accountId, externalUser, config, server, costLimited }: Policy): string {
  const doc: Doc = {
    acc: accountId,
    crd: ref.credentialId,
    budget: [...ref.budgetIds],
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
    externalUser: doc.usr,
    config: isJsonObject(doc.cfg) ? doc.cfg : undefined,
    server: doc.srv,
    costLimited: doc.lim === true,
  };
}
