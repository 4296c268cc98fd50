import { randomUUID } from 'node:crypto';
import { seal } from '@presign/crypto';
import type { McpBundle, McpPresignRequest, McpServer, McpServerPolicy } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { budgets, credentialContext, credentials, grants } from '@presign/schema/tables';
import type { IssuerDeps } from '../deps.ts';
import { choosePartition } from './choose-partition.ts';
import { handsInRefreshToken, keepOauthCredential, lockOauth } from './oauth-credential.ts';
import type { IssuedBundle, IssuedServer } from './sign-bundle.ts';

/** A request that is to become a bundle. */
export type BundleIssue = {
  /** Of the bundle's own grant. */
  readonly grantId: string;
  readonly accountId: string;
  readonly request: McpPresignRequest;
  readonly issuedAt: Date;
};

/** The ids and times of a bundle that is to be signed and written. */
export type BundlePlan = {
  readonly grant: IssuedBundle & { readonly budgetId: string };
  readonly servers: readonly IssuedServer[];
};

/** Chooses what a bundle's tokens and rows say of it. */
export function planBundle({ grantId, request, issuedAt }: BundleIssue): BundlePlan {
  const budgetId = randomUUID();
  return {
    grant: {
      id: grantId,
      sessionId: request.session_id ?? randomUUID(),
      budgetId,
      partition: choosePartition(budgetId),
      issuedAt,
      expiresAt: new Date(issuedAt.getTime() + request.expires_in * 1000),
    },
    servers: request.servers.map((server) => ({ grantId: randomUUID(), server })),
  };
}

/** Writes a bundle into a session that is there: its budget, its credentials and its grants. */
export async function writeBundle(
  tx: Transaction,
  deps: IssuerDeps,
  { accountId, request }: BundleIssue,
  plan: BundlePlan,
  bundle: McpBundle,
): Promise<void> {
  const { budgetId, partition } = plan.grant;
  const maxUses = request.max_uses === -1 ? null : request.max_uses;
  await tx.insert(budgets).values({
    id: budgetId,
    partition,
    maxUses,
    costLimitMicrousd: request.cost_limit ?? null,
    callsPerMinute: request.calls_per_minute ?? null,
  });
  const ids = await writeCredentials(tx, deps, accountId, request.servers);
  // Sealed, because the URLs in it carry tokens; kept, because a gateway cannot sign them again.
  const documentId = randomUUID();
  const document = sealed(deps, accountId, documentId, JSON.stringify(bundle));
  await tx.insert(credentials).values(document);
  const ofServers = plan.servers.map(({ grantId, server }, i) => ({
    ...common(accountId, request, plan),
    id: grantId,
    kind: 'mcp' as const,
    credentialId: ids[i] ?? null,
    bundleId: plan.grant.id,
    server: policyOf(server),
  }));
  const ofBundle = {
    ...common(accountId, request, plan),
    id: plan.grant.id,
    kind: 'mcp_bundle' as const,
    credentialId: documentId,
    // Once for all: 64 KB for each server would be many.
    metadata: request.metadata ?? null,
  };
  await tx.insert(grants).values([ofBundle, ...ofServers]);
}

/** What all grants of a bundle have alike; each has the external ids, for a call is billed by its own grant. */
const common = (accountId: string, request: McpPresignRequest, { grant }: BundlePlan) => ({
  accountId,
  sessionId: grant.sessionId,
  budgetId: grant.budgetId,
  provider: 'mcp',
  externalSession: request.external_session ?? null,
  externalUser: request.external_user ?? null,
  issuedAt: grant.issuedAt,
  expiresAt: grant.expiresAt,
});

/** Each server's credential, in their order. */
async function writeCredentials(
  tx: Transaction,
  deps: IssuerDeps,
  accountId: string,
  servers: readonly McpServer[],
): Promise<string[]> {
  await lockOauth(tx, deps, accountId, servers.map(({ auth }) => auth).filter(handsInRefreshToken));
  const own: (typeof credentials.$inferInsert)[] = [];
  const ids: string[] = [];
  for (const { auth } of servers) {
    if (handsInRefreshToken(auth)) {
      ids.push(await keepOauthCredential(tx, deps, accountId, auth));
      continue;
    }
    const id = randomUUID();
    own.push(sealed(deps, accountId, id, JSON.stringify(auth)));
    ids.push(id);
  }
  if (own.length > 0) await tx.insert(credentials).values(own);
  return ids;
}

/** A credential as it is written: neither Postgres nor Redis ever has it in clear. */
const sealed = (deps: IssuerDeps, accountId: string, id: string, text: string) => ({
  id,
  accountId,
  sealed: seal(deps.encryptionKeys, text, credentialContext(accountId, id)),
});

const policyOf = ({ name, url, transport, pricing, tools }: McpServer): McpServerPolicy => ({
  name,
  url,
  transport,
  ...(pricing === undefined ? {} : { pricing }),
  ...(tools === undefined ? {} : { tools }),
});
