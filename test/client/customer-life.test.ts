import { randomUUID } from 'node:crypto';
import { createPresign, type Presign, PresignError } from '@presign/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deferred, eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';

let upstream: Upstream;
let stack: Stack;
/** Clients of the operator, and of a customer with an account of its own. */
let operator: Presign;
let customer: Presign;
/** Resolves when the upstream may answer a call whose body says `hold`. */
const held = deferred();

beforeAll(async () => {
  upstream = await startUpstream(async (seen, response, request) => {
    if (seen.body.includes('"hold"')) await held.promise;
    if (seen.url !== '/mcp') return answerChat(seen, response, request);
    const { id } = JSON.parse(String(seen.body)) as { id: number };
    const tools = ['search', 'drop'].map((name) => ({ name, inputSchema: { type: 'object' } }));
    response.writeHead(200, { 'content-type': 'application/json' });
    return void response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { tools } }));
  });
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
  operator = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const as = (apiKey: string) => createPresign({ url: stack.issuerUrl, apiKey });

async function newCustomer() {
  const { id, api_key } = await operator.createAccount({ name: 'customer' });
  customer = as(api_key.key);
  return { id, keyId: api_key.id };
}

const CHAT = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const BODY = { model: 'gpt-4o-mini', max_tokens: 10, messages: [{ role: 'user', content: 'Hello' }] };

type Refused = { readonly code?: string; readonly budget?: string; readonly limit_of?: string };
let calls = 0;
/** Calls a URL, at one gateway after the other. Returns the code of a refusal, and what else it says. */
async function call(url: string, body: object = BODY) {
  const [first = '', second = ''] = stack.gatewayUrls;
  const answer = await fetch(calls++ % 2 === 0 ? url : url.replace(first, second), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const { error = {} } = (await answer.json()) as { error?: Refused };
  const id = answer.headers.get('x-presign-request-id') ?? '';
  return { status: answer.status, code: error.code ?? 'ok', error, id };
}
const codeOf = async (url: string, body?: object) => (await call(url, body)).code;

/** Calls until a call is refused. */
async function spend(url: string) {
  for (let i = 0; i < 50; i++) {
    const last = await call(url);
    if (last.code !== 'ok') return last;
  }
  return expect.fail('nothing was refused');
}

const refusalOf = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.fail('it was not refused'),
    (error: unknown) => (error instanceof PresignError ? error : expect.fail(String(error))),
  );

const seconds = () => Math.floor(Date.now() / 1000);

