import { randomUUID } from 'node:crypto';
import { seal, unseal } from '@presign/crypto';
import {
  changedLimits,
  choosePartition,
  conditionsOf,
  homePartition,
  type KeyPolicy,
  type McpBundle,
  type McpPresignAnswer,
  type McpPresignRequest,
  type McpServer,
  type McpServerPolicy,
  mcpBundle,
  mcpPresignAnswer,
  mcpPresignRequest,
  UNLIMITED,
} from '@presign/schema';
import { budgets, credentialContext, credentials, grants } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { eq } from 'drizzle-orm';
import { wholeSecond } from '../answers/unix-seconds.ts';
import { type Matched, matchBudgets, NO_BUDGETS } from '../budgets/match-budgets.ts';
import { countsSessions, obeyAccount, obeySessions } from '../grants/obey-account.ts';
import { answerBundle, type IssuedBundle, type IssuedServer, signServers } from '../grants/sign.ts';
import type { ApiKey } from '../identity/caller.ts';
import { mustStand } from '../identity/standing.ts';
import { claimIdempotencyKey, type EarlierGrant, readIdempotencyKey } from '../middleware/idempotency.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { joinSession } from '../sessions/join-session.ts';
import { type BundleRows, type InsertBundle, prepareInsertBundle } from './insert.ts';
import { mcpWarnings, obeyWarnings, warned } from './money-warnings.ts';
import { handsInRefreshToken, keepOauthCredential, lockOauth } from './oauth-credential.ts';
import { obeyMcpPolicy, obeyPolicyAgain, readPolicy } from './obey-policy.ts';

type Needs = Pick<
  RouteDeps,
  'plantSeed' | 'signingKey' | 'encryptionKeys' | 'providers' | 'issuerUrl' | 'gatewayUrl' | 'now'
>;

const ROUTE = 'POST /v2/mcp-presign';

/**
 * `POST /v2/mcp-presign`: writes a session, credentials, one budget, a grant for each server and a grant for the
 * bundle in one transaction.
 */
export const mcpPresign = route(
  {
    method: 'post',
    path: '/v2/mcp-presign',
    ownKey: true,
    summary: 'Issue a bundle of signed URLs for MCP servers',
    description:
      'Anyone with a URL can use its MCP server. All servers of the bundle share one budget of `max_uses` and `cost_limit`.',
    scope: 'presign',
    body: mcpPresignRequest,
    answer: mcpPresignAnswer,
    links: {
      grant_id: ['getGrant', 'changeGrant', 'revokeGrant'],
      session_id: ['getSession', 'changeSession', 'revokeSession'],
    },
    errors: ['policy_forbids', 'account_limit', 'session_conflict'],
  },
  (deps) => {
    const insert = prepareInsertBundle(deps);
    return async ({ apiKey, body, raw, c }) => {
      const key = readIdempotencyKey(c);
      const policy = readPolicy(apiKey);
      const request = obeyMcpPolicy(policy, body, raw.value);
      const warnings = mcpWarnings(request);
      obeyWarnings(policy, warnings);
      await obeyAccount(deps, apiKey, request.cost_limit);
      const issuedAt = wholeSecond(deps.now());
      const { id: apiKeyId, revision: keyRevision, accountId, hasBudgets } = apiKey;
      const by = { accountId, apiKeyId, keyRevision, hasBudgets, policy };
      const issue = { ...by, grantId: randomUUID(), request, issuedAt };
      const isAlone = key === undefined && !hasBudgets && readsNothing(request) && !countsSessions(apiKey);
      if (isAlone) return { ...(await inTime(issueNew(deps, insert, issue))), ...warned(warnings) };
      const repeat = key === undefined ? undefined : { key, body: raw.bytes };
      const issued = deps.db.transaction((tx) => issueOnce(tx, deps, issue, repeat, apiKey));
      return { ...(await inTime(issued)), ...warned(warnings) };
    };
  },
);

type Repeat = { readonly key: string; readonly body: Uint8Array };

/** A validated request that becomes a bundle. */
type BundleIssue = {
  /** The id of the bundle's own grant. */
  readonly grantId: string;
  readonly accountId: string;
  /** The API key that issues it. */
  readonly apiKeyId: string;
  /** The revision by which the request is judged. */
  readonly keyRevision: number;
  /** Whether the account has or had shared budgets. */
  readonly hasBudgets: boolean;
  /** The policy of the API key, which the request obeys. */
  readonly policy?: KeyPolicy | undefined;
  readonly request: McpPresignRequest;
  readonly issuedAt: Date;
};

