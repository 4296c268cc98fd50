import { randomUUID } from 'node:crypto';
import { createPresign, each, type Presign, PresignError } from '@presign/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { api } from '../harness/documented.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;
let presign: Presign;
/** Every operation that some test asked for. */
const asked = new Set<string>();

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
  const client = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
  presign = new Proxy(client, {
    get: (methods, name) => {
      asked.add(String(name));
      return methods[name as keyof Presign];
    },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };

const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it was not refused'),
    (error: unknown) => (error instanceof PresignError ? error : expect.fail(String(error))),
  );

test('what is issued is called, listed over pages, counted, and revoked', async () => {
  const user = `user-${randomUUID()}`;
  const issued = await Promise.all(
    Array.from({ length: 5 }, () => presign.presign({ ...CHAT, external_user: user, max_uses: 1 })),
  );
  for (const { url } of issued) expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);

  const found: string[] = [];
  for await (const { id } of each(presign.listSessions, { external_user: user, limit: 2 })) found.push(id);
  expect(found.toSorted()).toEqual(issued.map(({ session_id }) => session_id).toSorted());

  const [first = '', second = ''] = found;
  const { grants } = await presign.getSession({ id: first });
  expect(grants).toMatchObject([{ status: 'exhausted', live: { used: 1 } }]);
  expect(await presign.changeSession({ id: first, name: 'chat' })).toMatchObject({ name: 'chat' });
  await presign.revokeGrant({ id: grants[0]?.id ?? '' });
  await presign.revokeSession({ id: second });
  expect((await presign.getSession({ id: second })).revoked_at).toBeGreaterThan(0);
  await presign.revokeSessions({ external_user: user });
  const active = await presign.listSessions({ external_user: user, status: 'active' });
  expect(active).toEqual({ data: [], next_cursor: null });

  const range = { from: 1, external_user: user, group_by: ['external_user'] } as const;
  const report = await eventually(async () => {
    const usage = await presign.getUsage(range);
    return usage.total.calls === 5 ? usage : undefined;
  });
  expect(report.data).toMatchObject([{ external_user: user, calls: 5, uses: 5 }]);
  const { data: calls } = await presign.listCalls({ external_user: user });
  expect(calls).toHaveLength(5);
  const [{ request_id } = { request_id: null }] = calls;
  expect(await presign.getCall({ request_id: request_id ?? '' })).toEqual({ ...calls[0], refunds: [] });
  const models = await presign.listModels({ provider: 'openai', model: 'gpt-4o' });
  expect(models.data.map(({ source }) => source)).toEqual(['bundled']);
  const csv = await presign.getUsage({ ...range, format: 'csv' });
  expect(csv.split('\r\n')).toEqual([
    expect.stringContaining('external_user,calls'),
    expect.stringContaining(user),
    '',
  ]);
});

test('a spent URL that is raised passes its next call, and an old revision changes nothing', async () => {
  const { url, session_id } = await presign.presign({ ...CHAT, max_uses: 1 });
  const call = async () => (await fetch(url, { method: 'POST', body: '{}' })).status;
  expect([await call(), await call()]).toEqual([200, 403]);
  const [{ id } = { id: '' }] = (await presign.getSession({ id: session_id })).grants;
  const { revision } = await presign.getGrant({ id });
  expect(await presign.changeGrant({ id, max_uses: 2 }, { ifRevision: revision })).toMatchObject({ id });
  expect([await call(), await call()]).toEqual([200, 403]);
  const again = presign.changeGrant({ id, max_uses: 3 }, { ifRevision: revision });
  expect(await refusalOf(again)).toMatchObject({ status: 412, code: 'revision_mismatch' });
});

test('a budget of each user is made from a template, spent, raised, and deleted', async () => {
  const user = `user-${randomUUID()}`;
  const template = await presign.createBudget({ scope: { external_user: '*' }, max_uses: 1, window: 'week' });
  const { url } = await presign.presign({ ...CHAT, external_user: user });
  const call = async () => (await fetch(url, { method: 'POST', body: '{}' })).status;
  expect([await call(), await call()]).toEqual([200, 403]);
  const { data } = await presign.listBudgets({ template: template.id });
  expect(data).toMatchObject([{ scope: { external_user: user }, current: { live: { used: 1 } } }]);
  const [{ id, revision } = { id: '', revision: 0 }] = data;
  expect(await presign.changeBudget({ id, max_uses: 2 }, { ifRevision: revision })).toMatchObject({
    max_uses: 2,
  });
  expect([await call(), await call()]).toEqual([200, 403]);
  for (const each of [id, template.id]) await presign.deleteBudget({ id: each });
  expect(await call()).toBe(200);
  expect((await presign.getBudget({ id })).deleted_at).toBeGreaterThan(0);
});

test('a bundle is issued for MCP servers', async () => {
  const servers = [{ name: 'docs', url: `${upstream.url}/mcp`, transport: 'http' as const }];
  const { bundle_url, servers: issued } = await presign.mcpPresign({ servers });
  expect(await (await fetch(bundle_url)).json()).toEqual({ mcpServers: issued });
});

