import { randomUUID } from 'node:crypto';
import { createPresign, each, type Presign, PresignError } from '@presign/client';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { api } from '../harness/documented.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;
let presign: Presign;
/** Resolves when the upstream may answer a call whose body says `hold`. */
const held = deferred();
/** Every operation that some test asked for. */
const asked = new Set<string>();

beforeAll(async () => {
  upstream = await startUpstream(async ({ body }, response) => {
    if (body.includes('"hold"')) await held.promise;
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}');
  });
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

/** Calls a URL. Returns the status and the code of a refusal. */
async function call(url: string, body: object = {}, headers: Record<string, string> = {}) {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return [answer.status, answer.headers.get('x-presign-code')];
}
const OK = [200, null];

test('an issued URL is called, listed over pages, counted, and revoked', async () => {
  const user = `user-${randomUUID()}`;
  const issued = await Promise.all(
    Array.from({ length: 5 }, () => presign.presign({ ...CHAT, external_user: user, max_uses: 1 })),
  );
  for (const { url } of issued) expect((await fetch(url, { method: 'POST', body: '{}' })).status).toBe(200);

  const found: string[] = [];
  for await (const { id } of each(presign.listSessions, { external_user: user, limit: 2 })) found.push(id);
  expect(found.toSorted()).toEqual(issued.map(({ session_id }) => session_id).toSorted());

  const urls: string[] = [];
  for await (const { id } of each(presign.listGrants, { external_user: user, limit: 2 })) urls.push(id);
  expect(urls.toSorted()).toEqual(issued.map(({ grant_id }) => grant_id).toSorted());

  const [first = '', second = ''] = found;
  const { grants } = await presign.getSession({ id: first });
  expect(urls).toContain(grants[0]?.id);
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
  expect(await presign.getCall({ request_id: request_id ?? '' })).toEqual({
    ...{ ...calls[0], price_lines: null, refunds: [] },
  });
  expect(await presign.listSimilarCalls({ request_id: request_id ?? '' })).toEqual({
    data: expect.any(Array),
  });
  expect(await presign.search({ contains: user.slice(1) })).toEqual({
    data: [{ kind: 'external_user', id: user, name: user }],
    complete: true,
  });
  expect((await presign.getUsageHours({ group_by: ['provider'] })).data?.[0]).toMatchObject({
    provider: 'openai',
  });
  const models = await presign.listModels({ provider: 'openai', model: 'gpt-4o' });
  expect(models.data.map(({ source }) => source)).toEqual(['bundled']);
  const csv = await presign.getUsage({ ...range, format: 'csv' });
  expect(csv.split('\r\n')).toEqual([
    expect.stringContaining('external_user,calls'),
    expect.stringContaining(user),
    '',
  ]);
});

test('a spent URL that is raised passes its next call, and an update with an old revision changes nothing', async () => {
  const { url, session_id } = await presign.presign({ ...CHAT, max_uses: 1 });
  const call = async () => (await fetch(url, { method: 'POST', body: '{}' })).status;
  expect([await call(), await call()]).toEqual([200, 403]);
  const [{ id } = { id: '' }] = (await presign.getSession({ id: session_id })).grants;
  const { revision } = await presign.getGrant({ id });
  expect(await presign.changeGrant({ id, max_uses: 2 }, { ifRevision: revision })).toMatchObject({ id });
  expect([await call(), await call()]).toEqual([200, 403]);
  await eventually(async () =>
    (await presign.getRefusals({ days: 1 })).data?.some(({ code }) => code === 'uses_exhausted'),
  );
  const again = presign.changeGrant({ id, max_uses: 3 }, { ifRevision: revision });
  expect(await refusalOf(again)).toMatchObject({ status: 412, code: 'revision_mismatch' });
});

test('a budget for each user is created from a template, spent, raised, and deleted', async () => {
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

test('a budget for a metadata value has thresholds, and announces those that calls reach', async () => {
  const team = `team-${randomUUID()}`;
  const { id: hook } = await presign.createWebhook({
    ...{ url: `${upstream.url}/budgets`, events: ['budget.threshold', 'budget.exhausted'] as const },
  });
  const asked = { scope: { metadata: { team } }, max_uses: 2, window: 'day' as const, thresholds: [50, 75] };
  const { id } = await presign.createBudget(asked);
  const { url } = await presign.presign({ ...CHAT, metadata: { team } });
  const events = async () => {
    const all = upstream.seen.filter(({ url: path }) => path === '/budgets');
    return all.map(({ body }) => (JSON.parse(String(body)) as { type: string }).type);
  };
  expect(await call(url)).toEqual(OK);
  await eventually(async () => (await events()).includes('budget.threshold'));
  expect(await presign.changeBudget({ id, thresholds: [90] })).toMatchObject({ thresholds: [90] });
  expect([await call(url), await call(url)]).toEqual([OK, [403, 'uses_exhausted']]);
  await eventually(async () => (await events()).includes('budget.exhausted'));
  await presign.deleteWebhook({ id: hook });
});

test('each limit and condition of a URL refuses the call that breaks it', async () => {
  const body = { model: 'gpt-4o-mini', max_tokens: 5, messages: [] };
  const origin = 'https://app.example.com';
  const urlOf = async (fields: object) => (await presign.presign({ ...CHAT, ...fields })).url;
  const daily = await urlOf({ calls_per_day: 1 });
  expect([await call(daily), await call(daily)]).toEqual([OK, [429, 'daily_rate_limited']]);
  const minute = await urlOf({ calls_per_minute: 1 });
  expect([await call(minute), await call(minute)]).toEqual([OK, [429, 'rate_limited']]);
  expect(await call(await urlOf({ tokens_per_minute: 1 }), body)).toEqual([422, 'token_rate_too_low']);
  const bound = await urlOf({ bind: { origins: [origin] }, max_body_bytes: 20, allowed_fields: ['stream'] });
  expect(await call(bound, {})).toEqual([403, 'origin_not_allowed']);
  expect(await call(bound, body, { origin })).toEqual([413, 'body_too_large']);
  expect(await call(bound, { n: 1 }, { origin })).toEqual([403, 'field_not_allowed']);
  expect(await call(bound, { stream: false }, { origin })).toEqual(OK);
  const elsewhere = await urlOf({ bind: { ip_ranges: ['192.0.2.0/24'] } });
  expect(await call(elsewhere)).toEqual([403, 'address_not_allowed']);
  const one = await urlOf({ concurrent_calls: 1 });
  const before = upstream.seen.length;
  const running = call(one, { user: 'hold' });
  await eventually(async () => upstream.seen.length > before);
  expect(await call(one)).toEqual([429, 'concurrency_limited']);
  held.resolve();
  expect(await running).toEqual(OK);
});

test('all URLs of a session are raised and extended at once', async () => {
  const { session_id, url } = await presign.presign({ ...CHAT, max_uses: 1, expires_in: 600 });
  await presign.presign({ ...CHAT, session_id, max_uses: 1 });
  expect([await call(url), await call(url)]).toEqual([OK, [403, 'uses_exhausted']]);
  const expires_at = Math.floor(Date.now() / 1000) + 7_200;
  const asked = { id: session_id, grants: { max_uses: 2, expires_at } };
  const changed = await presign.changeSession(asked, { ifRevision: 1 });
  if (!('changed' in changed)) throw new Error('it is pending');
  expect([changed.revision, changed.changed.length]).toEqual([2, 2]);
  expect(await call(url)).toEqual(OK);
  for (const { url: next } of changed.changed) await fetch(next ?? '', { method: 'POST', body: '{}' });
  const { grants } = await presign.getSession({ id: session_id });
  expect(grants.map(({ live }) => live?.used).sort()).toEqual([1, 2]);
});

test('a backend with a policy issues what the policy allows, bound as it says', async () => {
  const policy = {
    providers: ['openai'],
    highest: { max_uses: 2, expires_in: 60 },
    required: ['max_uses' as const],
    max_body_bytes: 100,
    bind: { origins: ['https://app.example.com'] },
  };
  const made = await presign.createApiKey({ name: 'web', scopes: ['presign', 'read'], policy });
  const backend = createPresign({ url: stack.issuerUrl, apiKey: made.key });
  const error = await refusalOf(backend.presign({ ...CHAT, max_uses: 3, max_body_bytes: 101 }));
  expect(error).toMatchObject({ status: 403, code: 'policy_forbids' });
  const { grant_id, url } = await backend.presign({ ...CHAT, max_uses: 1 });
  const { conditions } = await presign.getGrant({ id: grant_id });
  expect(conditions).toEqual({ max_body_bytes: 100, bind: policy.bind });
  expect(await call(url)).toEqual([403, 'origin_not_allowed']);
  const raised = refusalOf(backend.changeGrant({ id: grant_id, max_uses: 2 }));
  expect(await raised).toMatchObject({ status: 403, code: 'policy_forbids', param: 'max_uses' });
});

test('a tool of a bundle accepts only the arguments that were allowed at issuing', async () => {
  const servers = [
    {
      ...{ name: 'files', url: `${upstream.url}/mcp`, transport: 'http' as const, tools: ['read_file'] },
      arguments: { read_file: { path: { prefix: 'docs/' } } },
    },
  ];
  const { servers: issued } = await presign.mcpPresign({ servers });
  const read = async (path: string) => {
    const params = { name: 'read_file', arguments: { path } };
    const answer = await fetch(issued.files?.url ?? '', {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    });
    return answer.text();
  };
  expect(await read('secrets/key')).toContain('argument_not_allowed');
  await read('docs/a.md');
  const bodies = upstream.seen.map(({ body }) => String(body));
  expect(bodies.filter((body) => body.includes('docs/a.md'))).toHaveLength(1);
  expect(bodies.filter((body) => body.includes('secrets/key'))).toEqual([]);
});

test('a bundle is issued for MCP servers', async () => {
  const servers = [{ name: 'docs', url: `${upstream.url}/mcp`, transport: 'http' as const }];
  const { bundle_url, servers: issued } = await presign.mcpPresign({ servers });
  expect(await (await fetch(bundle_url)).json()).toEqual({ mcpServers: issued });
});

test('a virtual key is stored, used, rotated and deleted', async () => {
  const { id } = await presign.createVirtualKey({ provider: 'openai', name: 'production', key: 'sk-first' });
  const { url } = await presign.presign({ ...CHAT, client_api_key: undefined, virtual_key: id });
  expect(await presign.rotateVirtualKey({ id, key: 'sk-second' })).toMatchObject({ id, version: 2 });
  await fetch(url, { method: 'POST', body: '{}' });
  expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer sk-second');
  const changed = await presign.changeVirtualKey({ id, name: 'renamed' }, { ifRevision: 1 });
  expect(changed).toMatchObject({ name: 'renamed', revision: 2 });
  // The call changes the key's figures once the ledger has it: two reads are alike only after that.
  const settled = await eventually(async () => {
    const found = await presign.getVirtualKey({ id });
    return found.budget?.settled.used === 1 && found;
  });
  expect((await presign.listVirtualKeys()).data).toEqual([settled]);
  expect(await presign.deleteVirtualKey({ id })).toBeUndefined();
  expect((await presign.getVirtualKey({ id })).revoked_at).toBeGreaterThan(0);
});

test('an API key created for a backend works within its scopes, and ends', async () => {
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

test('an endpoint is created, tested, replayed, and deleted', async () => {
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

test('an alert posts to Slack, and is changed and deleted', async () => {
  const url = `${upstream.url}/services/T0/B0/secret`;
  const { id: webhook, secret } = await presign.createWebhook({ url, format: 'slack' });
  expect(secret).toBeNull();
  const condition = { spend: { window: 'day' as const, amount: 1_000_000 } };
  const { id, revision } = await presign.createAlert({ name: 'Spend', condition, webhook });
  expect((await presign.testAlert({ id })).type).toBe('alert.fired');
  await eventually(async () => upstream.seen.some(({ url: path }) => path === '/services/T0/B0/secret'));
  const changed = await presign.changeAlert({ id, enabled: false }, { ifRevision: revision });
  expect([changed.enabled, (await presign.getAlert({ id })).enabled]).toEqual([false, false]);
  expect((await presign.listAlerts()).data).toMatchObject([{ id, webhook }]);
  expect((await presign.listFirings({ id })).data).toEqual([]);
  await presign.deleteAlert({ id });
  await presign.deleteWebhook({ id: webhook });
  expect(await refusalOf(presign.getAlert({ id }))).toMatchObject({ status: 404, code: 'not_found' });
});

test('an account is created, issues URLs, is suspended, resumed and deleted, and each change is in the audit log', async () => {
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
  await callsSettled(stack);
  expect(await presign.getAccountUsage({ id })).toMatchObject({ this_month: { calls: 1 }, live_urls: 1 });
  const [listed] = (await presign.listAccounts({ limit: 1, include: 'usage' })).data;
  expect(listed).toMatchObject({ id, usage: { this_month: { calls: 1 }, live_urls: 1 } });
  expect(await presign.deleteAccount({ id })).toBeUndefined();
  expect(await refusalOf(customer.presign(CHAT))).toMatchObject({ status: 401, code: 'unauthenticated' });
  const { data } = await presign.listAudit({ action: 'account.suspended' });
  expect(data).toMatchObject([{ target: { kind: 'account', id } }]);
  const lines = await presign.listAudit({ action: 'account.suspended', format: 'ndjson' });
  expect(JSON.parse(lines.split('\n')[0] ?? '')).toEqual(data[0]);
  const table = await presign.listAudit({ target_kind: 'account', target_id: id, format: 'csv' });
  for (const action of ['created', 'suspended', 'resumed', 'changed', 'deleted'])
    expect(table).toContain(`account.${action}`);
});

test('a refusal names the field, and has the request id of the log', async () => {
  const error = await refusalOf(presign.presign({ ...CHAT, max_uses: 0 }));
  expect(error).toMatchObject({ status: 400, code: 'invalid_request', param: 'max_uses' });
  expect(error.message).toContain('max_uses');
  expect(stack.logs.some((line) => line.includes(error.requestId ?? 'no id'))).toBe(true);
});

test('publicKeys returns the public key of the issuer', async () => {
  expect((await presign.publicKeys()).keys).toHaveLength(1);
});

test('this file calls every operation of the API', () => {
  const all = Object.values(api.paths).flatMap((methods) => Object.values(methods));
  expect([...asked].sort()).toEqual(all.map(({ operationId }) => operationId).sort());
});
