import { generateEncryptionKey, readEncryptionKeys } from '@presign/crypto';
import { budgets, grants, idempotencyKeys, sessions } from '@presign/schema/tables';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addVirtualKey, ownAccount } from './accounts.ts';
import { least, refused, type Sent, send } from './ask.ts';
import { startOwnIssuer } from './own-issuer.ts';

let stack: Stack;
let next = 0;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const newKey = () => `key-${next++}`;
const withKey = (key: string, fields: object = {}, on: Parameters<typeof send>[0] = stack): Promise<Sent> =>
  send(on, { body: { ...least, ...fields }, headers: { 'idempotency-key': key } });
const counts = async () => ({
  grants: await stack.db.$count(grants),
  sessions: await stack.db.$count(sessions),
  budgets: await stack.db.$count(budgets),
  keys: await stack.db.$count(idempotencyKeys),
});
const one = { grants: 1, sessions: 1, budgets: 1, keys: 1 };
/** Runs it, and returns how many rows it added. */
async function added(run: () => Promise<unknown>) {
  const before = await counts();
  await run();
  const after = await counts();
  return Object.fromEntries(
    Object.entries(after).map(([name, n]) => [name, n - before[name as keyof typeof after]]),
  );
}
const HOURS = 3_600_000;

test('the same key and body get the same answer byte for byte, and one grant', async () => {
  const key = newKey();
  const texts: string[] = [];
  const rows = await added(async () => {
    for (let i = 0; i < 3; i++) texts.push((await withKey(key, { expires_in: 60 })).text);
  });
  expect(rows).toEqual(one);
  expect(JSON.parse(texts[0] ?? '')).toHaveProperty('url');
  expect(new Set(texts).size).toBe(1);
});

test('a repeated request with a session, a virtual key and every field gets the same answer', async () => {
  const virtual_key = await addVirtualKey(stack, await ownAccount(stack), {
    budget: 5,
    config: { max_tokens: 3 },
  });
  const fields = {
    virtual_key,
    session_id: crypto.randomUUID(),
    path: ['/v1/responses', '/v1/*'],
    config: { model: 'gpt-4o' },
    metadata: { a: 1 },
    max_uses: 3,
    cost_limit: 7,
  };
  const key = newKey();
  const first = await withKey(key, fields);
  expect(first.status, first.text).toBe(200);
  expect((await withKey(key, fields)).text).toBe(first.text);
});

test('50 parallel requests with one key create one grant, and all get its URL', async () => {
  const key = newKey();
  let sent: Sent[] = [];
  const rows = await added(async () => {
    sent = await Promise.all(Array.from({ length: 50 }, () => withKey(key)));
  });
  expect(rows).toEqual(one);
  expect(new Set(sent.map((each) => each.status))).toEqual(new Set([200]));
  expect(new Set(sent.map((each) => each.text)).size).toBe(1);
});

test('the same key with another body is refused with 409, however small the difference', async () => {
  const key = newKey();
  expect((await withKey(key)).status).toBe(200);
  const rows = await added(async () => {
    refused(await withKey(key, { max_uses: 1 }), 'idempotency_conflict', 'Idempotency-Key');
    refused(await withKey(key, { client_api_key: 'sk-another' }), 'idempotency_conflict', 'Idempotency-Key');
    const spaced = `${JSON.stringify(least)} `;
    const sent = await send(stack, { body: spaced, headers: { 'idempotency-key': key } });
    refused(sent, 'idempotency_conflict', 'Idempotency-Key');
  });
  expect(rows).toEqual({ grants: 0, sessions: 0, budgets: 0, keys: 0 });
});

test('20 parallel requests with one key and two bodies: all with one body pass, and all with the other are refused', async () => {
  const key = newKey();
  const bodies = Array.from({ length: 20 }, (_, i) => ({ max_uses: 1 + (i % 2) }));
  const sent = await Promise.all(bodies.map((fields) => withKey(key, fields)));
  expect(sent.map((each) => each.status).sort()).toEqual([...Array(10).fill(200), ...Array(10).fill(409)]);
  const urls = sent.filter((each) => each.status === 200).map((each) => each.text);
  expect(new Set(urls).size).toBe(1);
});

test('another account can use the same key', async () => {
  const other = await addAccount(stack);
  const key = newKey();
  const mine = await withKey(key);
  const theirs = await withKey(key, {}, { issuerUrl: stack.issuerUrl, apiKey: other.apiKey });
  expect([mine.status, theirs.status]).toEqual([200, 200]);
  expect(theirs.text).not.toBe(mine.text);
  const different = await withKey(key, { max_uses: 9 }, { issuerUrl: stack.issuerUrl, apiKey: other.apiKey });
  refused(different, 'idempotency_conflict', 'Idempotency-Key');
});

test('a request that was refused leaves its key free', async () => {
  const key = newKey();
  const rows = await added(async () => {
    expect((await withKey(key, { max_uses: 0 })).status).toBe(400);
    expect((await withKey(key, { provider: 'none' })).status).toBe(400);
    expect((await withKey(key, { virtual_key: 'vk_none' })).status).toBe(400);
  });
  expect(rows).toEqual({ grants: 0, sessions: 0, budgets: 0, keys: 0 });
  expect((await withKey(key)).status).toBe(200);
});

