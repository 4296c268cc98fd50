import { randomUUID } from 'node:crypto';
import { readEncryptionKeys, unseal } from '@presign/crypto';
import { apiKeys, audit, idempotencyKeys, virtualKeys } from '@presign/schema/tables';
import { webhookContext, webhookDeliveries, webhooks } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { refused, type Sent, send } from './ask.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
});
afterAll(() => stack.close());

const HOOK = { url: 'http://127.0.0.1:9/hook' };

/** An account of its own, with a key that may do everything. */
async function fresh() {
  const { id } = await addAccount(stack);
  return {
    issuerUrl: stack.issuerUrl,
    account: id,
    apiKey: await addApiKey(stack, id, { scopes: ['admin'] }),
  };
}
type Owner = Awaited<ReturnType<typeof fresh>>;

const post = (of: Owner, path: string, key: string, body?: object): Promise<Sent> =>
  send(of, { path, headers: { 'idempotency-key': key }, ...(body && { body }) });
const read = (sent: Sent) => JSON.parse(sent.text) as Record<string, string>;

async function addWebhook(of: Owner): Promise<Record<string, string>> {
  return read(await send(of, { path: '/v1/webhooks', body: HOOK }));
}

/** The secret that an endpoint signs with, as Postgres has it. */
async function signsWith(of: Owner, id: string): Promise<string> {
  const [row] = await stack.db.select().from(webhooks).where(eq(webhooks.id, id));
  return unseal(readEncryptionKeys(stack.keys.encryption), row?.sealed ?? '', webhookContext(of.account, id));
}

describe('a repeated POST with the same Idempotency-Key and body', () => {
  test.each([
    ['an API key', '/v1/api-keys', { name: 'backend', scopes: ['read'] }, apiKeys],
    ['a virtual key', '/v1/virtual-keys', { provider: 'openai', name: 'a', key: 'sk-1' }, virtualKeys],
    ['a webhook', '/v1/webhooks', HOOK, webhooks],
  ] as const)('creates %s once, and gets the same answer byte for byte', async (_what, path, body, table) => {
    const of = await fresh();
    const before = await stack.db.$count(table);
    const first = await post(of, path, 'key-1', body);
    expect(first.status, first.text).toBe(201);
    const again = await Promise.all([1, 2, 3].map(() => post(of, path, 'key-1', body)));
    for (const { status, text } of again) expect([status, text]).toEqual([201, first.text]);
    expect(await stack.db.$count(table)).toBe(before + 1);
    expect(await stack.db.$count(audit, eq(audit.accountId, of.account))).toBe(1);
    const other = await post(of, path, 'key-2', { ...body, description: undefined });
    expect(read(other).id).not.toBe(read(first).id);
  });

  test('rotates a secret once, so that the receiver and the endpoint have the same secret', async () => {
    const of = await fresh();
    const { id = '', secret: old } = await addWebhook(of);
    const path = `/v1/webhooks/${id}/rotate-secret`;
    const [first, again] = [await post(of, path, 'key-1'), await post(of, path, 'key-1')];
    expect(again.text).toBe(first.text);
    expect(read(first).secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(read(first).secret).not.toBe(old);
    expect(await signsWith(of, id)).toBe(read(first).secret);
    const next = await post(of, path, 'key-2');
    expect(read(next).secret).not.toBe(read(first).secret);
    expect(await signsWith(of, id)).toBe(read(next).secret);
  });

  test('a day later is a new request and gets another secret', async () => {
    const of = await fresh();
    const { id } = await addWebhook(of);
    const path = `/v1/webhooks/${id}/rotate-secret`;
    const first = await post(of, path, 'key-1');
    await stack.db.execute(sql`update idempotency_keys set created_at = created_at - interval '25 hours'`);
    expect(read(await post(of, path, 'key-1')).secret).not.toBe(read(first).secret);
  });

  test('sends one test event', async () => {
    const of = await fresh();
    const { id = '' } = await addWebhook(of);
    for (let i = 0; i < 3; i++) expect((await post(of, `/v1/webhooks/${id}/test`, 'key-1')).status).toBe(201);
    expect(await stack.db.$count(webhookDeliveries, eq(webhookDeliveries.webhookId, id))).toBe(1);
  });

  test('replaces the key of a virtual key, and is refused with another body', async () => {
    const of = await fresh();
    const made = await send(of, {
      path: '/v1/virtual-keys',
      body: { provider: 'openai', name: 'a', key: 'sk-1' },
    });
    const path = `/v1/virtual-keys/${read(made).id}/rotate`;
    for (let i = 0; i < 2; i++)
      expect(JSON.parse((await post(of, path, 'key-1', { key: 'sk-2' })).text)).toMatchObject({ version: 2 });
    refused(await post(of, path, 'key-1', { key: 'sk-3' }), 'idempotency_conflict', 'Idempotency-Key');
  });

  test('that failed is tried again', async () => {
    const of = await fresh();
    const path = `/v1/webhooks/${randomUUID()}/rotate-secret`;
    for (let i = 0; i < 2; i++) refused(await post(of, path, 'key-1'), 'not_found');
    expect(await stack.db.$count(idempotencyKeys, eq(idempotencyKeys.accountId, of.account))).toBe(0);
  });
});

test('an Idempotency-Key is separate for each account and each address', async () => {
  const [one, two] = [await fresh(), await fresh()];
  const hooks = [await addWebhook(one), await addWebhook(one), await addWebhook(two)];
  const rotate = (of: Owner, { id }: Record<string, string>) =>
    post(of, `/v1/webhooks/${id}/rotate-secret`, 'same');
  const sent = [
    await rotate(one, hooks[0] ?? {}),
    await rotate(one, hooks[1] ?? {}),
    await rotate(two, hooks[2] ?? {}),
  ];
  expect(new Set(sent.map((each) => read(each).secret)).size).toBe(3);
  refused(await rotate(two, hooks[0] ?? {}), 'not_found');
});

test('a secret that was created under an Idempotency-Key is stored nowhere in plain text', async () => {
  const of = await fresh();
  const made = [
    await post(of, '/v1/webhooks', 'key-1', HOOK),
    await post(of, '/v1/api-keys', 'key-1', { name: 'a', scopes: ['read'] }),
  ];
  const kept = JSON.stringify(await stack.db.select().from(idempotencyKeys));
  expect(kept).toContain(read(made[0] as Sent).id);
  for (const sent of made) expect(kept).not.toContain(read(sent).secret ?? read(sent).key);
});

test('an account is created once, and its first key is stored nowhere in plain text', async () => {
  const of = { issuerUrl: stack.issuerUrl, account: '', apiKey: stack.apiKey };
  const [first, again] = [
    await post(of, '/v1/accounts', 'key-1', { name: 'customer' }),
    await post(of, '/v1/accounts', 'key-1', { name: 'customer' }),
  ];
  expect([again.status, again.text]).toEqual([201, first.text]);
  const { key } = (JSON.parse(first.text) as { api_key: { key: string } }).api_key;
  expect((await send({ ...of, apiKey: key }, { method: 'GET', path: '/v1/api-keys' })).status).toBe(200);
  expect(JSON.stringify(await stack.db.select().from(idempotencyKeys))).not.toContain(key);
});

test('an invalid Idempotency-Key is refused on every POST', async () => {
  const of = await fresh();
  refused(await post(of, '/v1/webhooks', 'x'.repeat(256), HOOK), 'invalid_request', 'Idempotency-Key');
});
