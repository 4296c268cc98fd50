import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { startEmbeddedPostgres } from '../src/engines/embedded-postgres.ts';
import { kill, runProgram } from './programs/run-program.ts';

const SLOW_START_MS = 60_000;

test('without a folder Postgres runs in memory, and its transactions stay separate whatever their size', {
  timeout: SLOW_START_MS,
}, async () => {
  const { db, close } = await startEmbeddedPostgres(undefined);
  await db.execute(sql`create table parts (of int, body text)`);
  const large = 'x'.repeat(100_000);
  const lost = [1, 2, 3].map((of) =>
    db.transaction(async (tx) => {
      await tx.execute(sql`insert into parts values (${of}, ${large})`);
      await setImmediate();
      await tx.execute(sql`insert into parts values (${of}, 'small')`);
      throw new Error('rolled back');
    }),
  );
  const kept = db.transaction((tx) => tx.execute(sql`insert into parts values (4, ${large})`));
  const settled = await Promise.allSettled([...lost, kept]);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled']);
  const rows = await db.execute(sql`select of, length(body) as length from parts`);
  expect([...rows]).toEqual([{ of: 4, length: large.length }]);
  await close();
});

test('after kill -9 exactly the committed data is there', { timeout: SLOW_START_MS }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'embedded-postgres-'));
  const folder = join(dir, 'made', 'by-it');
  const { child } = await runProgram('hold-postgres.ts', folder);
  await kill(child);
  const { pglite, close } = await startEmbeddedPostgres(folder);
  expect((await pglite.query('select id from calls order by id')).rows).toEqual([{ id: 1 }, { id: 2 }]);
  await close();
  rmSync(dir, { recursive: true });
});