describe('a budget', () => {
  const zones = { time_zone: 'Europe/Berlin', anchor: 1_767_254_400 };
  test.each([
    ['account', 'hour', { max_uses: 2 }],
    ['api_key', 'day', { cost_limit: 100, time_zone: 'America/New_York' }],
    ['virtual_key', 'week', { tokens: 500, time_zone: 'Asia/Kolkata' }],
    ['external_user', 'month', { max_uses: 2, ...zones }],
    ['metadata', 'lifetime', { cost_limit: 100 }],
  ] as const)(
    'of %s in each %s names itself in its refusal, passes calls after it is raised, and stops them at 0',
    async (kind, window, limits) => {
      const { keyId } = await newCustomer();
      const virtual = await customer.createVirtualKey({ provider: 'openai', name: 'main', key: 'sk-real' });
      const scope = {
        account: { account: true as const },
        api_key: { api_key: keyId },
        virtual_key: { virtual_key: virtual.id },
        external_user: { external_user: 'ada' },
        metadata: { metadata: { team: 'red' } },
      }[kind];
      const budget = await customer.createBudget({ scope, window, ...limits });
      const { client_api_key: _, ...chat } = CHAT;
      const asked = { external_user: 'ada', metadata: { team: 'red' }, virtual_key: virtual.id };
      const { url } = await customer.presign({ ...chat, ...asked });
      const { error } = await spend(url);
      expect(error).toMatchObject({ limit_of: 'budget', budget: budget.id });
      // A budget of one user is shown to the user by default, and the others are not.
      const isShown = kind === 'external_user';
      for (const figure of ['limit', 'used'])
        expect(Object.hasOwn(error ?? {}, figure), figure).toBe(isShown);
      for (const hidden of ['remaining', 'name']) expect(error).not.toHaveProperty(hidden);
      const { current } = await customer.getBudget({ id: budget.id });
      expect(current?.starts_at).toBeLessThanOrEqual(seconds());
      expect(current?.ends_at ?? Number.POSITIVE_INFINITY).toBeGreaterThan(seconds());
      const [limit = 'max_uses'] = (['max_uses', 'cost_limit', 'tokens'] as const).filter(
        (name) => name in limits,
      );
      const raised = { id: budget.id, [limit]: 10_000 };
      await customer.changeBudget(raised, { ifRevision: budget.revision });
      expect(await codeOf(url)).toBe('ok');
      await customer.changeBudget({ id: budget.id, [limit]: 0 });
      expect(await codeOf(url)).not.toBe('ok');
      const { data } = await customer.listAudit({ target_kind: 'budget', target_id: budget.id });
      expect(data.map(({ action }) => action)).toEqual([
        'budget.changed',
        'budget.changed',
        'budget.created',
      ]);
      expect(data[0]).toMatchObject({ before: { [limit]: 10_000 }, after: { [limit]: 0 } });
    },
  );

  test('has one of at most eight kinds', async () => {
    await newCustomer();
    for (const window of ['lifetime', 'hour', 'day', 'week'] as const) {
      await customer.createBudget({ scope: { account: true }, max_uses: 9, window });
      await customer.createBudget({ scope: { external_user: '*' }, max_uses: 9, window });
    }
    const ninth = customer.createBudget({ scope: { metadata: { team: '*' } }, max_uses: 9 });
    expect(await refusalOf(ninth)).toMatchObject({ status: 409, code: 'budget_conflict', param: 'scope' });
    const { url, grant_id } = await customer.presign({
      ...CHAT,
      external_user: 'ada',
      metadata: { team: 'a' },
    });
    expect((await customer.getGrant({ id: grant_id })).shared_budgets).toHaveLength(8);
    expect(await codeOf(url)).toBe('ok');
    const { data } = await customer.listBudgets({ external_user: 'ada' });
    expect(data.map(({ window }) => window).sort()).toEqual(['day', 'hour', 'lifetime', 'week']);
    const counted = data.find(({ window }) => window === 'lifetime');
    expect(counted?.current?.live?.used).toBe(1);
  });
});

test('a URL is lowered to 0, raised, shortened, and extended twice; the audit log has each change with its values', async () => {
  await newCustomer();
  const { url, grant_id: id, expires_at } = await customer.presign({ ...CHAT, max_uses: 5, expires_in: 600 });
  for (const [max_uses, code] of [
    [0, 'uses_exhausted'],
    [2, 'ok'],
    [1, 'uses_exhausted'],
    [-1, 'ok'],
  ] as const) {
    await customer.changeGrant({ id, max_uses });
    expect(await codeOf(url)).toBe(code);
  }
  const urlUntil = async (end: number) => {
    const changed = await customer.changeGrant({ id, expires_at: end });
    return 'url' in changed ? changed.url : expect.fail('it is pending');
  };
  expect(await urlUntil(expires_at - 300)).toBeNull();
  expect(await urlUntil(expires_at - 100)).toBeNull();
  const next = (await urlUntil(expires_at + 300)) ?? '';
  expect(await Promise.all([codeOf(url), codeOf(next)])).toEqual(['ok', 'ok']);
  const { data } = await customer.listAudit({ target_kind: 'grant', target_id: id, action: 'grant.changed' });
  expect(data).toHaveLength(7);
  expect(data[0]).toMatchObject({ before: { expires_at: expires_at - 100 }, after: { max_uses: null } });
  await customer.revokeGrant({ id });
  expect(await refusalOf(customer.changeGrant({ id, max_uses: 9 }))).toMatchObject({ code: 'grant_ended' });
});

test('each rate limit of a URL can be added, raised and removed while calls use it', async () => {
  await newCustomer();
  const { url, grant_id: id } = await customer.presign(CHAT);
  for (const [limits, code] of [
    [{ tokens_per_minute: 1 }, 'token_rate_too_low'],
    [{ tokens_per_minute: 100_000 }, 'ok'],
    [{ tokens_per_minute: null, calls_per_minute: 1 }, 'ok'],
    [{}, 'rate_limited'],
    [{ calls_per_minute: null, calls_per_day: 1 }, 'ok'],
    [{}, 'daily_rate_limited'],
    [{ calls_per_day: null }, 'ok'],
  ] as const) {
    if (Object.keys(limits).length > 0) await customer.changeGrant({ id, ...limits });
    // A gateway that remembers the URL without any limit of tokens reads it again.
    const answered = await eventually(async () => {
      const now = await codeOf(url);
      return now === 'limits_unavailable' ? undefined : now;
    });
    expect(answered, JSON.stringify(limits)).toBe(code);
  }
  await customer.changeGrant({ id, concurrent_calls: 1 });
  const before = upstream.seen.length;
  const running = call(url, { ...BODY, user: 'hold' });
  await eventually(async () => upstream.seen.length > before);
  expect(await codeOf(url)).toBe('concurrency_limited');
  await customer.changeGrant({ id, concurrent_calls: 2 });
  expect(await codeOf(url)).toBe('ok');
  held.resolve();
  expect((await running).code).toBe('ok');
});