/** Whether the rows of a request can be written without reading any, so that it needs no transaction. */
const readsNothing = (request: McpPresignRequest): boolean =>
  request.session_id === undefined && !request.servers.some(({ auth }) => handsInRefreshToken(auth));

/** Signs and writes a bundle in a new session. A bundle of one server leaves a seed of it in Redis once it is committed. */
async function issueNew(deps: Needs, insert: InsertBundle, issue: BundleIssue): Promise<McpPresignAnswer> {
  const { accountId, request } = issue;
  const { grant, servers } = planBundle(issue, NO_BUDGETS);
  const bundle = signServers(deps, grant, servers);
  const sealedAs = (credentialId: string, text: string) => {
    const { sealed } = sealedRow(deps, accountId, credentialId, text);
    return { credentialId, sealed };
  };
  const rows = {
    shared: sharedColumns(issue, { grant, servers }),
    keyRevision: issue.keyRevision,
    partition: grant.partition,
    limits: grant.limits,
    bundle: {
      grantId: grant.id,
      metadata: request.metadata ?? null,
      ...sealedAs(randomUUID(), JSON.stringify(bundle)),
    },
    servers: servers.map(({ grantId, server }) => ({
      grantId,
      server: policyOf(server),
      ...sealedAs(randomUUID(), JSON.stringify(server.auth)),
    })),
  };
  seedOnly(deps, rows, await insert(rows));
  return answerBundle(deps, grant, bundle);
}

/**
 * Leaves a seed of an only server. A seed makes the budget at zero, if its grant was not loaded. Where several servers share the
 * budget, another of them could have drawn on it.
 */
function seedOnly({ plantSeed }: Needs, rows: BundleRows, epoch: number): void {
  const { shared, servers, partition, limits } = rows;
  const [only, another] = servers;
  if (!only || another) return;
  const { accountId, apiKeyId, externalUser, conditions, expiresAt } = shared;
  const policy = {
    accountId,
    apiKeyId,
    externalUser,
    conditions,
    config: null,
    expiresAtMs: expiresAt.getTime(),
  };
  const budget = { ...limits, id: shared.budgetId, revision: 1 };
  const credential = { id: only.credentialId, version: 1, sealed: only.sealed };
  plantSeed(partition, only.grantId, { ...policy, epoch, credential, budget, server: only.server });
}

/** Signs and writes a bundle. A repeated `Idempotency-Key` finds the bundle written before. */
async function issueOnce(
  tx: Transaction,
  deps: Needs,
  issue: BundleIssue,
  repeat: Repeat | undefined,
  apiKey: ApiKey,
): Promise<McpPresignAnswer> {
  const { accountId, grantId, issuedAt } = issue;
  if (repeat) {
    const claim = { accountId, route: ROUTE, key: repeat.key, grantId };
    const earlier = await claimIdempotencyKey(tx, deps, claim, repeat.body);
    if (earlier) {
      obeyPolicyAgain(issue.policy, issue.apiKeyId, earlier);
      return answerBundle(deps, earlier, await loadBundle(tx, deps, earlier));
    }
  }
  await mustStand(tx, apiKey, deps.now());
  await obeySessions(tx, apiKey, issue.request.session_id, issuedAt);
  const { external_user: externalUser, metadata } = issue.request;
  const matchable = { ...issue, externalUser, metadata };
  const shared = issue.hasBudgets ? await matchBudgets(tx, matchable) : NO_BUDGETS;
  const plan = planBundle(issue, shared);
  const bundle = signServers(deps, plan.grant, plan.servers);
  const answer = answerBundle(deps, plan.grant, bundle);
  await joinSession(tx, accountId, plan.grant.sessionId, issuedAt);
  await writeBundle(tx, deps, issue, plan, bundle);
  return answer;
}

/** Loads the document of a bundle that was issued earlier: the URLs of its servers, with the tokens signed then. */
async function loadBundle(tx: Transaction, deps: Needs, grant: EarlierGrant): Promise<McpBundle> {
  const id = grant.credentialId ?? '';
  const [row] = await tx.select().from(credentials).where(eq(credentials.id, id));
  if (!row) throw new Error(`the bundle ${grant.id} has no document`);
  const text = unseal(deps.encryptionKeys, row.sealed, credentialContext(row.accountId, row.id));
  return mcpBundle.parse(JSON.parse(text));
}

