import { randomUUID } from 'node:crypto';
import { hashApiKey, looksLikeApiKey } from '@presign/crypto';
import { API_KEY_PATTERN, type ApiKeyAnswer, type NewApiKeyAnswer } from '@presign/schema';
import { accounts, apiKeys } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey } from './accounts.ts';
import { least, refused, type Sent, send } from './ask.ts';
import { startOwnIssuer } from './own-issuer.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const ask = (apiKey: string, method: string, path = '', body?: object) =>
  send(stack, { method, path: `/v1/api-keys${path}`, apiKey, ...(body ? { body } : {}) });

async function create(apiKey: string, fields: object = {}): Promise<NewApiKeyAnswer> {
  const sent = await ask(apiKey, 'POST', '', { name: 'backend', scopes: ['presign'], ...fields });
  expect(sent.status, sent.text).toBe(201);
  return JSON.parse(sent.text) as NewApiKeyAnswer;
}

const read = <T>(sent: Sent): T => {
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as T;
};

/** An account of its own, with one admin key. */
async function newAccount(): Promise<{ id: string; admin: string }> {
  const id = randomUUID();
  await stack.db.insert(accounts).values({ id, name: 'own' });
  return { id, admin: await addApiKey(stack, id, { scopes: ['admin'] }) };
}

const list = async (apiKey: string, query = '') =>
  read<{ data: ApiKeyAnswer[]; next_cursor: string | null }>(await ask(apiKey, 'GET', query));

describe('a created API key', () => {
  test('works at once, with its scopes and no others', async () => {
    const { admin } = await newAccount();
    const { key } = await create(admin, { scopes: ['presign'] });
    expect((await send(stack, { apiKey: key, body: least })).status).toBe(200);
    expect(refused(await ask(key, 'GET'), 'forbidden')).toContain('"admin"');
    const reader = await create(admin, { scopes: ['read'] });
    refused(await send(stack, { apiKey: reader.key, body: least }), 'forbidden');
  });

  test('is shown once, matches the pattern for secret scanners, and is stored as a hash', async () => {
    const { admin } = await newAccount();
    const created = await create(admin, { name: 'shown once' });
    expect(created.key).toMatch(new RegExp(`^${API_KEY_PATTERN}$`));
    expect(looksLikeApiKey(created.key)).toBe(true);
    const { key, ...rest } = created;
    expect(read(await ask(admin, 'GET', `/${created.id}`))).toEqual(rest);
    expect((await list(admin)).data[0]).toEqual(rest);
    const [row] = await stack.db.select().from(apiKeys).where(eq(apiKeys.id, created.id));
    expect(row?.hash).toBe(hashApiKey(key));
    expect(JSON.stringify(row)).not.toContain(key.slice(11, 40));
    expect(rest.hint).toBe(`presign_sk_…${key.slice(-4)}`);
    expect(stack.logs.join('')).not.toContain(key.slice(11, 40));
  });

  test('expires at its own time, and not before', async () => {
    const { admin } = await newAccount();
    const { key, expires_at: ends, created_at: began } = await create(admin, { expires_in: 60 });
    expect((ends ?? 0) - began).toBeCloseTo(60, 6);
    for (const [after, status] of [
      [59_000, 200],
      [60_000, 401],
    ] as const) {
      const issuer = await startOwnIssuer(stack, { now: () => began * 1000 + after });
      expect((await send(issuer, { apiKey: key, body: least })).status).toBe(status);
      await issuer.close();
    }
    expect((await create(admin)).expires_at).toBeNull();
  });

  test('shows when it was last used', async () => {
    const { admin } = await newAccount();
    const { id, key } = await create(admin, { scopes: ['read'] });
    expect(read<ApiKeyAnswer>(await ask(admin, 'GET', `/${id}`)).last_used_at).toBeNull();
    await send(stack, { apiKey: key, method: 'GET', path: '/v1/virtual-keys' });
    await expect
      .poll(async () => read<ApiKeyAnswer>(await ask(admin, 'GET', `/${id}`)).last_used_at)
      .toBeGreaterThan(0);
  });

  test.each([
    ['name', { scopes: ['read'] }],
    ['name', { name: '', scopes: ['read'] }],
    ['name', { name: ' ', scopes: ['read'] }],
    ['name', { name: 'a\0', scopes: ['read'] }],
    ['name', { name: 'x'.repeat(256), scopes: ['read'] }],
    ['scopes', { name: 'a' }],
    ['scopes', { name: 'a', scopes: [] }],
    ['scopes', { name: 'a', scopes: ['read', 'read'] }],
    ['scopes[0]', { name: 'a', scopes: ['Admin'] }],
    ['scopes', { name: 'a', scopes: 'admin' }],
    ['expires_in', { name: 'a', scopes: ['read'], expires_in: 0 }],
    ['expires_in', { name: 'a', scopes: ['read'], expires_in: -1 }],
    ['expires_in', { name: 'a', scopes: ['read'], expires_in: 1.5 }],
    ['expires_in', { name: 'a', scopes: ['read'], expires_in: 315_360_001 }],
    ['scope', { name: 'a', scopes: ['read'], scope: 'admin' }],
  ])('is refused where its %s is wrong (case %#)', async (param, body) => {
    const { admin } = await newAccount();
    refused(await ask(admin, 'POST', '', body), 'invalid_request', param);
    expect((await list(admin)).data).toHaveLength(1);
  });

  test.each([
    [{ name: 'a', scopes: ['presgin'] }, 'scopes[0]', 'expected one of presign, read, admin, operator.'],
    [{ name: 'a', scope: ['read'] }, 'scope', 'this field is not known (did you mean scopes?).'],
    [{ name: '', scopes: ['read'] }, 'name', 'expected 1 to 255 characters, not white space alone.'],
  ])('that is requested with %j is refused with a hint', async (body, param, problem) => {
    const { admin } = await newAccount();
    const sent = await ask(admin, 'POST', '', body);
    expect(refused(sent, 'invalid_request', param)).toBe(`${param}: ${problem}`);
  });
});

