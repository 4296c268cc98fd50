import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEmbeddedPostgres, startEmbeddedRedis } from '@presign/local';
import { MIGRATIONS } from '@presign/schema/migrations';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newKeys, type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from './ask.ts';
import {
  firstSchemaRows,
  insertRows,
  migrateToFirstSchema,
  OLD,
  OLD_BODY,
  OLD_BUNDLE_BODY,
  OLD_IDEMPOTENCY_KEY,
  type Row,
} from './first-schema.ts';

/** Every landed migration with the SHA-256 of its file. A new migration gets a new line; no line ever changes. */
const LANDED: Readonly<Record<string, string>> = {
  '0000_init.sql': '216b15f041702c6223dec9ed1a05b7e5fec2d542db2dccfd1631cb6856d7bfae',
  '0001_field_names.sql': '3ee8dc9bf2f7f257d20e4a9f22c6c89f673a6b3d1eab82e1d64b8992ed564eef',
  '0002_pending_changes.sql': 'df6b8f1836417ffdeff2a265203e782d668a5285a706b803b0fbac616235ffea',
  '0003_price_lists.sql': 'ef481a9caea1f35e37a76f081d97046086d5162273f5d9051b7864068b69e6c5',
  '0004_issuing_keys.sql': '1385591abe52fed6899f096da7fb791055b7014ccef8e8a556ff694ddd8ebf56',
  '0005_retention.sql': '71131ab15d2614fcd31d32da047573c0d0535c75bfcc0e5b5553163e0b722dde',
  '0006_usage_marks.sql': 'fb856f93cf0e04d744f03ab82b950422cc9d80a5f5320983056b97de398afadc',
  '0007_calls.sql': '07fe1c88fb016c685fd3c627c7b056727b823a88200b84ca4b1d71b08300d3e8',
  '0008_audit.sql': 'de97d9b54cf78dfc4d0410c79fc4dd9a91c7b3c28ad84ed721885de7d7ad9744',
  '0009_key_policies.sql': 'b2579f8de5ca4a54475b7d06275623ffc7754e3507988711d3c377934f976c70',
  '0010_archive_parts.sql': 'f3e5891b6c97dcc4df639acca68aec69da32a8d8241d87aac789e5d2e88a2485',
  '0011_accounts.sql': 'b0e4ca962c9368aab3a1316b516e7bdbf81fb4a68c5b6eeb5a40df81e5186deb',
  '0012_sums_from.sql': '745ab017b799760b35e0fdb07a18db77ae619f1757617502268b855d3017398c',
  '0013_manners.sql': '6b4fa4d2981b5906eb18df77147cccb2ee922e2c19233aec29392abb7faef254',
  '0014_concurrent_calls.sql': 'c67cd9d3dd9b818bcc191ac455e051f71ff7e849c6e2d661bcca05348ca689f9',
  '0015_revisions.sql': '2af054ea63799a841458d45786028e16a343289cb52455714f4ed2d8b220dba2',
  '0016_token_rate.sql': '2aa878a4a78e1e8247d2aaed1bc26d4517e38a6f266bf951d22356b7b3d41d41',
  '0017_changes.sql': '3b9e322931f0acc4dea8f4806511cbeeda577ee2ce7599bdd7b59b4522f8b4da',
  '0018_conditions.sql': '9c15159c0b1e4c6a6e5dff1288b159a30a06ec7ec5b425baa8626e1470c1de29',
  '0019_shared_budgets.sql': 'dd8a2a53664e93b9f83852734bba54f0b0303b4028f2b6545acc3d9d9e368af2',
  '0020_calls_per_day.sql': '59b3b46bf01baac6d2520bc9e2675806256bebc51012b832977046d0422f3ea2',
  '0021_budget_events.sql': '9c9e769bbfa3bed50ffa8b94ecf6fbe29744de2161a48cfb0907456612dfadc5',
  '0022_console_sessions.sql': 'fd29ac269216df4502d4a8abca902ae4e53597a9cdad4a9392b7ac6beac40d1f',
  '0023_budget_tokens.sql': '9cd4392a3a73c7b7a145a40f732711a3272f536c9ddc41e675437e96d1590f41',
  '0024_price_lines.sql': '59dee06d18e96a712ae3e74bd0439941eb6fea30c20835c5e18f68de89e8b5f0',
  '0025_knowledge.sql': 'd9c27f41e45103e4dd72756bfd8bb3e806f2b039b5cd7ee46f1d8cdd5f50c69c',
  '0026_refused_calls.sql': 'dc3d8b8ef6dd83f6386324fbb74a53162fdbcbaf0d8346b973297b4756fa4708',
};