/** The ids and times of a bundle, chosen before it is signed and written. */
type BundlePlan = {
  readonly grant: IssuedBundle & { readonly budgetId: string; readonly sharedBudgetIds: string[] | null };
  readonly servers: readonly IssuedServer[];
};

function planBundle(
  { grantId, accountId, hasBudgets, request, issuedAt }: BundleIssue,
  shared: Matched,
): BundlePlan {
  const budgetId = randomUUID();
  return {
    grant: {
      id: grantId,
      sessionId: request.session_id ?? randomUUID(),
      budgetId,
      partition: hasBudgets ? homePartition(accountId) : choosePartition(budgetId),
      sharedBudgetIds: shared.sharedIds ?? null,
      limits: changedLimits(UNLIMITED, request),
      conditions: conditionsOf(request),
      issuedAt,
      expiresAt: new Date(issuedAt.getTime() + request.expires_in * 1000),
    },
    servers: request.servers.map((server) => ({ grantId: randomUUID(), server })),
  };
}

/** Writes the rows of a bundle into an existing session: its budget, its credentials and its grants. */
async function writeBundle(
  tx: Transaction,
  deps: Needs,
  issue: BundleIssue,
  plan: BundlePlan,
  bundle: McpBundle,
): Promise<void> {
  const { accountId, request } = issue;
  const { budgetId, partition, limits } = plan.grant;
  await tx.insert(budgets).values({ id: budgetId, partition, ...limits });
  const ids = await writeCredentials(tx, deps, accountId, request.servers);
  // Sealed, because its URLs carry tokens. Stored, because a gateway cannot sign them.
  const documentId = randomUUID();
  const document = sealedRow(deps, accountId, documentId, JSON.stringify(bundle));
  await tx.insert(credentials).values(document);
  const ofServers = plan.servers.map(({ grantId, server }, i) => ({
    ...sharedColumns(issue, plan),
    id: grantId,
    kind: 'mcp' as const,
    credentialId: ids[i] ?? null,
    bundleId: plan.grant.id,
    server: policyOf(server),
  }));
  const ofBundle = {
    ...sharedColumns(issue, plan),
    id: plan.grant.id,
    kind: 'mcp_bundle' as const,
    credentialId: documentId,
    // Only here: metadata may have 64 KB, and a bundle many servers.
    metadata: request.metadata ?? null,
  };
  await tx.insert(grants).values([ofBundle, ...ofServers]);
}

/** The columns that all grants of a bundle share. Each has the external ids, because each call belongs to one grant. */
const sharedColumns = ({ accountId, apiKeyId, request }: BundleIssue, { grant }: BundlePlan) => ({
  accountId,
  apiKeyId,
  sessionId: grant.sessionId,
  budgetId: grant.budgetId,
  provider: 'mcp',
  conditions: grant.conditions,
  externalSession: request.external_session ?? null,
  externalUser: request.external_user ?? null,
  sharedBudgetIds: grant.sharedBudgetIds,
  issuedAt: grant.issuedAt,
  expiresAt: grant.expiresAt,
});

/** Returns the id of each server's credential, in the order of the servers. */
async function writeCredentials(
  tx: Transaction,
  deps: Needs,
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
    own.push(sealedRow(deps, accountId, id, JSON.stringify(auth)));
    ids.push(id);
  }
  if (own.length > 0) await tx.insert(credentials).values(own);
  return ids;
}

/** The row of a credential. Neither Postgres nor Redis ever has its text in clear. */
const sealedRow = (deps: Needs, accountId: string, id: string, text: string) => ({
  id,
  accountId,
  sealed: seal(deps.encryptionKeys, text, credentialContext(accountId, id)),
});

const policyOf = ({
  name,
  url,
  transport,
  pricing,
  tools,
  arguments: conditions,
}: McpServer): McpServerPolicy => ({
  name,
  url,
  transport,
  ...(pricing === undefined ? {} : { pricing }),
  ...(tools === undefined ? {} : { tools }),
  ...(conditions === undefined ? {} : { arguments: conditions }),
});
