import { randomUUID } from 'node:crypto';
import { seal } from '@presign/crypto';
import {
  changedLimits,
  choosePartition,
  conditionsOf,
  homePartition,
  type KeyPolicy,
  ONE_YEAR_SECONDS,
  type PresignRequest,
  presignAnswer,
  presignRequest,
  RefusedError,
  UNLIMITED,
} from '@presign/schema';
import { budgets, credentialContext, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq } from 'drizzle-orm';
import { wholeSecond } from '../answers/unix-seconds.ts';
import { type Matched, matchBudgets, NO_BUDGETS } from '../budgets/match-budgets.ts';
import {
  type Asked,
  checkConfig,
  checkKey,
  checkModels,
  checkPaths,
  checkSocketConfig,
  checkSockets,
  checkSpending,
  checkTokens,
  couldDie,
  findProvider,
} from '../grants/check-callable.ts';
import { countsSessions, obeyAccount, obeySessions } from '../grants/obey-account.ts';
import { type IssuedGrant, signGrant } from '../grants/sign.ts';
import type { ApiKey } from '../identity/caller.ts';
import { claimIdempotencyKey, type EarlierGrant, readIdempotencyKey } from '../middleware/idempotency.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { joinSession } from '../sessions/join-session.ts';
import { type GrantRows, type InsertGrant, prepareInsertGrant } from './insert.ts';
import { lockLimits } from './lock-limits.ts';
import { llmWarnings, obeyWarnings, warned } from './money-warnings.ts';
import { obeyPolicy, obeyPolicyAgain, obeyPolicyWith, readPolicy } from './obey-policy.ts';

type Needs = Pick<
  RouteDeps,
  | 'db'
  | 'plantSeed'
  | 'signingKey'
  | 'encryptionKeys'
  | 'providers'
  | 'prices'
  | 'issuerUrl'
  | 'gatewayUrl'
  | 'now'
>;

const ROUTE = 'POST /v1/presign';

/** `POST /v1/presign`: writes session, credential, limits and grant at once, and then signs the URL. */
export const presign = route(
  {
    method: 'post',
    path: '/v1/presign',
    ownKey: true,
    summary: 'Issue a signed URL for an LLM provider',
    description:
      'Anyone with the URL can call the provider through it until the URL expires or reaches a limit. Give `client_api_key` or `virtual_key`. If you give both, the virtual key is used.',
    scope: 'presign',
    body: presignRequest,
    answer: presignAnswer,
    links: {
      grant_id: ['getGrant', 'changeGrant', 'revokeGrant'],
      session_id: ['getSession', 'changeSession', 'revokeSession'],
    },
    errors: ['unknown_provider', 'policy_forbids', 'account_limit', 'session_conflict'],
  },
  (deps) => {
    const insert = insertAndSeed(deps);
    return async ({ apiKey, body: asked, raw, c }) => {
      const repeatKey = readIdempotencyKey(c);
      const provider = findProvider(deps.providers, asked.provider);
      const pathNames = checkPaths(provider, raw.value, asked);
      const policy = readPolicy(apiKey);
      const request = obeyPolicy(policy, { provider, request: asked, pathNames, body: raw.value });
      if (request.virtual_key === undefined)
        checkKey(provider, 'client_api_key', request.client_api_key ?? '');
      await obeyAccount(deps, apiKey, request.cost_limit);

      const issuedAt = wholeSecond(deps.now());
      const issue = {
        grantId: randomUUID(),
        accountId: apiKey.accountId,
        apiKeyId: apiKey.id,
        keyRevision: apiKey.revision,
        hasBudgets: apiKey.hasBudgets,
        policy,
        provider,
        request,
        pathNames,
        issuedAt,
      };
      const repeat = repeatKey === undefined ? undefined : { key: repeatKey, body: raw.bytes };
      const grant = await inTime(issueOnce(deps, insert, issue, repeat, apiKey));
      return { ...signGrant(deps, grant), ...warned(await llmWarnings(deps, provider, grant)) };
    };
  },
);

type Repeat = { readonly key: string; readonly body: Uint8Array };

