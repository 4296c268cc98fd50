import { findCredential, findGrant, type GrantRef, type Opened, openGrant } from '@presign/limits';
import { isJsonObject, type JsonObject, type McpServerPolicy, RefusedError } from '@presign/schema';
import { isDatabaseOutage } from '@presign/schema/database';
import { budgets, credentials, grants, partitions, sessions, virtualKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { alias } from 'drizzle-orm/pg-core';
import { LRUCache } from 'lru-cache';
import type { GatewayDeps } from '../app.ts';
import type { VerifiedGrant } from './verify.ts';

/** What the issuer laid down for a grant beyond its token. Never changes while the grant lives. */
export type Policy = {
  readonly ref: GrantRef;
  readonly accountId: string;
  readonly externalUser: string | undefined;
  readonly config: JsonObject | undefined;
  /** Of an MCP server's grant. */
  readonly server: McpServerPolicy | undefined;
  /** Whether any of its budgets limits spending. */
  readonly costLimited: boolean;
};

/** A credential as stored: sealed, of one version. */
export type SealedCredential = { readonly version: number; readonly sealed: string };

/** What a gateway remembers of grants: nothing that counts, nothing in clear. */
export type GrantMemory = {
  readonly policies: LRUCache<string, Policy>;
  readonly credentials: LRUCache<string, SealedCredential>;
};

export const grantMemory = (): GrantMemory => ({
  policies: new LRUCache({ max: 10_000 }),
  credentials: new LRUCache({ max: 10_000 }),
});

type Deps = Pick<GatewayDeps, 'db' | 'redis'> & { readonly memory: GrantMemory };

/** A grant's policy from memory, then Redis; undefined when only Postgres can know. */
export async function findPolicy({ redis, memory }: Deps, grant: VerifiedGrant): Promise<Policy | undefined> {
  const remembered = memory.policies.get(grant.id);
  if (remembered) return remembered;
  const found = await findGrant(redis, grant.partition, grant.id);
  if (!found) return undefined;
  const policy = readDoc(grant, found.doc);
  memory.policies.set(grant.id, policy);
  return policy;
}

/** Reads a grant and its limits from Postgres in one statement, and opens it in Redis. */
export async function openFromPostgres(deps: Deps, grant: VerifiedGrant): Promise<Opened | 'absent'> {
  const row = await readGrant(deps, grant.id);
  if (!row) return 'absent';
  if (
    row.grants.revokedAt ||
    row.sessions.revokedAt ||
    row.credentials.revokedAt ||
    row.virtual_keys?.revokedAt
  ) {
    return 'revoked';
  }
  const own = { ...row.budgets, endsWithGrant: true };
  const shared = row.shared ? [{ ...row.shared, endsWithGrant: false }] : [];
  const state = [own, ...shared];
  const policy: Policy = {
    ref: {
      id: grant.id,
      partition: row.budgets.partition,
      credentialId: row.credentials.id,
      budgetIds: state.map((budget) => budget.id),
    },
    accountId: row.grants.accountId,
    externalUser: row.grants.externalUser ?? undefined,
    config: row.grants.config ?? undefined,
    server: row.grants.server ?? undefined,
    costLimited: state.some((budget) => budget.costLimitMicrousd !== null),
  };
  const opened = await openGrant(deps.redis, {
    ref: policy.ref,
    epoch: row.partitions.epoch,
    lastId: row.partitions.lastId,
    expiresAtMs: row.grants.expiresAt.getTime(),
    credential: row.credentials,
    budgets: state,
    doc: writeDoc(policy),
  });
  if (opened === 'ok') deps.memory.policies.set(grant.id, policy);
  return opened;
}

/** A credential of the version that admission named: from memory, then Redis. */
export async function findSealed(
  { redis, memory }: Deps,
  ref: GrantRef,
  version: number,
): Promise<SealedCredential | undefined> {
  const remembered = memory.credentials.get(ref.credentialId);
  if (remembered?.version === version) return remembered;
  const found = await findCredential(redis, ref.partition, ref.credentialId);
  if (found) memory.credentials.set(ref.credentialId, found);
  return found;
}

/** One statement, one snapshot: the budgets' figures and the cursor they are true for belong together. */
async function readGrant({ db }: Deps, id: string) {
  const shared = alias(budgets, 'shared');
  const [row] = await db
    .select()
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .innerJoin(budgets, eq(budgets.id, grants.budgetId))
    .innerJoin(credentials, eq(credentials.id, grants.credentialId))
    .innerJoin(partitions, eq(partitions.id, budgets.partition))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .leftJoin(shared, eq(shared.id, virtualKeys.budgetId))
    .where(eq(grants.id, id))
    .catch((error: unknown) => {
      throw isDatabaseOutage(error)
        ? new RefusedError({ code: 'database_unavailable', retryAfterSeconds: 1 }, { cause: error })
        : error;
    });
  return row;
}

/** What Redis keeps of the policy, in short names. */
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
