import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIGRATIONS } from '@presign/schema/migrations';
import { DRIZZLE } from '@presign/service/database';
import { drizzle } from 'drizzle-orm/postgres-js';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newKeys } from '../harness/stack.ts';
import { firstSchemaFolder, firstSchemaRows, insertRows } from '../issuer/first-schema.ts';
import { hasPostgres, makePostgres, type PostgresServer } from '../issuer/postgres-server.ts';
import { commandsOf, REPOSITORY, runPrinted } from './printed.ts';

// Makes a server of its own: where servers are to be used at all, and their programs are here.
const wanted = hasPostgres && Boolean(process.env.TEST_DATABASE_URL);

const [migrateCommand = ''] = commandsOf('upgrade.md');
const [backUp = '', restore = ''] = commandsOf('backup.md');

test('the pages have the commands that the tests run', () => {
  expect(migrateCommand).toContain('migrate');
  expect(backUp).toContain('pg_dump');
  expect(restore).toContain('pg_restore');
});

describe.skipIf(!wanted)('the printed commands of an upgrade', () => {
  const folder = mkdtempSync(join(tmpdir(), 'presign-upgrade-'));
  let server: PostgresServer;
  let client: postgres.Sql;
  beforeAll(async () => {
    server = await makePostgres();
    client = postgres(server.url, { max: 1, onnotice: () => {} });
    const first = await firstSchemaFolder();
    // Drizzle changes how its client writes dates.
    const migrating = postgres(server.url, { max: 1, onnotice: () => {} });
    await migrate(drizzle({ client: migrating, ...DRIZZLE }), { migrationsFolder: first });
    await migrating.end();
    rmSync(first, { recursive: true });
    const keys = newKeys();
    const query = (text: string, values: unknown[]) => client.unsafe(text, values as never[]);
    await insertRows({ query }, firstSchemaRows(keys.apiKey, keys.encryption));
  });
  afterAll(async () => {
    await client.end();
    await server.remove();
    rmSync(folder, { recursive: true });
  });

  const run = (commands: string, cwd = folder) => runPrinted(commands, cwd, { DATABASE_URL: server.url });
  const migrationsRun = async () => (await client`select id from drizzle.__drizzle_migrations`).length;
  /** Every table, with its columns and its rows. */
  const all = async () => {
    const tables = await client<{ name: string }[]>`
      select tablename as name from pg_tables where schemaname = 'public' order by 1`;
    const rows = tables.map(
      async ({ name }) => [name, [...(await client`select * from ${client(name)}`)]] as const,
    );
    return Object.fromEntries(await Promise.all(rows));
  };
  const newest = JSON.parse(readFileSync(join(MIGRATIONS, 'meta/_journal.json'), 'utf8')) as {
    entries: readonly object[];
  };

  test('migrate a database of the first schema, and restore its backup', async () => {
    const before = await all();
    expect(await migrationsRun()).toBe(1);
    // The other command of the page is for Redis.
    run(
      backUp
        .split('\n')
        .filter((line) => line.startsWith('pg_dump'))
        .join('\n'),
    );
    run(migrateCommand, REPOSITORY);
    expect(await migrationsRun()).toBe(newest.entries.length);
    run(migrateCommand, REPOSITORY);
    expect(await migrationsRun()).toBe(newest.entries.length);

    run(restore);
    expect(await migrationsRun()).toBe(1);
    expect(await all()).toEqual(before);
    run(migrateCommand, REPOSITORY);
    expect(await migrationsRun()).toBe(newest.entries.length);
  });
});