test('a virtual key is kept, used, rotated and deleted', async () => {
  const { id } = await presign.createVirtualKey({ provider: 'openai', name: 'production', key: 'sk-first' });
  const { url } = await presign.presign({ ...CHAT, client_api_key: undefined, virtual_key: id });
  expect(await presign.rotateVirtualKey({ id, key: 'sk-second' })).toMatchObject({ id, version: 2 });
  await fetch(url, { method: 'POST', body: '{}' });
  expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer sk-second');
  const changed = await presign.changeVirtualKey({ id, name: 'renamed' }, { ifRevision: 1 });
  expect(changed).toMatchObject({ name: 'renamed', revision: 2 });
  expect((await presign.listVirtualKeys()).data).toEqual([await presign.getVirtualKey({ id })]);
  expect(await presign.deleteVirtualKey({ id })).toBeUndefined();
  expect((await presign.getVirtualKey({ id })).revoked_at).toBeGreaterThan(0);
});

test('an API key made for a backend works, may only what it may, and ends', async () => {
  const made = await presign.createApiKey({ name: 'backend', scopes: ['presign'] });
  const backend = createPresign({ url: stack.issuerUrl, apiKey: made.key });
  expect((await backend.presign(CHAT)).url).toContain('/llm/t/');
  expect(await refusalOf(backend.listSessions())).toMatchObject({ status: 403, code: 'forbidden' });
  const { key: _, ...told } = made;
  expect(await presign.getApiKey({ id: made.id })).toEqual({ ...told, last_used_at: expect.any(Number) });
  expect((await presign.listApiKeys({ limit: 1 })).data).toMatchObject([{ id: made.id }]);
  const { presign: own } = await backend.getLimits();
  expect([own?.max_uses.required, own?.expires_in.maximum]).toEqual([false, 31_536_000]);
  const policy = { required: ['max_uses' as const] };
  expect(await presign.changeApiKey({ id: made.id, policy })).toMatchObject({ policy, revision: 2 });
  expect((await backend.getLimits()).presign?.max_uses.required).toBe(true);
  await presign.revokeApiKey({ id: made.id });
  expect(await refusalOf(backend.presign(CHAT))).toMatchObject({ status: 401, code: 'unauthenticated' });
});

test('an endpoint is added, tried, notified again, and removed', async () => {
  const url = `${upstream.url}/events`;
  const { id, secret } = await presign.createWebhook({ url, events: ['grant.revoked'] });
  const { id: delivery_id } = await presign.testWebhook({ id });
  await eventually(async () => {
    const { data } = await presign.listDeliveries({ id, status: 'delivered' });
    return data.length === 1 || undefined;
  });
  expect(await presign.replayDelivery({ id, delivery_id })).toMatchObject({ id: delivery_id });
  expect((await presign.rotateWebhookSecret({ id })).secret).not.toBe(secret);
  expect(await presign.changeWebhook({ id, description: 'ours' })).toMatchObject({ description: 'ours' });
  expect(await presign.enableWebhook({ id })).toEqual(await presign.getWebhook({ id }));
  expect((await presign.listWebhooks()).data).toMatchObject([{ id, url }]);
  await presign.deleteWebhook({ id });
  expect(await refusalOf(presign.getWebhook({ id }))).toMatchObject({ status: 404, code: 'not_found' });
});

test('an account is made, issues URLs, is suspended and resumed, and ends, and each change is in the audit log', async () => {
  const { id, api_key } = await presign.createAccount({ name: 'customer' });
  const customer = createPresign({ url: stack.issuerUrl, apiKey: api_key.key });
  const { url } = await customer.presign(CHAT);
  const call = async () => (await fetch(url, { method: 'POST', body: '{}' })).status;
  expect(await presign.suspendAccount({ id })).toBeUndefined();
  expect(await call()).toBe(403);
  expect(await presign.resumeAccount({ id })).toBeUndefined();
  expect(await call()).toBe(200);
  const limits = { urls_per_minute: 60 };
  expect(await presign.changeAccount({ id, limits }, { ifRevision: 1 })).toMatchObject({ limits });
  expect((await customer.getLimits()).account).toEqual((await presign.getAccount({ id })).limits);
  expect((await presign.getLimits()).account.urls_per_minute).toBeNull();
  expect((await presign.listAccounts({ limit: 1 })).data).toEqual([await presign.getAccount({ id })]);
  expect(await presign.deleteAccount({ id })).toBeUndefined();
  expect(await refusalOf(customer.presign(CHAT))).toMatchObject({ status: 401, code: 'unauthenticated' });
  const { data } = await presign.listAudit({ action: 'account.suspended' });
  expect(data).toMatchObject([{ target: { kind: 'account', id } }]);
  const lines = await presign.listAudit({ action: 'account.suspended', format: 'ndjson' });
  expect(JSON.parse(lines.split('\n')[0] ?? '')).toEqual(data[0]);
});

test('a refusal names the field, and the request by the id that the log has', async () => {
  const error = await refusalOf(presign.presign({ ...CHAT, max_uses: 0 }));
  expect(error).toMatchObject({ status: 400, code: 'invalid_request', param: 'max_uses' });
  expect(error.message).toContain('max_uses');
  expect(stack.logs.some((line) => line.includes(error.requestId ?? 'no id'))).toBe(true);
});

test('the public keys need no scope, and with them every operation has been asked for', async () => {
  expect((await presign.publicKeys()).keys).toHaveLength(1);
  const all = Object.values(api.paths).flatMap((methods) => Object.values(methods));
  expect([...asked].sort()).toEqual(all.map(({ operationId }) => operationId).sort());
});
