import { addPartitions, MIGRATIONS } from '@presign/schema/database';
import type * as tables from '@presign/schema/tables';
import type { PgliteDatabase } from 'drizzle-orm/pglite';
import { migrate } from 'drizzle-orm/pglite/migrator';

/** Brings the embedded Postgres' tables up to date. */
export async function migrateEmbedded(db: PgliteDatabase<typeof tables>): Promise<void> {
  await migrate(db, { migrationsFolder: MIGRATIONS });
  await addPartitions(db);
}