/** Writes a grant. A repeated `Idempotency-Key` finds the grant written before. */
async function issueOnce(
  deps: Needs,
  insert: InsertGrant,
  issue: Issue,
  repeat: Repeat | undefined,
  apiKey: ApiKey,
): Promise<Written> {
  const isAlone = repeat === undefined && !issue.hasBudgets && readsNothing(issue.request);
  if (isAlone && !countsSessions(apiKey)) return writeGrant(deps, insert, issue, undefined);
  return deps.db.transaction(async (tx) => {
    const { accountId, grantId } = issue;
    const earlier =
      repeat &&
      (await claimIdempotencyKey(
        tx,
        deps,
        { accountId, route: ROUTE, key: repeat.key, grantId },
        repeat.body,
      ));
    if (earlier) {
      obeyPolicyAgain(issue.policy, issue.apiKeyId, earlier);
      return asIssued(earlier);
    }
    await obeySessions(tx, apiKey, issue.request.session_id, issue.issuedAt);
    return writeGrant(deps, prepareInsertGrant(tx, deps.now), issue, tx);
  });
}

/** A stored LLM grant, with the models that its calls may use. */
type Written = IssuedGrant & Pick<GrantRows['grant'], 'models'>;

/** An LLM grant that was written earlier. */
function asIssued(grant: EarlierGrant): Written {
  const { method, paths } = grant;
  if (method === null || paths === null) throw new Error(`grant ${grant.id} is not an LLM grant`);
  return { ...grant, method, paths };
}

/** A validated request that becomes a grant. */
export type Issue = Asked & {
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
  readonly issuedAt: Date;
};

/**
 * Writes the rows of a grant: session, credential, budget and grant.
 * @param tx needed for a request that names a session or a virtual key, and for an account with budgets: these are read
 * @throws RefusedError `invalid_request`, `policy_forbids`, `session_conflict`; KeyEnded
 */
export async function writeGrant(
  deps: Needs,
  insert: InsertGrant,
  issue: Issue,
  tx: Transaction | undefined,
): Promise<Written> {
  const { request, accountId, issuedAt } = issue;
  const virtualKey = tx && (await findVirtualKey(tx, accountId, request));
  if (virtualKey) obeyPolicyWith(issue.policy, issue.provider, inherited(request, virtualKey));
  const shared = tx && issue.hasBudgets ? await matchBudgets(tx, matchable(issue)) : NO_BUDGETS;
  const rows = grantRows(deps, issue, virtualKey, shared);
  const { config } = rows.grant;
  checkConfig(issue, config);
  checkModels(issue, config);
  checkSockets(issue);
  checkSocketConfig(issue, config);
  const drawn = { budgetId: virtualKey?.budgetId, sharedIds: shared.sharedIds };
  const limited = {
    cost: virtualKey?.costLimited || shared.costLimited,
    tokens: shared.tokenLimited,
    ...(tx && couldDie(deps, issue, config) ? await lockLimits(tx, drawn) : undefined),
  };
  checkTokens(issue, limited.tokens);
  if (rows.limits.costLimitMicrousd !== null || limited.cost) checkSpending(deps, issue, config);
  if (issue.policy?.refuse_warnings)
    obeyWarnings(
      issue.policy,
      await llmWarnings(deps, issue.provider, { ...rows.grant, limits: rows.limits }),
    );
  if (tx && request.session_id !== undefined) await joinSession(tx, accountId, request.session_id, issuedAt);
  await insert(rows);
  const { partition, limits } = rows;
  return { ...rows.grant, partition, limits };
}

const matchable = ({ request, ...issue }: Issue) => ({
  ...issue,
  virtualKeyId: request.virtual_key,
  externalUser: request.external_user,
  metadata: request.metadata,
});

/** Whether the rows of a request can be written without reading any, so that it needs no transaction. */
export const readsNothing = (request: PresignRequest): boolean =>
  request.session_id === undefined && request.virtual_key === undefined;

/** Everything that a grant inherits from its virtual key. */
type VirtualKey = {
  readonly id: string;
  readonly credentialId: string;
  readonly config: Record<string, unknown> | null;
  readonly budgetId: string;
  /** Partition of its budget, which its grants must share. */
  readonly partition: number;
  /** Its budget limits spending. */
  readonly costLimited: boolean;
};

