import { randomUUID } from 'node:crypto';
import { connectRedis } from '@presign/limits';
import type { VirtualKeyAnswer } from '@presign/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { claimsOf, least, refused } from './ask.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { askVirtualKeys, createVirtualKey, getVirtualKey, virtualKey } from './virtual-keys.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    const usage = { prompt_tokens: 10, completion_tokens: 50, total_tokens: 60 };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ id: 'c', object: 'chat.completion', choices: [], usage }));
  });
  // 1 microdollar a token of output, nothing for input.
  const pricing = { 'model-1': { input: 0, output: 1_000_000 } };
  const provider = { base_url: upstream.url, pricing };
  stack = await startStack({
    gateways: 2,
    providers: { openai: provider },
    gateway: { settlingMs: 60_000 },
  });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const issue = async (id: string, fields: object = {}) =>
  (await stack.issue({ provider: 'openai', path: least.path, virtual_key: id, ...fields })).url;

const BODY = '{"model":"model-1","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}';
const over = (url: string, gateway: number) =>
  url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
const call = (url: string) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY });

describe('a created virtual key', () => {
  test('is shown as requested, and no part of the key is shown, stored in plain text or logged', async () => {
    const key = 'sk-Qx9RememberThisSecretZ7';
    const config = { max_tokens: 7 };
    const created = await createVirtualKey(stack, { key, name: 'Ünïcode', config, budget: { max_uses: 3 } });
    expect(created).toEqual({
      id: expect.stringMatching(/^vk_[0-9a-f-]{36}$/),
      name: 'Ünïcode',
      provider: 'openai',
      config,
      budget: {
        max_uses: 3,
        cost_limit: null,
        settled: { used: 0, spent: 0 },
        live: { used: 0, spent: 0, held: 0 },
      },
      revision: 1,
      version: 1,
      created_at: expect.any(Number),
      revoked_at: null,
    });
    expect(await getVirtualKey(stack, created.id)).toEqual(created);
    await (await call(await issue(created.id))).text();
    expect(upstream.seen.at(-1)?.headers.authorization).toBe(`Bearer ${key}`);
    expect(JSON.parse(String(upstream.seen.at(-1)?.body))).toMatchObject({ max_completion_tokens: 7 });
    const told = [JSON.stringify(created), ...stack.logs].join('');
    for (let i = 0; i + 4 <= key.length; i++) {
      if (i >= 4) expect(told).not.toContain(key.slice(i, i + 4));
    }
  });

  test('without budget and config has no config and no limits, and shows the use and spending of its URLs', async () => {
    const created = await createVirtualKey(stack, { config: null, budget: null });
    expect(created).toMatchObject({
      config: null,
      budget: { cost_limit: null, live: { used: 0, spent: 0 } },
    });
    const urls = [await issue(created.id), await issue(created.id)];
    for (const url of urls) await (await call(url)).text();
    const figures = { used: 2, spent: 100 };
    expect(await getVirtualKey(stack, created.id)).toMatchObject({
      budget: { live: { ...figures, held: 0 } },
    });
    await callsSettled(stack);
    expect(await getVirtualKey(stack, created.id)).toMatchObject({ budget: { settled: figures } });
  });

  test.each([
    ['provider', 'unknown_provider', { provider: 'no-such' }],
    ['provider', 'unknown_provider', { provider: 'azure' }],
    ['provider', 'invalid_request', { provider: 7 }],
    ['name', 'invalid_request', { name: '' }],
    ['key', 'invalid_request', { key: undefined }],
    ['key', 'invalid_request', { key: 'sk with space' }],
    ['key', 'invalid_request', { key: 'x'.repeat(4_097) }],
    ['config', 'invalid_request', { config: [] }],
    ['config', 'invalid_request', { config: { a: 'x'.repeat(16_384) } }],
    ['budget', 'invalid_request', { budget: {} }],
    ['budget', 'invalid_request', { budget: 7 }],
    ['budget.max_uses', 'invalid_request', { budget: { max_uses: 0 } }],
    ['budget.cost_limit', 'invalid_request', { budget: { cost_limit: -1 } }],
    ['budget.cost_limt', 'invalid_request', { budget: { cost_limt: 1 } }],
    ['client_api_key', 'invalid_request', { client_api_key: 'sk' }],
  ] as const)('is refused if its %s is wrong, as %s (case %#)', async (param, code, fields) => {
    refused(await askVirtualKeys(stack, 'POST', '', virtualKey(fields)), code, param);
  });

  test('is listed newest first over pages, only with keys of its own account', async () => {
    const { id: accountId } = await addAccount(stack);
    const admin = await addApiKey(stack, accountId, { scopes: ['admin'] });
    const made: string[] = [];
    for (const budget of [undefined, { max_uses: 1 }, undefined]) {
      const sent = await askVirtualKeys(stack, 'POST', '', virtualKey({ budget }), admin);
      made.unshift((JSON.parse(sent.text) as VirtualKeyAnswer).id);
    }
    const page = async (query: string) => {
      const sent = await askVirtualKeys(stack, 'GET', query, undefined, admin);
      return JSON.parse(sent.text) as { data: VirtualKeyAnswer[]; next_cursor: string | null };
    };
    const first = await page('?limit=2');
    const second = await page(`?limit=2&cursor=${first.next_cursor}`);
    expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(made);
    expect([...first.data, ...second.data].map(({ budget }) => budget?.max_uses === 1)).toEqual([
      false,
      true,
      false,
    ]);
    expect(second.next_cursor).toBeNull();
  });

  test('returns 404 to another account, and so does a malformed id', async () => {
    const { id } = await createVirtualKey(stack);
    const { id: accountId } = await addAccount(stack);
    const admin = await addApiKey(stack, accountId, { scopes: ['admin'] });
    const requests = [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/rotate', { key: 'sk-stolen' }],
    ] as const;
    for (const path of [`/${id}`, `/vk_${randomUUID()}`, '/%00', '/%20']) {
      for (const [method, suffix, body] of requests) {
        refused(await askVirtualKeys(stack, method, `${path}${suffix}`, body, admin), 'not_found');
      }
    }
    await (await call(await issue(id))).text();
    expect(upstream.seen.at(-1)?.headers.authorization).toBe('Bearer sk-first');
  });

  test('is readable with the scope read, and created, rotated and deleted only with admin', async () => {
    const { id } = await createVirtualKey(stack);
    const account = await ownAccount(stack);
    const reader = await addApiKey(stack, account, { scopes: ['read'] });
    const presigner = await addApiKey(stack, account, { scopes: ['presign'] });
    const requests = [
      ['GET', '', undefined, 200],
      ['GET', `/${id}`, undefined, 200],
      ['POST', '', virtualKey(), 403],
      ['POST', `/${id}/rotate`, { key: 'sk-next' }, 403],
      ['DELETE', `/${id}`, undefined, 403],
    ] as const;
    for (const [method, path, body, status] of requests) {
      expect((await askVirtualKeys(stack, method, path, body, reader)).status).toBe(status);
      refused(await askVirtualKeys(stack, method, path, body, presigner), 'forbidden');
    }
  });
});

