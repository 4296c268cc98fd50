import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { PARTITIONS } from '@presign/schema';
import { partitions } from '@presign/schema/ledger-tables';
import { FIRST_MIGRATION, MIGRATIONS } from '@presign/schema/migrations';
import * as tables from '@presign/schema/tables';
import { sql } from 'drizzle-orm';
import { drizzle, type PostgresJsDatabase } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { type Environment, MALFORMED, parseVariable, readVariable } from './read-variable.ts';

/** Postgres through Drizzle, whichever engine is behind it. */
export type Database = PostgresJsDatabase<typeof tables>;

/** How every Drizzle instance of the project is made. */
export const DRIZZLE = { schema: tables, casing: 'snake_case' } as const;

/** How a service connects to Postgres: the variables that begin with `DATABASE_`. */
export type DatabaseSettings = {
  readonly poolSize: number;
  /** How long a connection may take before a request fails. */
  readonly connectSeconds: number;
  /**
   * How long one statement may take before Postgres ends it. The driver, as patched here, gives up a connection that stays
   * silent for one more second, because a server that hangs never answers. 0: neither is bounded.
   */
  readonly statementSeconds: number;
  /** Whether statements have names, by which a connection knows them again. */
  readonly prepare: boolean;
};

/** Reads how a service connects to Postgres. @throws VariableError */
export const readDatabaseSettings = (env: Environment): DatabaseSettings => ({
  poolSize: readVariable(env, 'DATABASE_POOL_SIZE', 10),
  connectSeconds: readVariable(env, 'DATABASE_CONNECT_TIMEOUT_SECONDS', 5),
  statementSeconds: readVariable(env, 'DATABASE_STATEMENT_TIMEOUT_SECONDS', 10),
  prepare: readVariable(env, 'DATABASE_PREPARE', true),
});

/**
 * `backoff`: the next attempt comes soon, so that a waiting request does not learn of an outage late. `fetch_types`:
 * Drizzle reads arrays itself.
 */
const OPTIONS = {
  backoff: () => 0.1,
  fetch_types: false,
  onnotice: () => {},
};

/**
 * Opens a pool to a Postgres server; connects with the first query.
 * @throws VariableError when the URL is malformed
 */
export function connectDatabase(
  url: string,
  settings = readDatabaseSettings({}),
): { db: Database; close: () => Promise<void> } {
  const { poolSize, connectSeconds, statementSeconds, prepare } = settings;
  const options = {
    ...OPTIONS,
    ...ipv6In(url),
    max: poolSize,
    connect_timeout: connectSeconds,
    prepare,
    connection: { statement_timeout: statementSeconds * 1_000 },
  };
  const client = parseVariable('DATABASE_URL', () => postgres(url, options), MALFORMED);
  const db = endingIdle(drizzle({ client, ...DRIZZLE }), statementSeconds * IDLE_STATEMENTS * 1_000);
  return { db, close: () => client.end({ timeout: CLOSE_SECONDS }) };
}

/**
 * Opens the one session of an engine in this process. `connect` returns a line that speaks Postgres' protocol with it, so
 * that the driver, its types and its errors are those of a server.
 */
export function connectEngine(connect: () => Duplex): { db: Database; close: () => Promise<void> } {
  // The driver's types lack `socket`. By default, the driver ends a session after an hour.
  const options = { ...OPTIONS, max: 1, max_lifetime: null, user: 'postgres', socket: async () => connect() };
  const client = postgres(options as postgres.Options<Record<string, never>>);
  return { db: drizzle({ client, ...DRIZZLE }), close: () => client.end({ timeout: CLOSE_SECONDS }) };
}

/** A transaction may wait for its service, and so for Redis, as long as this many statements may take. */
const IDLE_STATEMENTS = 3;

/**
 * Makes Postgres end a transaction that hears nothing from its service for so long, because a service that is frozen would
 * keep its locks for good. Each transaction says so itself, since PgBouncer in transaction mode keeps no setting of a session.
 * The statement does not wait for its answer, so it costs no round trip. 0: such a transaction is not ended.
 */
function endingIdle<T extends Database>(db: T, idleMs: number): T {
  if (idleMs === 0) return db;
  const begin = db.transaction.bind(db);
  db.transaction = (run, config) =>
    begin((tx) => {
      // If it fails, so does the rest of the transaction.
      tx.execute(sql.raw(`set local idle_in_transaction_session_timeout = ${idleMs}`)).catch(() => {});
      return run(tx);
    }, config);
  return db;
}