/** Finds the virtual key that a request names. It takes precedence over `client_api_key`. */
async function findVirtualKey(
  tx: Transaction,
  accountId: string,
  request: PresignRequest,
): Promise<VirtualKey | undefined> {
  if (request.virtual_key === undefined) return undefined;
  const [row] = await tx
    .select()
    .from(virtualKeys)
    .innerJoin(budgets, eq(budgets.id, virtualKeys.budgetId))
    .where(and(eq(virtualKeys.accountId, accountId), eq(virtualKeys.id, request.virtual_key)));
  const key = row?.virtual_keys;
  if (!key) throw wrongVirtualKey('this virtual key does not exist.');
  if (key.revokedAt) throw wrongVirtualKey('this virtual key has been revoked.');
  if (key.provider !== request.provider) throw wrongVirtualKey(`this virtual key is for ${key.provider}.`);
  return {
    id: key.id,
    credentialId: key.credentialId,
    config: key.config,
    budgetId: row.budgets.id,
    partition: row.budgets.partition,
    costLimited: row.budgets.costLimitMicrousd !== null,
  };
}

const wrongVirtualKey = (problem: string) =>
  new RefusedError({ code: 'invalid_request', param: 'virtual_key', message: `virtual_key: ${problem}` });

function grantRows(
  deps: Needs,
  issue: Issue,
  virtualKey: VirtualKey | undefined,
  shared: Matched,
): GrantRows {
  const { request, accountId, issuedAt } = issue;
  const seconds = request.expires_in === -1 ? ONE_YEAR_SECONDS : request.expires_in;
  const budgetId = randomUUID();
  const credentialId = virtualKey?.credentialId ?? randomUUID();
  return {
    grant: {
      id: issue.grantId,
      accountId,
      apiKeyId: issue.apiKeyId,
      sessionId: request.session_id ?? randomUUID(),
      budgetId,
      credentialId,
      virtualKeyId: virtualKey?.id ?? null,
      kind: 'llm',
      provider: request.provider,
      method: request.method,
      paths: request.path,
      config: mergedConfig(request, virtualKey),
      models: request.models ?? null,
      conditions: conditionsOf(request),
      externalSession: request.external_session ?? null,
      externalUser: request.external_user ?? null,
      metadata: request.metadata ?? null,
      sharedBudgetIds: shared.sharedIds ?? null,
      issuedAt,
      expiresAt: new Date(issuedAt.getTime() + seconds * 1000),
    },
    keyRevision: issue.keyRevision,
    // One script must decide on all budgets of a call.
    partition: issue.hasBudgets
      ? homePartition(accountId)
      : (virtualKey?.partition ?? choosePartition(budgetId)),
    limits: changedLimits(UNLIMITED, request),
    sealed: virtualKey ? undefined : sealedKey(deps, request, credentialContext(accountId, credentialId)),
  };
}

/** The request's config takes precedence over that of the virtual key, field by field. */
function mergedConfig(request: PresignRequest, virtualKey: VirtualKey | undefined) {
  if (!virtualKey?.config) return request.config ?? null;
  return { ...inherited(request, virtualKey), ...request.config };
}

/** The fields of a virtual key's config that a URL has. */
const inherited = ({ config = {} }: PresignRequest, virtualKey: VirtualKey) =>
  Object.fromEntries(
    Object.entries(virtualKey.config ?? {}).filter(([field]) => !Object.hasOwn(config, field)),
  );

/** Sealed before it leaves this process, so that neither Postgres nor Redis ever has the key in plain text. */
const sealedKey = (deps: Needs, request: PresignRequest, context: string) =>
  seal(deps.encryptionKeys, request.client_api_key ?? '', context);

/** Writes a grant, and leaves a seed of it in Redis once it is committed. Do not use it in a transaction, which commits later. */
function insertAndSeed({ db, now, plantSeed }: Needs): InsertGrant {
  const insert = prepareInsertGrant(db, now);
  return async (rows) => {
    const { grant, partition, limits, sealed = '' } = rows;
    const { accountId, apiKeyId, externalUser, config, models, conditions, credentialId } = grant;
    const epoch = await insert(rows);
    plantSeed(partition, grant.id, {
      epoch,
      accountId,
      apiKeyId,
      externalUser,
      config,
      models,
      conditions,
      expiresAtMs: grant.expiresAt.getTime(),
      credential: { id: credentialId, version: 1, sealed },
      budget: { ...limits, id: grant.budgetId, revision: 1 },
    });
    return epoch;
  };
}
