import { openAsBlob } from 'node:fs';
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEmbeddedPostgres } from '@presign/local/postgres';

const VARIABLE = 'EMBEDDED_POSTGRES_TEMPLATE';
const MEMORY = 'postgres.tar';
const FOLDER = 'postgres';

/** Once for all files: an embedded Postgres with its tables, as a file and as a folder. To make another takes seconds. */
export async function writeTemplate(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.TEST_DATABASE_URL) return undefined;
  const template = await mkdtemp(join(tmpdir(), 'presign-template-'));
  const { pglite, migrate, close } = await startEmbeddedPostgres(join(template, FOLDER));
  await migrate();
  const dump = await pglite.dumpDataDir('none');
  await close();
  await writeFile(join(template, MEMORY), Buffer.from(await dump.arrayBuffer()));
  process.env[VARIABLE] = template;
  return () => rm(template, { recursive: true });
}

/** The dump that an engine in memory begins with; undefined where the tests run on a server. */
export async function embeddedTemplate(): Promise<Blob | undefined> {
  const template = process.env[VARIABLE];
  return template === undefined ? undefined : openAsBlob(join(template, MEMORY));
}

/** Puts a Postgres with its tables into a data folder of `start`, whose first start is then as fast as a later one. */
export async function prepareDataFolder(dataDir: string): Promise<void> {
  const template = process.env[VARIABLE];
  if (template !== undefined) await cp(join(template, FOLDER), join(dataDir, FOLDER), { recursive: true });
}
