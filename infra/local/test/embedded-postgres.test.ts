import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { expect, test } from 'vitest';
import { openEmbeddedPostgres } from '../src/engines/embedded-postgres.ts';
import { kill, runProgram } from './programs/run-program.ts';

const SLOW_START_MS = 60_000;

// In `pnpm test` the stacks of the other tests run on one.
test.runIf(process.env.TEST_ALL)(
  'without a folder it is a Postgres in memory, reached through Drizzle',
  {
    timeout: SLOW_START_MS,
  },
  async () => {
    const { db, close } = await openEmbeddedPostgres(undefined);
    const { rows } = await db.execute(sql`select 1 + ${41} as answer`);
    expect(rows).toEqual([{ answer: 42 }]);
    await close();
  },
);

test('after kill -9 what was committed is there, and nothing else', { timeout: SLOW_START_MS }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'embedded-postgres-'));
  const folder = join(dir, 'made', 'by-it');
  const { child } = await runProgram('hold-postgres.ts', folder);
  await kill(child);
  const { pglite, close } = await openEmbeddedPostgres(folder);
  expect((await pglite.query('select id from calls order by id')).rows).toEqual([{ id: 1 }, { id: 2 }]);
  await close();
  rmSync(dir, { recursive: true });
});