/** Tables and columns that later migrations have renamed. A migration that renames adds its names here. */
const RENAMED: Readonly<Record<string, string>> = {
  pots: 'budgets',
  untold_usage: 'pending_usage',
  pot_id: 'budget_id',
  told_uses_percent: 'announced_uses_percent',
  told_cost_percent: 'announced_cost_percent',
  expiry_told: 'expiry_announced',
};
const nameNow = (name: string): string => RENAMED[name] ?? name;

describe('a landed migration', () => {
  const ADD_ANOTHER =
    'A landed migration never changes: databases have run it. Undo the change, edit the tables, and run "pnpm --filter @presign/schema migrations".';

  test.each(Object.entries(LANDED))('%s never changes', async (file, hash) => {
    const text = await readFile(join(MIGRATIONS, file)).catch(() => Buffer.alloc(0));
    expect(createHash('sha256').update(text).digest('hex'), `${file}: ${ADD_ANOTHER}`).toBe(hash);
  });

  test('is in the list of this file, with its SHA-256', async () => {
    const files = (await readdir(MIGRATIONS)).filter((name) => name.endsWith('.sql')).sort();
    expect(files, 'Add the new migration to LANDED with its sha256sum').toEqual(Object.keys(LANDED));
  });

  test('runs after those before it: the migrator skips one that is dated earlier', async () => {
    const { entries } = JSON.parse(await readFile(join(MIGRATIONS, 'meta/_journal.json'), 'utf8')) as {
      entries: readonly { readonly tag: string; readonly when: number }[];
    };
    expect(entries.map(({ tag }) => `${tag}.sql`)).toEqual(Object.keys(LANDED));
    const times = entries.map(({ when }) => when);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(new Set(times).size).toBe(times.length);
  });
});