/**
 * The host and port of a URL whose host is an IPv6 address, as lists. The driver cuts an address at its first colon unless it gets a
 * list, which its types do not know.
 */
function ipv6In(url: string): object {
  const [, host, port = '5432'] = /^[^/]+\/\/(?:[^@/]*@)?\[([^\]]+)\](?::(\d+))?(?:[/?]|$)/.exec(url) ?? [];
  return host === undefined ? {} : { host: [host], port: [Number(port)] };
}

/** How long queries under way may take when a pool is closed. */
const CLOSE_SECONDS = 5;

/**
 * Brings a Postgres server's tables up to date. A lock lets several processes try at once. A transaction of its own holds the
 * lock, because a pooler such as PgBouncer may give each transaction another session.
 */
export async function migrateDatabase(url: string): Promise<void> {
  const client = postgres(url, {
    ...OPTIONS,
    ...ipv6In(url),
    connect_timeout: 5,
    max: 2,
    prepare: false,
  });
  try {
    await client.begin(async (locking) => {
      await locking`select pg_advisory_xact_lock(${MIGRATION_LOCK})`;
      await updateTables(drizzle({ client, ...DRIZZLE }));
    });
  } finally {
    await client.end({ timeout: CLOSE_SECONDS });
  }
}

/**
 * Brings the tables of a database up to date. Two of these at the same time would disturb each other.
 * @throws an error for `explainStart` if the tables are older than the first schema
 */
export async function updateTables(db: Database): Promise<void> {
  const [list] = await db.execute(sql`select to_regclass('drizzle.__drizzle_migrations')::text as name`);
  if (list?.['name']) {
    const [row] = await db.execute(
      sql`select max(created_at)::text as newest from drizzle.__drizzle_migrations`,
    );
    const newest = row?.['newest'];
    if (newest && Number(newest) < FIRST_MIGRATION) throw new Error(TOO_OLD);
  }
  await migrate(db, { migrationsFolder: MIGRATIONS });
  await addPartitions(db);
}

const TOO_OLD =
  'DATABASE_URL: the tables are of a state of development before the first schema, and cannot be updated. Use a new database';

/** Adds a row for every partition. The drainer opens the partitions in Redis. */
export async function addPartitions(db: Database): Promise<void> {
  const rows = Array.from({ length: PARTITIONS }, (_, id) => ({ id, epoch: 0, lastId: '0-0' }));
  await db.insert(partitions).values(rows).onConflictDoNothing();
}

/** The number of an advisory lock. Nothing else on the server may lock it. */
const MIGRATION_LOCK = 7_743_446;

/** Longer than a working Postgres takes for its shortest statement. */
const ANSWER_MS = 2_000;

/** Whether Postgres answers within two seconds. */
export async function databaseAnswers(db: Database): Promise<boolean> {
  const late = new AbortController();
  const asked = Promise.resolve(db.execute(sql`select 1`)).then(
    () => true,
    () => false,
  );
  const timer = sleep(ANSWER_MS, false, { signal: late.signal }).catch(() => false);
  return Promise.race([asked, timer]).finally(() => late.abort());
}

/** The transaction that `db.transaction` passes to its function. */
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0];

/** A row of columns that were selected as text. */
export type TextRow = Record<string, string | null>;

/** The SQLSTATE (or the driver's own code) of what a query threw, through Drizzle's wrapping. */
export function sqlState(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    if ('code' in each && typeof each.code === 'string') return each.code;
  }
  return undefined;
}

/**
 * Whether Postgres was not available, as opposed to having refused a query. Outages are: connection errors of the system
 * (`ECONNREFUSED`, not Node's own `ERR_…`) and of the driver (`CONNECTION_CLOSED`, `CONNECT_TIMEOUT`), the SQLSTATE classes
 * 08, 53, 57 and 58, 25006 (the server has become a standby), 25P03 (the transaction was idle for too long) and 55P03 (a
 * lock was not free in time). See PostgreSQL manual, appendix A.
 */
export function isDatabaseOutage(error: unknown): boolean {
  return OUTAGE.test(sqlState(error) ?? '');
}

const OUTAGE = /^(08|53|57|58)...$|^25006$|^25P03$|^55P03$|^E(?!RR_)[A-Z_]+$|^CONNECT(ION)?_[A-Z]+$/;
