import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrateEmbedded, openEmbeddedPostgres } from '@presign/local';

/**
 * Once for all files: an embedded Postgres with its tables, as a file that each stack begins with. To make another
 * takes seconds.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.TEST_DATABASE_URL) return undefined;
  const { db, pglite, close } = await openEmbeddedPostgres(undefined);
  await migrateEmbedded(db);
  const dump = await pglite.dumpDataDir('none');
  await close();
  const folder = await mkdtemp(join(tmpdir(), 'presign-template-'));
  const file = join(folder, 'postgres.tar');
  await writeFile(file, Buffer.from(await dump.arrayBuffer()));
  process.env.EMBEDDED_POSTGRES_TEMPLATE = file;
  return () => rm(folder, { recursive: true });
}