test('a key is valid for 24 hours, and can then be used with another body', async () => {
  let now = Date.now();
  const later = await startOwnIssuer(stack, { now: () => now });
  const key = newKey();
  const first = await withKey(key, {}, later);
  now += 24 * HOURS - 1000;
  expect((await withKey(key, {}, later)).text).toBe(first.text);
  refused(await withKey(key, { max_uses: 1 }, later), 'idempotency_conflict', 'Idempotency-Key');
  now += 1001;
  const anew = await withKey(key, { max_uses: 1 }, later);
  expect(anew.status, anew.text).toBe(200);
  expect((await withKey(key, { max_uses: 1 }, later)).text).toBe(anew.text);
  await later.close();
});

test('a key stays valid when the encryption key is rotated and the old one is kept', async () => {
  const key = newKey();
  const first = await withKey(key);
  const newer = generateEncryptionKey('newer');
  const rotated = await startOwnIssuer(stack, {
    encryptionKeys: readEncryptionKeys(`${newer},${stack.keys.encryption}`),
  });
  expect((await withKey(key, {}, rotated)).text).toBe(first.text);
  refused(await withKey(key, { max_uses: 1 }, rotated), 'idempotency_conflict', 'Idempotency-Key');
  await rotated.close();

  const forgetful = await startOwnIssuer(stack, { encryptionKeys: readEncryptionKeys(newer) });
  // Nothing can be said of the first body now; a second grant is the one thing that must not happen.
  refused(await withKey(key, {}, forgetful), 'idempotency_conflict', 'Idempotency-Key');
  await forgetful.close();
});

test('only a keyed fingerprint of the body is stored', async () => {
  const key = newKey();
  const sent = await withKey(key, { client_api_key: 'sk-fingerprint' });
  const rows = await stack.db.select().from(idempotencyKeys);
  const row = rows.find((each) => each.key === key);
  expect(row?.bodyMac).toMatch(/^[\w-]+\.[\w-]{43}$/);
  expect(JSON.stringify(row)).not.toContain('sk-fingerprint');
  expect(JSON.stringify(row)).not.toContain(JSON.parse(sent.text).url.slice(-40));
});

test.each([
  ['1 character', 'k', 200],
  ['255 characters', 'k'.repeat(255), 200],
  ['any visible ASCII', '!"#$%&\'()*+,-./:;<=>?@[\\]^_`{|}~', 200],
  ['256 characters', 'k'.repeat(256), 400],
  ['nothing', '', 400],
  ['a space within', 'a b', 400],
  ['a letter beyond ASCII', 'é', 400],
])('a key of %s is answered as documented', async (_what, key, status) => {
  const sent = await withKey(key);
  expect(sent.status).toBe(status);
  if (status === 400)
    expect(refused(sent, 'invalid_request', 'Idempotency-Key')).toMatch(/1 to 255 visible ASCII/);
});

test('two requests without a key create two grants', async () => {
  const rows = await added(async () => {
    for (let i = 0; i < 2; i++) expect((await send(stack, { body: least })).status).toBe(200);
  });
  expect(rows).toEqual({ grants: 2, sessions: 2, budgets: 2, keys: 0 });
});

// One Postgres session (PGlite) runs one transaction at a time, so none can be met under way there.
const servers = process.env.TEST_DATABASE_URL ? test : test.skip;

servers('a first request that dies before it commits lets the second through', async () => {
  const key = newKey();
  const account = await ownAccount(stack);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const row = {
    accountId: account,
    route: 'POST /v1/presign',
    key,
    bodyMac: 'x.y',
    grantId: crypto.randomUUID(),
  };
  const dying = stack.db
    .transaction(async (tx) => {
      await tx.insert(idempotencyKeys).values({ ...row, createdAt: new Date() });
      await held;
      throw new Error('killed');
    })
    .catch(() => {});
  await eventually(async () => ((await waiting()) ? undefined : true));
  const second = withKey(key);
  await eventually(async () => ((await waiting()) ? true : undefined));
  release();
  await dying;
  expect((await second).status).toBe(200);
});

servers(
  'a first request that does not end has the second refused after a while, to be tried again',
  async () => {
    const key = newKey();
    const account = await ownAccount(stack);
    const row = {
      accountId: account,
      route: 'POST /v1/presign',
      key,
      bodyMac: 'x.y',
      grantId: crypto.randomUUID(),
    };
    await stack.db
      .transaction(async (tx) => {
        await tx.insert(idempotencyKeys).values({ ...row, createdAt: new Date() });
        const sent = await withKey(key);
        refused(sent, 'idempotency_conflict', 'Idempotency-Key');
        expect(sent.headers.get('retry-after')).toBe('1');
        throw new Error('killed');
      })
      .catch((error: Error) => expect(error.message).toBe('killed'));
    expect((await withKey(key)).status).toBe(200);
  },
);

/** Whether any transaction waits for another. */
async function waiting(): Promise<boolean> {
  return (await stack.db.$count(sql`pg_locks`, sql`not granted`)) > 0;
}