test('a key with a policy issues URLs that the policy binds, and each of their calls is found with its price', async () => {
  await newCustomer();
  const policy = {
    providers: ['openai'],
    paths: ['/v1/chat/*'],
    models: ['gpt-4o-mini'],
    highest: { cost_limit: 1_000 },
    config: { max_tokens: 7 },
    external_user: 'ada',
  };
  const made = await customer.createApiKey({ name: 'web', scopes: ['presign'], policy });
  const web = as(made.key);
  for (const [fields, param] of [
    [{}, 'cost_limit'],
    [{ cost_limit: 1_001 }, 'cost_limit'],
    [{ cost_limit: 10, path: '/v1/embeddings' }, 'path'],
    [{ cost_limit: 10, models: ['gpt-4o'] }, 'models[0]'],
    [{ cost_limit: 10, config: { max_tokens: 8 } }, 'config.max_tokens'],
    [{ cost_limit: 10, external_user: 'eve' }, 'external_user'],
  ] as const) {
    const error = await refusalOf(
      web.presign({ ...CHAT, ...fields, models: [...(fields.models ?? ['gpt-4o-mini'])] }),
    );
    expect(error, param).toMatchObject({ status: 403, code: 'policy_forbids', param });
  }
  const { url, grant_id } = await web.presign({ ...CHAT, cost_limit: 1_000 });
  expect(await codeOf(url, { ...BODY, model: 'gpt-4o' })).toBe('model_not_allowed');
  const { code, id: request_id } = await call(url);
  expect(code).toBe('ok');
  expect(JSON.parse(String(upstream.seen.at(-1)?.body))).toMatchObject({ max_completion_tokens: 7 });
  const found = await eventually(() => customer.getCall({ request_id }).catch(() => undefined));
  const expected = {
    api_key: made.id,
    grant_id,
    external_user: 'ada',
    model: 'gpt-4o-mini',
    input_tokens: 10,
  };
  expect(found).toMatchObject({ ...expected, output_tokens: 10, cost: 8, status: 200, failure: null });
  expect(found.hold).toBeGreaterThan(8);
  const { lists } = await customer.listModels({ provider: 'openai', model: 'gpt-4o-mini' });
  expect(lists.map(({ id }) => id)).toContain(found.price_list?.id);
  const { data } = await customer.getUsage({ group_by: ['api_key'] });
  expect(data).toMatchObject([{ api_key: made.id, calls: 1, cost: 8 }]);
});

test('a URL accepts its allowed models, and a bundle lists its allowed tools', async () => {
  await newCustomer();
  const { url } = await customer.presign({ ...CHAT, models: ['gpt-4o-mini'] });
  expect([await codeOf(url), await codeOf(url, { ...BODY, model: 'gpt-4o' })]).toEqual([
    'ok',
    'model_not_allowed',
  ]);
  const server = { name: 'web', url: `${upstream.url}/mcp`, transport: 'http' as const, tools: ['search'] };
  const { servers } = await customer.mcpPresign({ servers: [server] });
  const answer = await fetch(servers.web?.url ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
  });
  expect(await answer.json()).toMatchObject({ result: { tools: [{ name: 'search' }] } });
});

test('a repeated request gets the same answer: a URL, a key, and a webhook secret', async () => {
  await newCustomer();
  const { id } = await customer.createWebhook({ url: `${upstream.url}/events` });
  for (const ask of [
    (how: { idempotencyKey: string }) => customer.presign(CHAT, how),
    (how: { idempotencyKey: string }) => customer.createApiKey({ name: 'web', scopes: ['read'] }, how),
    (how: { idempotencyKey: string }) => customer.rotateWebhookSecret({ id }, how),
  ]) {
    const how = { idempotencyKey: randomUUID() };
    const [first, again] = [await ask(how), await ask(how)];
    expect(again).toEqual(first);
    expect(await ask({ idempotencyKey: randomUUID() })).not.toEqual(first);
  }
});