test('a URL issued while its virtual key changes uses the config from before or after, never a mix or no config', async () => {
  const wide = { seed: 1, temperature: 1 };
  const narrow = { seed: 2, top_p: 0.5 };
  const key = await createVirtualKey(stack, { config: wide });
  const configs: string[] = [];
  for (let round = 0; round < 10; round++) {
    const config = round % 2 === 0 ? narrow : wide;
    const issued = Array.from({ length: 5 }, () => issue(key.id));
    const changed = askVirtualKeys(stack, 'PATCH', `/${key.id}`, { config });
    const late = changed.then(() => issue(key.id));
    expect((await changed).status).toBe(200);
    upstream.seen.length = 0;
    for (const url of await Promise.all(issued)) expect((await call(url)).status).toBe(200);
    configs.push(...upstream.seen.map(({ body }) => String(body)));
    expect((await call(await late)).status).toBe(200);
    const last = JSON.parse(String(upstream.seen.at(-1)?.body)) as object;
    // A URL that is issued after the answer has the new config.
    expect(last).toMatchObject(config);
  }
  const keysOf = (body: string) => {
    const { seed, temperature, top_p } = JSON.parse(body) as Record<string, unknown>;
    return JSON.stringify({ seed, temperature, top_p });
  };
  expect(configs).toHaveLength(50);
  for (const each of new Set(configs.map(keysOf)))
    expect([JSON.stringify(wide), JSON.stringify(narrow)]).toContain(each);
});

