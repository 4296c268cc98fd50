import { fileURLToPath } from 'node:url';
import { drizzle } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/node-postgres/migrator';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import pg from 'pg';
import { PARTITIONS } from './claims.ts';
import * as tables from './tables.ts';

/** Postgres through Drizzle, whichever engine is behind it. */
export type Database = PgDatabase<PgQueryResultHKT, typeof tables>;

/** How every Drizzle instance of the project is made. */
export const DRIZZLE = { schema: tables, casing: 'snake_case' } as const;

/** Where the generated SQL migrations lie. */
export const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));

/** How long a connection may take, or a free one of the pool; then a request hears that Postgres is not there. */
const CONNECT_MS = 5_000;

/** How long one statement may take: a server that hangs, or a network that swallows, never says no. */
const QUERY_MS = 10_000;

/** Opens a pool to a Postgres server; connects with the first query. */
export function connectDatabase(url: string, max = 10): { db: Database; close: () => Promise<void> } {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
  });
  // The query that a lost connection was busy with is told of it; an event that nobody hears ends the process.
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return { db: drizzle({ client: pool, ...DRIZZLE }), close: () => pool.end() };
}

/** Brings a Postgres server's tables up to date, under a lock, so that several may try at once. */
export async function migrateDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_MS });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const db = drizzle({ client, ...DRIZZLE });
    await migrate(db, { migrationsFolder: MIGRATIONS });
    await addPartitions(db);
  } finally {
    await client.end();
  }
}

/** Every partition has its row; the drainer opens them in Redis. */
export async function addPartitions(db: Database): Promise<void> {
  const rows = Array.from({ length: PARTITIONS }, (_, id) => ({ id, epoch: 0, lastId: '0-0' }));
  await db.insert(tables.partitions).values(rows).onConflictDoNothing();
}

/** Any fixed number that nothing else on the server locks. */
const MIGRATION_LOCK = 7_743_446;

/** What `db.transaction` hands to its function. */
export type Transaction = Parameters<Parameters<Database['transaction']>[0]>[0];

/** The SQLSTATE (or the driver's own code) of what a query threw, through Drizzle's wrapping. */
export function sqlState(error: unknown): string | undefined {
  for (let each = error; each instanceof Error; each = each.cause) {
    if ('code' in each && typeof each.code === 'string') return each.code;
  }
  return undefined;
}

/**
 * Whether Postgres could not be asked, as against having refused what was asked: connection errors of the
 * system (`ECONNREFUSED`, not Node's own `ERR_…`), the SQLSTATE classes 08, 53, 57 and 58, 25006, a server that
 * has become a standby (PostgreSQL manual, appendix A), and what the driver says without a code.
 */
export function isDatabaseOutage(error: unknown): boolean {
  const code = sqlState(error);
  if (code !== undefined) return /^(08|53|57|58)...$|^25006$|^E(?!RR_)[A-Z_]+$/.test(code);
  for (let each = error; each instanceof Error; each = each.cause) {
    if (DRIVER_OUTAGE.test(each.message)) return true;
  }
  return false;
}

const DRIVER_OUTAGE =
  /^(Connection terminated|Client has encountered a connection error|Query read timeout|timeout exceeded when)/;
