import { type BudgetLimits, LIMIT_NAMES, limitKind, type McpServerPolicy } from '@presign/schema';
import { partitions } from '@presign/schema/ledger-tables';
import { budgets, credentials, grants, sessions } from '@presign/schema/tables';
import type { Database, Transaction } from '@presign/service/database';
import { sql } from 'drizzle-orm';
import { refuseEnded, STANDING_ACCOUNT, standingKey } from '../identity/standing.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

type GrantRow = typeof grants.$inferSelect;

/** The row of an LLM grant, which has a method and paths, and no server. */
type LlmGrantRow = Omit<
  GrantRow,
  | 'revokedAt'
  | 'expiryAnnounced'
  | 'signedUntil'
  | 'bundleId'
  | 'server'
  | 'credentialId'
  | 'method'
  | 'paths'
> & {
  readonly kind: 'llm';
  readonly credentialId: string;
  readonly method: string;
  readonly paths: readonly string[];
};

/** The values of all rows of one LLM grant. */
export type GrantRows = {
  readonly grant: LlmGrantRow;
  /** The revision of its API key by which it was judged. */
  readonly keyRevision: number;
  readonly partition: number;
  readonly limits: BudgetLimits;
  /** The credential of the grant itself; undefined when the grant uses that of its virtual key. */
  readonly sealed: string | undefined;
};

/**
 * Writes a grant with its budget, a new session and its own credential: all rows, or none if its API key has ended.
 * @returns the epoch of its partition, as it was before
 * @throws KeyEnded
 */
export type InsertGrant = (rows: GrantRows) => Promise<number>;

/**
 * Prepares the one statement that writes a grant: a single round trip, and atomic without a transaction. Postgres
 * checks foreign keys at the end of the statement, when all rows exist.
 */
export function prepareInsertGrant(db: Database | Transaction, now: () => number): InsertGrant {
  const withOwnCredential = insertStatement(db, true);
  const withSharedCredential = insertStatement(db, false);
  return async ({ grant, keyRevision, partition, limits, sealed }) => {
    const config = grant.config && JSON.stringify(grant.config);
    const models = grant.models && JSON.stringify(grant.models);
    const conditions = grant.conditions && JSON.stringify(grant.conditions);
    const metadata = grant.metadata && JSON.stringify(grant.metadata);
    const sharedBudgetIds = grant.sharedBudgetIds && `{${grant.sharedBudgetIds.join(',')}}`;
    const texts = { config, models, conditions, metadata, sharedBudgetIds, sealed };
    const values = {
      ...grant,
      keyRevision,
      partition,
      ...limits,
      ...texts,
      at: new Date(now()).toISOString(),
    };
    const statement = sealed === undefined ? withSharedCredential : withOwnCredential;
    const [written] = await statement.execute(values).catch(refuseEnded);
    return written?.epoch ?? 0;
  };
}

function insertStatement(db: Database | Transaction, ownCredential: boolean) {
  const own = { ...OF_ACCOUNT, id: $('credentialId'), sealed: $('sealed') };
  const grant = db
    .with(...ofStandingKey(db), ...(ownCredential ? [credentialRows(db, [own])] : []))
    .insert(grants)
    .values(GRANT)
    .returning(epochBefore());
  return grant.prepare(ownCredential ? 'insert_grant' : 'insert_grant_of_virtual_key');
}

/** The values of all rows of a bundle in a new session. */
export type BundleRows = {
  /** The columns that all its grants share. */
  readonly shared: Pick<
    GrantRow,
    | 'accountId'
    | 'apiKeyId'
    | 'sessionId'
    | 'budgetId'
    | 'conditions'
    | 'externalSession'
    | 'externalUser'
    | 'issuedAt'
    | 'expiresAt'
  >;
  /** The revision of their API key by which they were judged. */
  readonly keyRevision: number;
  readonly partition: number;
  readonly limits: BudgetLimits;
  /** The grant of the bundle itself, and its sealed document. */
  readonly bundle: Sealed & { readonly metadata: Record<string, unknown> | null };
  readonly servers: readonly (Sealed & { readonly server: McpServerPolicy })[];
};

/** A grant of a bundle, and the credential of its own. */
type Sealed = { readonly grantId: string; readonly credentialId: string; readonly sealed: string };

/**
 * Writes a bundle with its budget, a new session and all credentials in one statement: all rows, or none if its API key has
 * ended.
 * @returns the epoch of its partition, as it was before
 * @throws KeyEnded
 */
export type InsertBundle = (rows: BundleRows) => Promise<number>;

