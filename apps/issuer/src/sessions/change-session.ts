import {
  type ChangedSession,
  changedSession,
  idParams,
  RefusedError,
  SESSION_GRANTS_MAX,
  type SessionChange,
  sessionChange,
} from '@presign/schema';
import { isAliveInSql, timeInSql } from '@presign/schema/grant-status';
import { grants, sessions, virtualKeys } from '@presign/schema/tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, inArray, isNull, sql } from 'drizzle-orm';
import type { Context } from 'hono';
import { checkRevision, sendRevision } from '../answers/revision.ts';
import { recordChange } from '../events/audit-log.ts';
import { applyChange, type ChangeId, queueLimits } from '../grants/pending-changes.ts';
import {
  type AskedChange,
  findGrants,
  type GrantRow,
  hasEnded,
  lockGrants,
  storeChange,
  urlOf,
} from '../grants/store-change.ts';
import { lockBudgets } from '../grants/store-limits.ts';
import type { IssuerEnv } from '../identity/caller.ts';
import { mayRead, refuseUnseen } from '../identity/may-see.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';
import { findSession } from './get-session.ts';
import { summaryOf } from './list-sessions.ts';

type Needs = Pick<
  RouteDeps,
  'db' | 'signingKey' | 'providers' | 'prices' | 'issuerUrl' | 'gatewayUrl' | 'now'
>;

/** `PATCH /v1/sessions/{id}`: the session's name and metadata, and the limits and ends of all its live URLs at once. */
export const changeSession = route(
  {
    method: 'patch',
    path: '/v1/sessions/{id}',
    summary: 'Name a session, set its metadata, or change all its live URLs',
    description: `\`grants\` raises, lowers, extends or shortens up to ${SESSION_GRANTS_MAX} live URLs and bundles by the rules of \`PATCH /v1/grants/{id}\`. All of them are changed, or none. URLs that have ended stay ended. \`If-Match\` is for the revision of the session. Without the scope \`read\` the answer has only \`id\`, \`revision\` and \`changed\`.`,
    scope: 'presign',
    params: idParams,
    body: sessionChange,
    answer: changedSession,
    etag: true,
    pending: true,
    errors: ['not_found', 'grant_ended', 'revision_mismatch', 'policy_forbids', 'account_limit'],
  },
  (deps) =>
    async ({ apiKey, by, params, body, c }) => {
      const id = params.id.toLowerCase();
      const asked = { by, apiKey, id, change: body, c };
      const { changeId, ids } = await inTime(deps.db.transaction((tx) => store(tx, deps, asked)));
      const pending = await applyChange(deps, changeId);
      if (pending) return pending;
      return answerChange(deps, asked, ids);
    },
);

/** The answer to a change, with what the caller may see. */
async function answerChange(
  deps: Needs,
  { by, apiKey, id, change, c }: Asked,
  ids: readonly string[],
): Promise<ChangedSession> {
  const session = await inTime(findSession(deps, by.accountId, id));
  const rows = await inTime(findGrants(deps.db, inArray(grants.id, [...ids])));
  sendRevision(c, session);
  const asked = change.grants ?? {};
  const changed = rows.map((row) => ({ id: row.grants.id, url: urlOf(deps, row, asked, apiKey) }));
  const { revision, metadata } = session;
  return mayRead(apiKey) ? { ...summaryOf(session), metadata, changed } : { id, revision, changed };
}

type Asked = Omit<AskedChange, 'change'> & {
  readonly id: string;
  readonly change: SessionChange;
  readonly c: Context<IssuerEnv>;
};

/** Stores a change, and queues the limits and expiries of the URLs for Redis. Returns the ids of their grants. */
async function store(
  tx: Transaction,
  deps: Needs,
  asked: Asked,
): Promise<{ readonly changeId: ChangeId; readonly ids: string[] }> {
  const { by, id, change, c } = asked;
  const budgetIds = change.grants === undefined ? [] : await lockLiveBudgets(tx, deps, by.accountId, id);
  // Locked after the budgets and before the grants, in the same order as the ledger.
  const own = and(eq(sessions.id, id), eq(sessions.accountId, by.accountId));
  const [session] = await tx.select().from(sessions).where(own).for('no key update');
  if (!session) throw new RefusedError({ code: 'not_found' });
  await refuseUnseenOf(tx, asked);
  checkRevision(c, session);
  const live = change.grants === undefined ? [] : await lockLive(tx, deps, budgetIds);
  const { name = session.name, metadata = session.metadata } = change;
  const isOther = JSON.stringify(metadata) !== JSON.stringify(session.metadata);
  await recordChange(tx, by, {
    action: 'session.changed',
    target: { kind: 'session', id },
    before: { name: session.name },
    after: { name, ...(isOther && { metadata: 'changed' }), ...(change.grants && { urls: live.length }) },
  });
  const areChanged = await storeAll(tx, deps, asked, live);
  if (areChanged || isOther || name !== session.name)
    await tx
      .update(sessions)
      .set({ name, metadata, revision: session.revision + 1 })
      .where(own);
  const changeId = await queueLimits(tx, ...live.map(({ row }) => row.budgets.id));
  return { changeId, ids: live.map(({ row }) => row.grants.id) };
}