describe('the budget of a virtual key', () => {
  test('of 7 uses admits exactly 7 of 50 parallel calls, over two URLs and two gateways', async () => {
    const { id } = await createVirtualKey(stack, { budget: { max_uses: 7 } });
    const urls = [await issue(id), await issue(id, { max_uses: 40 })];
    expect(new Set(urls.map((url) => claimsOf(stack, url).prt)).size).toBe(1);
    const calls = Array.from({ length: 50 }, (_, i) => call(over(urls[i % 2] ?? '', (i >> 1) % 2)));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(7);
    expect(statuses.filter((status) => status === 403)).toHaveLength(43);
    await callsSettled(stack);
    const { budget } = await getVirtualKey(stack, id);
    expect(budget).toMatchObject({ max_uses: 7, settled: { used: 7 }, live: { used: 7, held: 0 } });
    expect((await call(await issue(id))).status).toBe(403);
  });

  test('in microdollars is spent over two URLs to the last call that fits, and not beyond', async () => {
    const { id } = await createVirtualKey(stack, { budget: { cost_limit: 330 } });
    const urls = [await issue(id), await issue(id, { cost_limit: 10_000 })];
    const calls = Array.from({ length: 50 }, (_, i) => call(over(urls[i % 2] ?? '', (i >> 1) % 2)));
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    // Six calls of 50 fit at once; what is held by others is no refusal for good.
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(1);
    for (const status of statuses) expect([200, 402, 429]).toContain(status);
    let last = 200;
    for (let i = 0; last === 200 && i < 10; i++) last = (await call(urls[i % 2] ?? '')).status;
    expect(last).toBe(402);
    await callsSettled(stack);
    const { budget } = await getVirtualKey(stack, id);
    expect(budget?.settled).toEqual({ used: 6, spent: 300 });
    expect(budget?.live).toEqual({ used: 6, spent: 300, held: 0 });
  });

  test('that is spent has its own refusal, which hides its figures from the holder', async () => {
    const errorOf = async (url: string) => ((await (await call(url)).json()) as { error: object }).error;
    const uses = await createVirtualKey(stack, { budget: { max_uses: 1 } });
    const url = await issue(uses.id, { max_uses: 5, cost_limit: 1_000 });
    expect((await call(url)).headers.get('x-presign-uses-remaining')).toBe('4');
    const { message, request_id: _, ...exhausted } = (await errorOf(url)) as Record<string, unknown>;
    expect(exhausted).toEqual({
      ...{ code: 'uses_exhausted', type: 'permission_error', param: null, limit_of: 'virtual_key' },
    });
    expect(message).toContain('The budget of the virtual key');
    const money = await createVirtualKey(stack, { budget: { cost_limit: 70 } });
    const answer = await call(await issue(money.id, { cost_limit: 1_000 }));
    expect(answer.headers.get('x-presign-cost-remaining')).toBe('950');
    const {
      message: __,
      request_id: ___,
      ...spent
    } = (await errorOf(await issue(money.id))) as Record<string, unknown>;
    expect(spent).toEqual({
      ...{ code: 'cost_limit_too_low', type: 'insufficient_quota', param: null },
      ...{ limit_of: 'virtual_key', needed: 50 },
    });
    expect(await errorOf(await issue(money.id, { cost_limit: 20 }))).toMatchObject({
      limit_of: 'url',
      limit: 20,
    });
  });

  test('is shown live before the ledger has it, and as null if Redis does not answer', async () => {
    const { id } = await createVirtualKey(stack, { budget: { max_uses: -1, cost_limit: 1_000 } });
    await (await call(await issue(id))).text();
    const { budget } = await getVirtualKey(stack, id);
    expect(budget).toMatchObject({
      max_uses: null,
      cost_limit: 1_000,
      live: { used: 1, spent: 50, held: 0 },
    });
    const redis = connectRedis('redis://127.0.0.1:1', () => {});
    const issuer = await startOwnIssuer(stack, { redis });
    expect((await getVirtualKey(issuer, id)).budget?.live).toBeNull();
    redis.disconnect();
    await issuer.close();
  });
});