export function prepareInsertBundle({ db, now }: Pick<RouteDeps, 'db' | 'now'>): InsertBundle {
  // One statement for each number of servers, of which there are few.
  const statements = new Map<number, ReturnType<typeof bundleStatement>>();
  return async ({ shared, keyRevision, partition, limits, bundle, servers }) => {
    const statement = statements.get(servers.length) ?? bundleStatement(db, servers.length);
    statements.set(servers.length, statement);
    const metadata = bundle.metadata && JSON.stringify(bundle.metadata);
    const conditions = shared.conditions && JSON.stringify(shared.conditions);
    const values: Record<string, unknown> = {
      ...shared,
      keyRevision,
      conditions,
      partition,
      metadata,
      at: new Date(now()).toISOString(),
      ...limits,
    };
    for (const [i, { grantId, credentialId, sealed }] of [bundle, ...servers].entries()) {
      values[`id${i}`] = grantId;
      values[`credentialId${i}`] = credentialId;
      values[`sealed${i}`] = sealed;
    }
    for (const [i, { server }] of servers.entries()) values[`server${i + 1}`] = JSON.stringify(server);
    const [written] = await statement.execute(values).catch(refuseEnded);
    return written?.epoch ?? 0;
  };
}

/** Row 0 is the bundle's own. */
function bundleStatement(db: Database, servers: number) {
  const rows = Array.from({ length: servers + 1 }, (_, i) => i);
  const sealed = rows.map((i) => ({ ...OF_ACCOUNT, id: $(`credentialId${i}`), sealed: $(`sealed${i}`) }));
  const values = rows.map((i) => ({
    ...OF_BUNDLE,
    id: $(`id${i}`),
    credentialId: $(`credentialId${i}`),
    ...(i === 0
      ? { kind: 'mcp_bundle' as const, metadata: raw('metadata') }
      : { kind: 'mcp' as const, bundleId: $('id0'), server: raw(`server${i}`) }),
  }));
  return db
    .with(...ofStandingKey(db), credentialRows(db, sealed))
    .insert(grants)
    .values(values)
    .returning(epochBefore())
    .prepare(`insert_bundle_${servers}`);
}

const epochBefore = () => ({
  epoch: sql<number>`(SELECT ${partitions.epoch} FROM ${partitions} WHERE ${partitions.id} = ${$('partition')})`,
});

/** The rows that each issue writes, while its API key stands. */
function ofStandingKey(db: Database | Transaction) {
  const session = db.insert(sessions).values({ ...OF_ACCOUNT, id: $('sessionId') });
  const budget = db.insert(budgets).values({
    id: $('budgetId'),
    partition: $('partition'),
    ...LIMITS,
  });
  return [
    standingKey(db),
    db.$with('session').as(session.onConflictDoNothing().returning({ id: sessions.id })),
    db.$with('budget').as(budget.returning({ id: budgets.id })),
  ];
}

type CredentialValues = typeof OF_ACCOUNT & Record<'id' | 'sealed', ReturnType<typeof $>>;

const credentialRows = (db: Database | Transaction, values: CredentialValues[]) =>
  db.$with('credential').as(db.insert(credentials).values(values).returning({ id: credentials.id }));

const $ = (name: string) => sql.placeholder(name);
/** For a column whose encoder does not accept null. */
const raw = (name: string) => sql`${$(name)}`;

const LIMITS = Object.fromEntries(
  LIMIT_NAMES.map((name) => [limitKind(name).property, $(limitKind(name).property)]),
) as Record<keyof BudgetLimits, ReturnType<typeof $>>;

const OF_ACCOUNT = { accountId: STANDING_ACCOUNT, createdAt: $('issuedAt') };

const OF_BUNDLE = {
  accountId: STANDING_ACCOUNT,
  apiKeyId: $('apiKeyId'),
  sessionId: $('sessionId'),
  budgetId: $('budgetId'),
  provider: 'mcp',
  conditions: raw('conditions'),
  externalSession: $('externalSession'),
  externalUser: $('externalUser'),
  issuedAt: $('issuedAt'),
  expiresAt: $('expiresAt'),
};

const GRANT = {
  id: $('id'),
  accountId: STANDING_ACCOUNT,
  apiKeyId: $('apiKeyId'),
  sessionId: $('sessionId'),
  budgetId: $('budgetId'),
  credentialId: $('credentialId'),
  virtualKeyId: $('virtualKeyId'),
  kind: $('kind'),
  provider: $('provider'),
  method: $('method'),
  paths: $('paths'),
  config: raw('config'),
  models: raw('models'),
  conditions: raw('conditions'),
  externalSession: $('externalSession'),
  externalUser: $('externalUser'),
  metadata: raw('metadata'),
  sharedBudgetIds: raw('sharedBudgetIds'),
  issuedAt: $('issuedAt'),
  expiresAt: $('expiresAt'),
};