describe('a revoked API key', () => {
  test('is refused from the next request on, stays in the list, and can be revoked again', async () => {
    const { admin } = await newAccount();
    const { id, key } = await create(admin);
    expect((await send(stack, { apiKey: key, body: least })).status).toBe(200);
    expect((await ask(admin, 'DELETE', `/${id}`)).status).toBe(204);
    refused(await send(stack, { apiKey: key, body: least }), 'unauthenticated');
    const revokedAt = read<ApiKeyAnswer>(await ask(admin, 'GET', `/${id}`)).revoked_at;
    expect(revokedAt).toBeGreaterThan(0);
    expect((await ask(admin, 'DELETE', `/${id.toUpperCase()}`)).status).toBe(204);
    expect((await list(admin)).data.find((each) => each.id === id)?.revoked_at).toBe(revokedAt);
  });

  test('of another account returns 404, and keeps working', async () => {
    const own = await newAccount();
    const other = await newAccount();
    const { id, key } = await create(other.admin);
    for (const method of ['GET', 'DELETE']) refused(await ask(own.admin, method, `/${id}`), 'not_found');
    for (const path of [`/${randomUUID()}`, '/no-uuid', '/%00']) {
      for (const method of ['GET', 'DELETE']) refused(await ask(own.admin, method, path), 'not_found');
    }
    expect((await send(stack, { apiKey: key, body: least })).status).toBe(200);
    expect((await list(own.admin)).data.map((each) => each.id)).not.toContain(id);
  });
});

describe('the last valid admin key', () => {
  const own = async (admin: string) =>
    (await list(admin)).data.find((key) => key.scopes.includes('admin'))?.id;

  test('cannot be revoked unless there is a second one', async () => {
    const { admin } = await newAccount();
    const id = await own(admin);
    await create(admin, { scopes: ['presign', 'read'] });
    refused(await ask(admin, 'DELETE', `/${id}`), 'last_admin_key');
    const second = await create(admin, { scopes: ['read', 'admin'] });
    expect((await ask(admin, 'DELETE', `/${id}`)).status).toBe(204);
    refused(await ask(second.key, 'DELETE', `/${second.id}`), 'last_admin_key');
    expect((await list(second.key)).data).toHaveLength(3);
  });

  test('is the last even if others are revoked, expired, or belong to another account', async () => {
    const { id: account, admin } = await newAccount();
    await newAccount();
    const past = new Date(Date.now() - 1);
    await addApiKey(stack, account, { scopes: ['admin'], revokedAt: past });
    await addApiKey(stack, account, { scopes: ['admin'], expiresAt: past });
    const [row] = await stack.db
      .select()
      .from(apiKeys)
      .where(eq(apiKeys.hash, hashApiKey(admin)));
    refused(await ask(admin, 'DELETE', `/${row?.id}`), 'last_admin_key');
  });

  test('remains if all are revoked at once, whichever it is', async () => {
    const { id: account, admin } = await newAccount();
    const others = await Promise.all([1, 2, 3, 4].map(() => create(admin, { scopes: ['admin'] })));
    const rows = await stack.db.select().from(apiKeys).where(eq(apiKeys.accountId, account));
    const answers = await Promise.all(
      rows.map((row) => {
        const other = others.find((each) => each.id !== row.id);
        return ask(other?.key ?? admin, 'DELETE', `/${row.id}`);
      }),
    );
    const after = await stack.db.select().from(apiKeys).where(eq(apiKeys.accountId, account));
    expect(after.filter((row) => row.revokedAt === null).length).toBeGreaterThanOrEqual(1);
    expect(answers.filter(({ status }) => status === 204).length).toBe(
      after.filter((row) => row.revokedAt !== null).length,
    );
    // Those that were refused had lost their own key by then, or would have been the last.
    for (const { status } of answers) expect([204, 401, 409]).toContain(status);
  });
});

describe('the list of API keys', () => {
  test('is newest first and complete at any page size, and new keys do not shift it', async () => {
    const { admin } = await newAccount();
    const made: string[] = [];
    for (let i = 0; i < 5; i++) made.unshift((await create(admin, { name: `key ${i}` })).id);
    const seen: string[] = [];
    let query = '?limit=2';
    for (;;) {
      const page = await list(admin, query);
      seen.push(...page.data.map((key) => key.id));
      if (page.next_cursor === null) break;
      await create(admin);
      query = `?limit=2&cursor=${page.next_cursor}`;
    }
    expect(seen.slice(0, 5)).toEqual(made);
    expect(seen).toHaveLength(6);
  });

  test.each(['?limit=0', '?limit=101', '?limit=x', '?cursor=x', '?cursor=', '?order=asc'])(
    'refuses %s',
    async (query) => {
      const { admin } = await newAccount();
      const param = /\w+/.exec(query)?.[0] ?? '';
      refused(await ask(admin, 'GET', query), 'invalid_request', param);
    },
  );

  test('needs the scope admin, like every route of API keys', async () => {
    const { id, admin } = await newAccount();
    const { id: keyId } = await create(admin);
    const apiKey = await addApiKey(stack, id, { scopes: ['presign', 'read'] });
    const body = { name: 'a', scopes: ['admin'] };
    for (const sent of [
      await ask(apiKey, 'POST', '', body),
      await ask(apiKey, 'GET'),
      await ask(apiKey, 'GET', `/${keyId}`),
      await ask(apiKey, 'DELETE', `/${keyId}`),
    ]) {
      refused(sent, 'forbidden');
    }
  });
});
