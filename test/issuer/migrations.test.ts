import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startEmbeddedPostgres, startEmbeddedRedis } from '@presign/local';
import { MIGRATIONS } from '@presign/schema/migrations';
import { explainStart } from '@presign/service/start';
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

/**
 * Every landed migration with the SHA-256 of its file. A new migration gets a new line. Until 0.1.0 is tagged, migrations may be folded into
 * the first one as long as its `when` stays; from then on no line ever changes.
 */
const LANDED: Readonly<Record<string, string>> = {
  '0000_first.sql': '57cea4a74bcb7dd15249ca31f109de778016c04259f4ea6af701569f703a18b9',
  '0001_refused_calls.sql': 'dc3d8b8ef6dd83f6386324fbb74a53162fdbcbaf0d8346b973297b4756fa4708',
  '0002_outcomes.sql': '2c7111300fc542d28c2227a0a9ef386da1928495a2cf3839e744b842589b2bd7',
  '0003_visible_budgets.sql': 'd13d3ee857733231ebc45fdbd7d508d437d5bac0dd1bd9f07d4f74914924cbcf',
  '0004_usage_metadata.sql': 'fdd575330e1015c858fd9a4ded4a62f111f11222e6c7e368efb8feddb7d6990b',
  '0005_virtual_key_budgets.sql': '6c01352eaa96e136153e6bce32d4976e4391f1684c0a68d6f4422cd59ce63ee6',
  '0006_pieces_of_days.sql': '991ec37b474561416e3400036184c836fd246355df66de387383d443b9923045',
  '0007_sockets.sql': 'f96236d0dfce2fbc9024595b901b5363abe778cd31913b77964cfacfb7dbbd7f',
  '0008_alerts.sql': '521bd2960804639bb94f83d0ba62ffb90020e891e2d0cd6319574dff4fd4c64a',
};

describe('a merged migration', () => {
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

  test('runs after earlier ones: the migrator skips a migration with an earlier date', async () => {
    const { entries } = JSON.parse(await readFile(join(MIGRATIONS, 'meta/_journal.json'), 'utf8')) as {
      entries: readonly { readonly tag: string; readonly when: number }[];
    };
    expect(entries.map(({ tag }) => `${tag}.sql`)).toEqual(Object.keys(LANDED));
    const times = entries.map(({ when }) => when);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(new Set(times).size).toBe(times.length);
  });
});

test('a database with a virtual key whose calls were never counted is refused by name, and keeps its rows', async () => {
  const postgres = await startEmbeddedPostgres(undefined);
  await migrateToFirstSchema(postgres);
  const { apiKey, encryption } = newKeys();
  await insertRows(postgres.pglite, firstSchemaRows(apiKey, encryption));
  await postgres.pglite.query('update virtual_keys set budget_id = null');
  const refusal = await postgres.migrate().then(
    () => 'it was not refused',
    (error: unknown) => explainStart(error),
  );
  expect(refusal).toContain('virtual keys of a state of development');
  const { rows } = await postgres.pglite.query('select budget_id from virtual_keys');
  expect(rows).toEqual([{ budget_id: null }]);
  await postgres.close();
});

describe('a database of the first schema with rows in each table', () => {
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
    for (const table of oldTables) after[table] = await read(table);

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

  test('is the starting point of the migration', () => {
    expect(Object.keys(written).sort()).toEqual([...oldTables].sort());
    for (const rows of Object.values(written)) expect(rows.length).toBeGreaterThan(0);
  });

  test('keeps every value of every row', () => {
    for (const table of oldTables) {
      const wanted = (before[table] ?? []).map((row) => expect.objectContaining(row));
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

  test('serves a URL that was issued on it, with its key and its remaining uses', async () => {
    const { url, session_id } = await presignAgain();
    expect(session_id).toBe(OLD.session);
    const answer = await call(url);
    expect([answer.status, answer.headers.get('x-presign-uses-remaining')]).toEqual([200, '1']);
    expect(upstream.seen.at(-1)?.headers.authorization).toBe(`Bearer ${OLD_BODY.client_api_key}`);
    await call(url);
    expect((await call(url)).status).toBe(403);
  });

  test('serves a URL of a virtual key that was created on it', async () => {
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

  test('serves a bundle that was issued on it', async () => {
    const again = await stack.mcpPresign(OLD_BUNDLE_BODY, { 'idempotency-key': OLD_IDEMPOTENCY_KEY });
    const { bundle_url, session_id } = (await again.json()) as { bundle_url: string; session_id: string };
    expect([again.status, session_id]).toEqual([200, OLD.session]);
    const bundle = await (await fetch(bundle_url)).json();
    expect(bundle).toMatchObject({ mcpServers: { docs: { transport: 'sse' } } });
  });

  test('is readable by every list, and its calls are in the usage', async () => {
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

  test('is extended by the ledger: new calls are added to the old sums', async () => {
    await stack.issuer.ledger.drainAll();
    const session = JSON.parse(await get(`/v1/sessions/${OLD.session}`)) as { grants: readonly Row[] };
    expect(session.grants.find((grant) => grant.id === OLD.grant)).toMatchObject({
      settled: { used: 3, spent: 40 },
    });
  });

  test('lets its session be revoked, and the URL is refused from then on', async () => {
    const { status } = await send(stack, { method: 'DELETE', path: `/v1/sessions/${OLD.session}` });
    expect(status).toBe(204);
    const { url } = await presignAgain();
    expect(await (await call(url)).json()).toMatchObject({ error: { code: 'grant_revoked' } });
  });
});
