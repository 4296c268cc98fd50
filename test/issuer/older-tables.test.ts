import { type Database, updateTables } from '@presign/service/database';
import { explainStart, requireTables } from '@presign/service/start';
import { type SQL, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stores, startStores } from '../harness/stores.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await startStores();
});
afterAll(() => stores.close());

const MIGRATIONS = sql`drizzle.__drizzle_migrations`;
const NEWEST = sql`(select max(created_at) from ${MIGRATIONS})`;

/** Makes a change of the database, which is undone. Returns the words of a service that starts on it. */
async function saidAfter(change: SQL): Promise<string | undefined> {
  let said: string | undefined;
  const undo = new Error('undo');
  const changed = stores.db.transaction(async (tx) => {
    await tx.execute(change);
    await requireTables(tx as unknown as Database).catch((error: unknown) => {
      said = explainStart(error);
    });
    throw undo;
  });
  await expect(changed).rejects.toBe(undo);
  return said;
}

test('a service starts on the tables of its version, and on those of a newer one', async () => {
  await requireTables(stores.db);
  const newer = sql`insert into ${MIGRATIONS} (hash, created_at) values ('newer', ${NEWEST} + 1)`;
  expect(await saidAfter(newer)).toBeUndefined();
});

test.each([
  ['of an older version', sql`delete from ${MIGRATIONS} where created_at = ${NEWEST}`],
  ['missing', sql`drop table ${MIGRATIONS}`],
])('a service reports that its tables are %s, and which command creates them', async (problem, change) => {
  expect(await saidAfter(change)).toBe(
    `DATABASE_URL: the tables are ${problem}: run "npx -y pnpm@12 --filter @presign/issuer migrate" first`,
  );
});

test('tables older than the first schema are not updated, and the message says so', async () => {
  const older = sql`update ${MIGRATIONS} set created_at = created_at - ${NEWEST}`;
  const undo = new Error('undo');
  const changed = stores.db.transaction(async (tx) => {
    await tx.execute(older);
    const said = await updateTables(tx as unknown as Database).catch(explainStart);
    expect(said).toMatch(/^DATABASE_URL: the tables are of a state of development before the first schema/);
    throw undo;
  });
  await expect(changed).rejects.toBe(undo);
});