describe('a database of the first released schema with rows in each table', () => {
  let upstream: Upstream;
  let stack: Stack;
  let oldTables: readonly string[];
  let written: Record<string, readonly Row[]>;
  const before: Record<string, readonly Row[]> = {};
  const after: Record<string, readonly Row[]> = {};

  beforeAll(async () => {
    const redis = await startEmbeddedRedis();
    const postgres = await startEmbeddedPostgres(undefined);
    const { pglite } = postgres;
    const read = async (table: string) => (await pglite.query<Row>(`select * from "${table}"`)).rows;
    const keys = newKeys();
    await migrateToFirstSchema(postgres);
    written = firstSchemaRows(keys.apiKey, keys.encryption);
    await insertRows(pglite, written);
    const tables = await pglite.query<{ name: string }>(
      `select tablename as name from pg_tables where schemaname = 'public'`,
    );
    oldTables = tables.rows.map(({ name }) => name);
    for (const table of oldTables) before[table] = await read(table);
    await postgres.migrate();
    for (const table of oldTables) after[table] = await read(nameNow(table));

    const close = async () => {
      await redis.close();
      await postgres.close();
    };
    const stores = { db: postgres.db, databaseUrl: undefined, redisUrl: redis.url, close };
    upstream = await startUpstream();
    stack = await startStack({ stores, keys, providers: { openai: { base_url: upstream.url } } });
  });
  afterAll(async () => {
    await stack.close();
    await upstream.close();
  });

  test('is what the migration begins with', () => {
    expect(Object.keys(written).sort()).toEqual([...oldTables].sort());
    for (const rows of Object.values(written)) expect(rows.length).toBeGreaterThan(0);
  });

  test('keeps every value of every row', () => {
    for (const table of oldTables) {
      const wanted = (before[table] ?? []).map((row) =>
        expect.objectContaining(
          Object.fromEntries(Object.entries(row).map(([name, value]) => [nameNow(name), value])),
        ),
      );
      expect(after[table], table).toEqual(expect.arrayContaining(wanted));
    }
  });

  const presignAgain = async () => {
    const again = await stack.presign(OLD_BODY, { 'idempotency-key': OLD_IDEMPOTENCY_KEY });
    expect(again.status).toBe(200);
    return (await again.json()) as { url: string; session_id: string };
  };
  const call = (url: string) =>
    fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"model":"m"}' });
  const get = async (path: string) => {
    const { status, text } = await send(stack, { method: 'GET', path });
    expect(status, text).toBe(200);
    return text;
  };

  test('serves a URL issued on it: its key, and the uses that are left', async () => {
    const { url, session_id } = await presignAgain();
    expect(session_id).toBe(OLD.session);
    const answer = await call(url);
    expect([answer.status, answer.headers.get('x-presign-uses-remaining')]).toEqual([200, '1']);
    expect(upstream.seen.at(-1)?.headers.authorization).toBe(`Bearer ${OLD_BODY.client_api_key}`);
    await call(url);
    expect((await call(url)).status).toBe(403);
  });

  test('serves a URL of a virtual key created on it', async () => {
    const { url } = await stack.issue({
      ...OLD_BODY,
      client_api_key: undefined,
      virtual_key: OLD.virtualKey,
    });
    expect((await call(url)).status).toBe(200);
    expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer sk-of-the-old-virtual-key');
    expect(JSON.parse(String(upstream.seen.at(-1)?.body))).toMatchObject({
      max_completion_tokens: 7,
    });
  });

  test('serves a bundle issued on it', async () => {
    const again = await stack.mcpPresign(OLD_BUNDLE_BODY, { 'idempotency-key': OLD_IDEMPOTENCY_KEY });
    const { bundle_url, session_id } = (await again.json()) as { bundle_url: string; session_id: string };
    expect([again.status, session_id]).toEqual([200, OLD.session]);
    const bundle = await (await fetch(bundle_url)).json();
    expect(bundle).toMatchObject({ mcpServers: { docs: { transport: 'sse' } } });
  });

  test('is read by every list, and its calls are in the usage', async () => {
    expect(await get(`/v1/sessions/${OLD.session}`)).toContain(OLD.grant);
    expect(await get('/v1/sessions')).toContain(OLD.session);
    expect(await get('/v1/virtual-keys')).toContain(OLD.virtualKey);
    expect(await get(`/v1/virtual-keys/${OLD.virtualKey}`)).toContain('max_tokens');
    expect(await get('/v1/api-keys')).toContain(OLD.apiKey);
    expect(await get('/v1/webhooks')).toContain(OLD.webhook);
    expect(await get(`/v1/webhooks/${OLD.webhook}/deliveries`)).toContain(OLD.delivery);
    const day = 86_400_000;
    const [from, to] = [Date.now() - day, Date.now() + day].map((ms) => new Date(ms).toISOString());
    expect(await get(`/v1/usage?from=${from}&to=${to}&group_by=model`)).toContain('"model-1"');
  });

  test('is written by the ledger: new calls are added to the old sums', async () => {
    await stack.issuer.ledger.drainAll();
    const session = JSON.parse(await get(`/v1/sessions/${OLD.session}`)) as { grants: readonly Row[] };
    expect(session.grants.find((grant) => grant.id === OLD.grant)).toMatchObject({
      settled: { used: 3, spent: 40 },
    });
  });

  test('is revoked with its session, and the URL is refused from then on', async () => {
    const { status } = await send(stack, { method: 'DELETE', path: `/v1/sessions/${OLD.session}` });
    expect(status).toBe(204);
    const { url } = await presignAgain();
    expect(await (await call(url)).json()).toMatchObject({ error: { code: 'grant_revoked' } });
  });
});
