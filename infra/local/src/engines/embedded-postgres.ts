import { mkdirSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { addPartitions, DRIZZLE, MIGRATIONS } from '@presign/schema/database';
import type * as tables from '@presign/schema/tables';
import { drizzle, type PgliteDatabase } from 'drizzle-orm/pglite';
import { migrate } from 'drizzle-orm/pglite/migrator';

/**
 * Opens a Postgres in this process on the folder `dir` (made if missing), or in memory without one.
 *
 * A committed transaction survives the process being killed. One process may have the folder open at a time:
 * the engine does not check, so hold the folder's lock. The first start of a folder takes seconds.
 * @param begin the dump of another one (`dumpDataDir`), which is faster than an empty start
 */
export async function openEmbeddedPostgres(dir: string | undefined, begin?: Blob) {
  if (dir !== undefined) mkdirSync(dir, { recursive: true, mode: 0o700 });
  const pglite = await PGlite.create({
    ...(dir === undefined ? {} : { dataDir: dir }),
    ...(begin === undefined ? {} : { loadDataDir: begin }),
  });
  const db = drizzle({ client: pglite, ...DRIZZLE, logger: false });
  return { db, pglite, close: () => pglite.close() };
}

/** Brings the embedded Postgres' tables up to date. */
export async function migrateEmbedded(db: PgliteDatabase<typeof tables>): Promise<void> {
  await migrate(db, { migrationsFolder: MIGRATIONS });
  await addPartitions(db);
}
