import { randomUUID } from 'node:crypto';
import {
  type ErrorBody,
  type ErrorCode,
  LIMIT_NAMES,
  MCP_LIMIT_NAMES,
  type NewApiKeyAnswer,
} from '@presign/schema';
import { apiKeys, grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addVirtualKey, ownAccount } from './accounts.ts';
import { least, refused, type Sent, send } from './ask.ts';

let stack: Stack;
let account: string;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
  account = await ownAccount(stack);
});
afterAll(() => stack.close());

const askKey = (fields: object) =>
  send(stack, { path: '/v1/api-keys', body: { name: 'limited', scopes: ['presign'], ...fields } });

/** A key with a policy. */
async function keyWith(policy: object): Promise<NewApiKeyAnswer> {
  const sent = await askKey({ policy });
  expect(sent.status, sent.text).toBe(201);
  return JSON.parse(sent.text) as NewApiKeyAnswer;
}

const presign = (apiKey: string, fields: object, headers = {}) =>
  send(stack, { apiKey, body: { ...least, ...fields }, headers });

const SOCKET = { path: '/v1/responses', sockets: true };
const [APP, OTHER] = ['https://app.example.com', 'https://other.example.com'];
const IP = 'bind.ip_ranges[0]';

const SERVER = { name: 'docs', url: 'https://mcp.example.com/mcp', transport: 'http' };
const mcpPresign = (apiKey: string, fields: object) =>
  send(stack, { apiKey, path: '/v2/mcp-presign', body: { servers: [SERVER], ...fields } });

/** The field and all sentences of a refusal by a policy. */
function forbidden(sent: Sent): readonly [string | null, readonly string[]] {
  const { error } = JSON.parse(sent.text) as ErrorBody & { error: { violations: string[] } };
  expect([sent.status, error.code], sent.text).toEqual([403, 'policy_forbids' satisfies ErrorCode]);
  expect(error.message).toBe(error.violations.join(' '));
  return [error.param, error.violations];
}

const grantOf = async (sent: Sent) => {
  expect(sent.status, sent.text).toBe(200);
  const { session_id: id } = JSON.parse(sent.text) as { session_id: string };
  const [row] = await stack.db.select().from(grants).where(eq(grants.sessionId, id));
  if (!row) throw new Error('no grant');
  return row;
};