/**
 * Refuses a change of a session if it has a URL that the key may not see at all.
 * @throws RefusedError `policy_forbids`
 */
async function refuseUnseenOf(tx: Transaction, { apiKey, id }: Asked): Promise<void> {
  const isOther = sql`${grants.apiKeyId} is distinct from ${apiKey.id}`;
  const ofOthers = tx
    .select({ apiKeyId: grants.apiKeyId })
    .from(grants)
    .where(and(eq(grants.sessionId, id), isOther));
  for (const grant of await ofOthers.limit(1)) refuseUnseen(apiKey, grant);
}

type Live = { readonly row: GrantRow; readonly all: Parameters<typeof storeChange>[4] };

/**
 * Locks the budgets of the URLs and bundles of a session that have not ended. A URL that joins the session meanwhile is not changed.
 * @throws RefusedError `invalid_request` if there are too many
 */
async function lockLiveBudgets(tx: Transaction, { now }: Needs, accountId: string, sessionId: string) {
  const isLive = and(
    eq(grants.accountId, accountId),
    eq(grants.sessionId, sessionId),
    isNull(grants.bundleId),
    isAliveInSql(timeInSql(now())),
  );
  const rows = await tx
    .select({ id: grants.budgetId })
    .from(grants)
    .innerJoin(sessions, eq(sessions.id, grants.sessionId))
    .leftJoin(virtualKeys, eq(virtualKeys.id, grants.virtualKeyId))
    .where(isLive)
    .limit(SESSION_GRANTS_MAX + 1);
  if (rows.length > SESSION_GRANTS_MAX) throw tooMany();
  const ids = rows.map(({ id }) => id);
  await lockBudgets(tx, ids);
  return ids;
}

/**
 * Locks the grants of these budgets, and checks again which have not ended.
 * @throws RefusedError `grant_ended` if all have
 */
async function lockLive(
  tx: Transaction,
  { now }: Needs,
  budgetIds: readonly string[],
): Promise<readonly Live[]> {
  const locked = await lockGrants(tx, budgetIds);
  const rows = await findGrants(tx, and(isNull(grants.bundleId), inArray(grants.budgetId, [...budgetIds])));
  const live = rows.filter((row) => !hasEnded(row, now()));
  if (live.length === 0) throw new RefusedError({ code: 'grant_ended', message: NONE_LIVE });
  return live.map((row) => ({ row, all: locked.get(row.budgets.id) ?? [] }));
}

const NONE_LIVE =
  'Every URL of this session has expired or was revoked, and such a URL never comes back. Issue a new URL.';

const tooMany = () =>
  new RefusedError({
    code: 'invalid_request',
    param: 'grants',
    message: `grants: this session has more than ${SESSION_GRANTS_MAX} live URLs and bundles. Change each with PATCH /v1/grants/{id}.`,
  });

/** Returns whether any URL is changed. A refusal says which one refuses. */
async function storeAll(
  tx: Transaction,
  deps: Needs,
  { by, apiKey, change }: Asked,
  live: readonly Live[],
): Promise<boolean> {
  let areChanged = false;
  for (const { row, all } of live) {
    const asked = { by, apiKey, change: change.grants ?? {} };
    const stored = storeChange(tx, deps, asked, row, all);
    areChanged = (await stored.catch(refuseFor(row.grants.id))) || areChanged;
  }
  return areChanged;
}

/** The refusal of one URL as that of its session. */
const refuseFor =
  (id: string) =>
  (error: unknown): never => {
    if (!(error instanceof RefusedError)) throw error;
    const { refusal, message } = error;
    throw new RefusedError({
      ...refusal,
      param: `grants.${refusal.param}`,
      message: `grants.${message} The URL with the id ${id} refuses it, so none is changed.`,
    });
  };
