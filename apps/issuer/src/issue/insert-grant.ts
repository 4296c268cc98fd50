import type { Database, Transaction } from '@presign/schema/database';
import { budgets, credentials, grants, sessions } from '@presign/schema/tables';
import { sql } from 'drizzle-orm';

type GrantRow = typeof grants.$inferSelect;

/** The row of an LLM grant, which has a method and paths, and no server. */
export type LlmGrantRow = Omit<
  GrantRow,
  'revokedAt' | 'expiryAnnounced' | 'bundleId' | 'server' | 'method' | 'paths'
> & {
  readonly kind: 'llm';
  readonly method: string;
  readonly paths: readonly string[];
};

/** What one issued LLM URL leaves in Postgres. */
export type GrantRows = {
  readonly grant: LlmGrantRow;
  readonly partition: number;
  /** Null: unlimited. */
  readonly maxUses: number | null;
  /** Null: no limit. */
  readonly costLimitMicrousd: number | null;
  /** Null: as many as come. */
  readonly callsPerMinute: number | null;
  /** The credential of the grant's own; undefined when it uses its virtual key's. */
  readonly sealed: string | undefined;
};

/** Writes a grant with its session (unless that is there), credential and limits: all of them or none. */
export type InsertGrant = (rows: GrantRows) => Promise<void>;

/**
 * Prepares the one statement that writes a grant: a single round trip, and atomic without a transaction around
 * it. Foreign keys are checked at its end, when all its rows are there.
 */
export function prepareInsertGrant(db: Database | Transaction): InsertGrant {
  const withOwnCredential = statement(db, true);
  const withAnothers = statement(db, false);
  return async ({ grant, sealed, ...budget }) => {
    const config = grant.config && JSON.stringify(grant.config);
    const metadata = grant.metadata && JSON.stringify(grant.metadata);
    const values = { ...grant, ...budget, config, metadata, sealed };
    await (sealed === undefined ? withAnothers : withOwnCredential).execute(values);
  };
}

function statement(db: Database | Transaction, ownCredential: boolean) {
  const ofAccount = { accountId: $('accountId'), createdAt: $('issuedAt') };
  const session = db.insert(sessions).values({ id: $('sessionId'), ...ofAccount });
  const credential = db
    .insert(credentials)
    .values({ id: $('credentialId'), ...ofAccount, sealed: $('sealed') });
  const limits = {
    maxUses: $('maxUses'),
    costLimitMicrousd: $('costLimitMicrousd'),
    callsPerMinute: $('callsPerMinute'),
  };
  const budget = db.insert(budgets).values({ id: $('budgetId'), partition: $('partition'), ...limits });
  const written = [
    db.$with('session').as(session.onConflictDoNothing().returning({ id: sessions.id })),
    ...(ownCredential ? [db.$with('credential').as(credential.returning({ id: credentials.id }))] : []),
    db.$with('budget').as(budget.returning({ id: budgets.id })),
  ];
  const grant = db
    .with(...written)
    .insert(grants)
    .values(GRANT);
  return grant.prepare(ownCredential ? 'insert_grant' : 'insert_grant_of_virtual_key');
}

const $ = (name: string) => sql.placeholder(name);
/** A column whose encoder does not know null. */
const raw = (name: string) => sql`${$(name)}`;

const GRANT = {
  id: $('id'),
  accountId: $('accountId'),
  sessionId: $('sessionId'),
  budgetId: $('budgetId'),
  credentialId: $('credentialId'),
  virtualKeyId: $('virtualKeyId'),
  kind: $('kind'),
  provider: $('provider'),
  method: $('method'),
  paths: $('paths'),
  config: raw('config'),
  externalSession: $('externalSession'),
  externalUser: $('externalUser'),
  metadata: raw('metadata'),
  issuedAt: $('issuedAt'),
  expiresAt: $('expiresAt'),
};