describe('a key with a policy', () => {
  test('shows its policy wherever it is read, and a key without one shows null', async () => {
    const policy = { providers: ['openai'], highest: { cost_limit: 5 }, config: { max_tokens: 7 } };
    const { id, policy: shown } = await keyWith(policy);
    expect(shown).toEqual(policy);
    const read = await send(stack, { method: 'GET', path: `/v1/api-keys/${id}` });
    expect(JSON.parse(read.text)).toMatchObject({ policy });
    const without = await askKey({});
    expect(JSON.parse(without.text)).toMatchObject({ policy: null });
  });

  test.each([
    [
      { providers: ['anthropic'] },
      {},
      'provider',
      'provider: the policy of this API key allows only anthropic.',
    ],
    [{ paths: ['/v1/embeddings'] }, {}, 'path', '/v1/embeddings'],
    [{ paths: ['/v1/*'] }, { path: ['/v1/embeddings', '/v1/chat/completions'] }, 'path[1]', '/v1/*'],
    [{ paths: ['/v1/chat/c*'] }, { path: ['/v1/chat/completions', '/v1/chat/*'] }, 'path[1]', '/v1/chat/c*'],
    [{ virtual_keys: ['MINE'] }, {}, 'virtual_key', 'vk_'],
    [{ models: ['small'] }, { models: ['small', 'large'] }, 'models[1]', 'only small'],
    [{ models: ['small'] }, { config: { model: 'large' } }, 'config.model', 'only small'],
    [{ config: { max_tokens: 5 } }, { config: { max_tokens: 6 } }, 'config.max_tokens', 'only 5'],
    [
      { config: { max_tokens: 5 } },
      { config: { max_completion_tokens: 6 } },
      'config.max_completion_tokens',
      'max_tokens',
    ],
    [{ config: { model: 'a' } }, { config: { models: ['b'] } }, 'config.models', 'model'],
    [{ external_user: 'u-1' }, { external_user: 'u-2' }, 'external_user', 'only "u-1"'],
    [{ highest: { cost_limit: 10 } }, {}, 'cost_limit', 'at most 10'],
    [{ highest: { cost_limit: 10 } }, { cost_limit: 11 }, 'cost_limit', 'at most 10'],
    [{ highest: { max_uses: 3 } }, {}, 'max_uses', 'at most 3'],
    [{ highest: { max_uses: 3 } }, { max_uses: -1 }, 'max_uses', 'at most 3'],
    [{ highest: { max_uses: 3 } }, { max_uses: null }, 'max_uses', 'at most 3'],
    [{ highest: { max_uses: 3 } }, { max_uses: 4 }, 'max_uses', 'at most 3'],
    [{ highest: { calls_per_minute: 3 } }, { calls_per_minute: null }, 'calls_per_minute', 'at most 3'],
    [{ highest: { expires_in: 60 } }, { expires_in: 61 }, 'expires_in', 'at most 60 seconds'],
    [{ highest: { expires_in: 60 } }, { expires_in: -1 }, 'expires_in', 'at most 60 seconds'],
    [{ required: ['cost_limit'] }, { max_uses: 1 }, 'cost_limit', 'no URL without it'],
    [{ sockets: false }, SOCKET, 'sockets', 'only false'],
    [{ sockets: true }, {}, 'sockets', 'only true'],
    [{ sockets: true }, { sockets: false }, 'sockets', 'only true'],
    [{ max_body_bytes: 100 }, { max_body_bytes: 101 }, 'max_body_bytes', 'at most 100 bytes'],
    [{ allowed_fields: ['messages'] }, { allowed_fields: ['messages', 'n'] }, 'allowed_fields[1]', 'only me'],
    [{ allowed_fields: [] }, { allowed_fields: ['messages'] }, 'allowed_fields[0]', 'allows none'],
    [{ allowed_fields: ['messages'] }, { config: { n: 1 } }, 'config.n', 'only messages'],
    [{ bind: { origins: [APP] } }, { bind: { origins: [APP, OTHER] } }, 'bind.origins[1]', `only ${APP}`],
    [
      { bind: { ip_ranges: ['192.0.2.0/24'] } },
      { bind: { ip_ranges: ['0.0.0.0/0'] } },
      IP,
      'only 192.0.2.0/24',
    ],
  ])('%j refuses %j and names %s', async (policy, fields, param, says) => {
    const mine = await addVirtualKey(stack, account);
    const { key } = await keyWith(JSON.parse(JSON.stringify(policy).replace('MINE', mine)) as object);
    const [named, sentences] = forbidden(await presign(key, fields));
    expect([named, sentences.length]).toEqual([param, 1]);
    expect(sentences[0]).toContain(says);
  });

  test('allows the sockets that it names, and always allows bundles', async () => {
    for (const [sockets, fields] of [
      [false, {}],
      [false, { ...SOCKET, sockets: false }],
      [true, SOCKET],
    ] as const) {
      const { key } = await keyWith({ sockets });
      const { conditions } = await grantOf(await presign(key, fields));
      expect(conditions?.sockets).toBe(sockets ? true : undefined);
      expect((await mcpPresign(key, {})).status).toBe(200);
    }
  });

  test('binds each URL and each bundle to its conditions, and a request can narrow them', async () => {
    const bind = { origins: [APP, OTHER], ip_ranges: ['192.0.2.0/24', '2001:db8::/32'] };
    const policy = { max_body_bytes: 1_000, allowed_fields: ['messages', 'stream'], bind };
    const { key } = await keyWith({ ...policy, config: { max_tokens: 5 } });
    expect(await grantOf(await presign(key, {}))).toMatchObject({ conditions: policy });
    expect((await grantOf(await mcpPresign(key, {}))).conditions).toEqual({ bind });
    const narrower = {
      max_body_bytes: 10,
      allowed_fields: ['messages'],
      bind: { origins: [APP], ip_ranges: ['192.0.2.7', '192.0.2.128/25', '2001:db8:1::/48'] },
    };
    const sent = await presign(key, { ...narrower, config: { stream: true, max_tokens: 5 } });
    expect(await grantOf(sent)).toMatchObject({
      conditions: narrower,
      config: { stream: true, max_tokens: 5 },
    });
    const half = await mcpPresign(key, { bind: { origins: [OTHER] } });
    expect((await grantOf(half)).conditions).toEqual({ bind: { ...bind, origins: [OTHER] } });
    expect(forbidden(await mcpPresign(key, { bind: { origins: ['https://c.example'] } }))[0]).toBe(
      'bind.origins[0]',
    );
  });

  test.each([
    ['192.0.2.0/24', '192.0.2.0/23', false],
    ['192.0.2.0/24', '192.0.3.1', false],
    ['192.0.2.7', '192.0.2.7/32', true],
    ['192.0.2.7/24', '192.0.2.200', true],
    ['0.0.0.0/0', '198.51.100.0/24', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::/32', true],
    ['::/0', '192.0.2.7', false],
    ['2001:db8::/32', '2001:db8::/31', false],
    ['2001:db8::/32', '2001:DB8:FFFF::1', true],
    ['2001:db8::/32', '2001:db9::', false],
  ])('that is bound to %s, with a request for %s, issues %s', async (allowed, asked, isIssued) => {
    const { key } = await keyWith({ bind: { ip_ranges: [allowed] } });
    const sent = await presign(key, { bind: { ip_ranges: [asked] } });
    if (isIssued) expect((await grantOf(sent)).conditions).toEqual({ bind: { ip_ranges: [asked] } });
    else expect(forbidden(sent)[0]).toBe(IP);
  });

  test('is judged by a changed policy from the next request on', async () => {
    const { key, id } = await keyWith({ providers: ['openai'] });
    expect((await grantOf(await presign(key, {}))).conditions).toBeNull();
    const path = `/v1/api-keys/${id}`;
    const policy = { max_body_bytes: 50, bind: { origins: [APP] } };
    const changed = await send(stack, { method: 'PATCH', path, body: { policy } });
    expect([changed.status, JSON.parse(changed.text)]).toMatchObject([200, { policy, revision: 2 }]);
    expect((await grantOf(await presign(key, {}))).conditions).toEqual(policy);
    expect(forbidden(await presign(key, { max_body_bytes: 51 }))[0]).toBe('max_body_bytes');
    const wrong = await send(stack, { method: 'PATCH', path, body: { policy: { bind: {} } } });
    refused(wrong, 'invalid_request', 'policy.bind');
  });

  test.each(LIMIT_NAMES)('bounds and requires %s of URLs and bundles', async (name) => {
    const { key } = await keyWith({ highest: { [name]: 5 } });
    const { key: any } = await keyWith({ required: [name] });
    for (const ask of [presign, mcpPresign]) {
      const has = ask === presign || (MCP_LIMIT_NAMES as string[]).includes(name);
      for (const fields of has ? [{}, { [name]: 6 }] : []) {
        const [param, sentences] = forbidden(await ask(key, fields));
        expect([param, sentences.length]).toEqual([name, 1]);
      }
      if (has) expect(forbidden(await ask(any, {}))[0]).toBe(name);
      const fields = has ? { [name]: 5 } : {};
      for (const each of [key, any]) expect((await ask(each, fields)).status).toBe(200);
    }
  });

  test('gets all violations of a request in one error', async () => {
    const { key } = await keyWith({ providers: ['anthropic'], highest: { cost_limit: 1, max_uses: 1 } });
    const [param, sentences] = forbidden(await presign(key, { cost_limit: 2 }));
    expect(param).toBe('provider');
    expect(sentences.map((sentence) => sentence.split(':')[0])).toEqual([
      'provider',
      'cost_limit',
      'max_uses',
    ]);
  });

  test('issues what its policy allows, with the fields that the policy sets', async () => {
    const virtualKey = await addVirtualKey(stack, account, { config: { top_p: 0.5, max_tokens: 999 } });
    const { key, id } = await keyWith({
      providers: ['openai'],
      paths: ['/v1/chat/*'],
      models: ['gpt-4.1-mini', 'gpt-4.1-nano'],
      virtual_keys: [virtualKey],
      highest: { cost_limit: 500, max_uses: 2, expires_in: 90 },
      config: { max_tokens: 5 },
      external_user: 'u-1',
    });
    const fields = { client_api_key: null, virtual_key: virtualKey, cost_limit: 500, max_uses: 2 };
    const row = await grantOf(await presign(key, { ...fields, config: { temperature: 0, max_tokens: 5 } }));
    expect(row).toMatchObject({
      apiKeyId: id,
      externalUser: 'u-1',
      models: ['gpt-4.1-mini', 'gpt-4.1-nano'],
      config: { top_p: 0.5, temperature: 0, max_tokens: 5 },
    });
    expect(row.expiresAt.getTime() - row.issuedAt.getTime()).toBe(90_000);
    const narrower = await grantOf(
      await presign(key, { ...fields, models: ['gpt-4.1-nano'], expires_in: 30 }),
    );
    expect([narrower.models, narrower.expiresAt.getTime() - narrower.issuedAt.getTime()]).toEqual([
      ['gpt-4.1-nano'],
      30_000,
    ]);
  });

  test('refuses a virtual key whose config would change what the policy fixes', async () => {
    const other = await addVirtualKey(stack, account, { config: { max_completion_tokens: 999 } });
    const { key } = await keyWith({ config: { max_tokens: 5 } });
    expect(forbidden(await presign(key, { virtual_key: other }))[0]).toBe('virtual_key');
    const large = await addVirtualKey(stack, account, { config: { model: 'large' } });
    const { key: bound } = await keyWith({ models: ['small'] });
    expect(forbidden(await presign(bound, { virtual_key: large }))[0]).toBe('virtual_key');
    expect((await presign(bound, { virtual_key: large, config: { model: 'small' } })).status).toBe(200);
  });

  test('issues bundles for the hosts and limits that the policy allows', async () => {
    const { key } = await keyWith({
      mcp_hosts: ['mcp.example.com', 'other.example:8443'],
      highest: { max_uses: 3, expires_in: 120 },
      external_user: 'u-1',
    });
    const row = await grantOf(await mcpPresign(key, { max_uses: 3 }));
    expect(row.externalUser).toBe('u-1');
    expect(row.expiresAt.getTime() - row.issuedAt.getTime()).toBe(120_000);
    for (const url of [
      'https://mcp.example.com:8443/mcp',
      'https://other.example/mcp',
      'https://mcp.example.com.evil.example/',
    ])
      expect(forbidden(await mcpPresign(key, { servers: [{ ...SERVER, url }], max_uses: 1 }))[0]).toBe(
        'servers[0].url',
      );
    expect(forbidden(await mcpPresign(key, { max_uses: 4, expires_in: 121 }))[1]).toHaveLength(2);
    const { key: llm } = await keyWith({ providers: ['openai'] });
    expect(forbidden(await mcpPresign(llm, {}))[0]).toBe('servers');
    const { key: mcp } = await keyWith({ providers: ['mcp'] });
    expect((await mcpPresign(mcp, {})).status).toBe(200);
    expect(forbidden(await presign(mcp, {}))[0]).toBe('provider');
  });

  test.each([
    ['policy', {}],
    ['policy', []],
    ['policy.highest', { highest: {} }],
    ['policy.highest.max_uses', { highest: { max_uses: -1 } }],
    ['policy.max_uses', { max_uses: 1 }],
    ['policy.models', { models: [] }],
    ['policy.models[0]', { models: ['a b'] }],
    ['policy.paths[0]', { paths: ['v1'] }],
    ['policy.mcp_hosts[0]', { mcp_hosts: ['https://mcp.example.com'] }],
    ['policy.mcp_hosts[0]', { mcp_hosts: ['mcp.example.com:80'] }],
    ['policy.required[0]', { required: ['expires_in'] }],
    ['policy.external_user', { external_user: '' }],
    ['policy.max_body_bytes', { max_body_bytes: 0 }],
    ['policy.allowed_fields[0]', { allowed_fields: [''] }],
    ['policy.bind.origins[0]', { bind: { origins: ['app.example.com'] } }],
    ['policy.bind.ip_ranges[0]', { bind: { ip_ranges: ['192.0.2.0/33'] } }],
    ['policy.providers[1]', { providers: ['openai', 'opnai'] }],
    ['policy.virtual_keys[0]', { virtual_keys: [`vk_${randomUUID()}`] }],
  ])('is not created if its %s is wrong (case %#)', async (param, policy) => {
    refused(await askKey({ policy }), 'invalid_request', param);
  });
});

describe('a policy cannot be widened', () => {
  test('by a key that has it: the key cannot have the scope admin, and cannot read or change keys', async () => {
    refused(
      await askKey({ scopes: ['presign', 'admin'], policy: { providers: ['openai'] } }),
      'invalid_request',
      'policy',
    );
    const { key, id } = await keyWith({ providers: ['openai'] });
    for (const request of [
      { path: '/v1/api-keys', body: { name: 'wide', scopes: ['presign'] } },
      { method: 'GET', path: `/v1/api-keys/${id}` },
      { path: '/v1/virtual-keys', body: { provider: 'openai', name: 'x', key: 'sk' } },
    ])
      refused(await send(stack, { ...request, apiKey: key }), 'forbidden');
  });

  test('with a virtual key of another account, and a policy cannot name one', async () => {
    const other = await addAccount(stack);
    const theirs = await addVirtualKey(stack, other.id);
    refused(
      await askKey({ policy: { virtual_keys: [theirs] } }),
      'invalid_request',
      'policy.virtual_keys[0]',
    );
    const { key } = await keyWith({ models: ['small'] });
    refused(await presign(key, { virtual_key: theirs }), 'invalid_request', 'virtual_key');
  });

  test('with the Idempotency-Key of a URL that another key issued', async () => {
    const header = { 'idempotency-key': randomUUID() };
    const { key } = await keyWith({ models: ['small'] });
    expect((await presign(stack.apiKey, {}, header)).status).toBe(200);
    refused(await presign(key, {}, header), 'idempotency_conflict', 'Idempotency-Key');
    const own = { 'idempotency-key': randomUUID() };
    const first = await presign(key, {}, own);
    expect((await presign(key, {}, own)).text).toBe(first.text);
    expect((await grantOf(first)).models).toEqual(['small']);
    forbidden(await presign(key, { models: ['large'] }, own));
  });

  test('by the rotation of a virtual key that it names', async () => {
    const virtualKey = await addVirtualKey(stack, account);
    const { key } = await keyWith({ virtual_keys: [virtualKey], highest: { cost_limit: 9 } });
    const rotate = { path: `/v1/virtual-keys/${virtualKey}/rotate`, body: { key: 'sk-next' } };
    expect((await send(stack, rotate)).status).toBe(200);
    const fields = { client_api_key: null, virtual_key: virtualKey };
    expect((await presign(key, { ...fields, cost_limit: 9 })).status).toBe(200);
    expect(forbidden(await presign(key, { ...fields, cost_limit: 10 }))[0]).toBe('cost_limit');
  });

  test('by an older version: a policy with an unknown field allows nothing', async () => {
    const { key, id } = await keyWith({ providers: ['openai'] });
    const later = { providers: ['openai'], regions: ['eu'] } as never;
    await stack.db.update(apiKeys).set({ policy: later }).where(eq(apiKeys.id, id));
    refused(await presign(key, {}), 'policy_forbids');
    refused(await mcpPresign(key, {}), 'policy_forbids');
  });
});

describe('a URL that is bound to models', () => {
  test.each([
    ['models', { models: [] }],
    ['models', { models: 'small' }],
    ['models[0]', { models: [''] }],
    ['path', { path: '/v1/batches', models: ['small'] }],
    ['config.model', { config: { model: 'large' }, models: ['small'] }],
    [
      'config.tools',
      { config: { tools: [{ type: 'image_generation', model: 'large' }] }, models: ['small'] },
    ],
    [
      'path[1]',
      {
        provider: 'google',
        path: ['/v1beta/models/small:generateContent', '/v1beta/models/large:generateContent'],
        models: ['small'],
      },
    ],
  ])('is not issued if its %s is wrong (case %#)', async (param, fields) => {
    refused(await presign(stack.apiKey, fields), 'invalid_request', param);
  });
});
