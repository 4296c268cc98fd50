import { fileURLToPath } from 'node:url';
import type { PgDatabase, PgQueryResultHKT } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { PARTITIONS } from './claims.ts';
import * as tables from './tables.ts';

/** Postgres through Drizzle, whichever engine is behind it. */
export type Database = PgDatabase<PgQueryResultHKT, typeof tables>;

/** How every Drizzle instance of the project is made. */
export const DRIZZLE = { schema: tables, casing: 'snake_case' } as const;

/** Where the generated SQL migrations lie. */
export const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));

/** Opens a pool to a Postgres server; connects with the first query. */
export function connectDatabase(url: string, max = 10): { db: Database; close: () => Promise<void> } {
  const client = postgres(url, { max, connect_timeout: 5, onnotice: () => {} });
  return { db: drizzle({ client, ...DRIZZLE }), close: () => client.end({ timeout: 5 }) };
}

/** Brings a Postgres server's tables up to date, under a lock, so that several may try at once. */
export async function migrateDatabase(url: string): Promise<void> {
  const client = postgres(url, { max: 1, connect_timeout: 5, onnotice: () => {} });
  try {
    await client`select pg_advisory_lock(${MIGRATION_LOCK})`;
    const db = drizzle({ client, ...DRIZZLE });
    await migrate(db, { migrationsFolder: MIGRATIONS });
    await addPartitions(db);
  } finally {
    await client.end({ timeout: 5 });
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
 * system and the driver, and the SQLSTATE classes 08, 53, 57 and 58 (PostgreSQL manual, appendix A).
 */
export function isDatabaseOutage(error: unknown): boolean {
  const code = sqlState(error);
  return code !== undefined && /^(08|53|57|58)...$|^E[A-Z_]+$|^CONNECT/.test(code);
}
