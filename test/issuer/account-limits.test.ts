import { randomUUID } from 'node:crypto';
import type { AccountAnswer, LimitsAnswer, NewAccountAnswer } from '@presign/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addVirtualKey } from './accounts.ts';
import { least, refused, type Sent, send } from './ask.ts';
import { presign } from './command.ts';
import { canReachDatabase, reachableDatabase } from './reachable-database.ts';

let stack: Stack;
let takeAway = async () => {};
beforeAll(async () => {
  if (canReachDatabase) takeAway = await reachableDatabase();
  stack = await startStack({ providers: {} });
});
afterAll(async () => {
  await stack.close();
  await takeAway();
});

const read = <T>(sent: Sent, status = 200): T => {
  expect(sent.status, sent.text).toBe(status);
  return JSON.parse(sent.text) as T;
};
type Customer = { readonly id: string; readonly apiKey: string };

/** An account with these limits, and its first API key, which has the scope admin. */
async function accountWith(limits?: object): Promise<Customer> {
  const body = { name: 'customer', ...(limits && { limits }) };
  const made = read<NewAccountAnswer>(await send(stack, { path: '/v1/accounts', body }), 201);
  return { id: made.id, apiKey: made.api_key.key };
}
const change = (id: string, body: object, headers = {}) =>
  send(stack, { method: 'PATCH', path: `/v1/accounts/${id}`, body, headers });
const issue = ({ apiKey }: Customer, fields: object = {}) =>
  send(stack, { body: { ...least, ...fields }, apiKey });
const SERVER = { name: 'docs', url: 'https://mcp.example.com/mcp', transport: 'http' };
const issueMcp = ({ apiKey }: Customer, fields: object = {}) =>
  send(stack, { path: '/v2/mcp-presign', body: { servers: [SERVER], ...fields }, apiKey });
const makeKey = ({ apiKey }: Customer) =>
  send(stack, { path: '/v1/api-keys', body: { name: 'more', scopes: ['presign'] }, apiKey });
const countOf = (all: readonly Sent[], status: number) => all.filter((sent) => sent.status === status).length;
const several = (count: number, ask: () => Promise<Sent>) => Promise.all(Array.from({ length: count }, ask));

describe('an account', () => {
  test('has no limits until an operator sets them, one by one, with an ETag', async () => {
    const { id } = await accountWith();
    const none = { api_keys: null, sessions: null, urls_per_minute: null, cost_limit: null };
    const shown = await send(stack, { method: 'GET', path: `/v1/accounts/${id}` });
    expect([shown.headers.get('etag'), read<AccountAnswer>(shown).limits]).toEqual(['"1"', none]);
    const first = await change(id, { limits: { api_keys: 5 } }, { 'if-match': '"1"' });
    expect(read(first)).toMatchObject({ limits: { ...none, api_keys: 5 }, revision: 2 });
    refused(await change(id, { name: 'other' }, { 'if-match': '"1"' }), 'revision_mismatch', 'If-Match');
    const second = await change(id, { name: 'other', limits: { cost_limit: 7 } });
    expect(read(second)).toMatchObject({ name: 'other', limits: { ...none, api_keys: 5, cost_limit: 7 } });
    expect(read(await change(id, { limits: { api_keys: null } }))).toMatchObject({
      limits: { ...none, cost_limit: 7 },
    });
    refused(await change(id, {}), 'invalid_request');
    refused(await change(id, { limits: { api_keys: -1 } }), 'invalid_request', 'limits.api_keys');
    refused(await change(randomUUID(), { name: 'a' }), 'not_found');
  });

  test('cannot set its own limits', async () => {
    const { id, apiKey } = await accountWith({ api_keys: 1 });
    const own = { method: 'PATCH', path: `/v1/accounts/${id}`, body: { limits: { api_keys: null } }, apiKey };
    refused(await send(stack, own), 'forbidden');
  });

  test('has exactly as many live API keys as its limit, however many requests arrive at once', async () => {
    const customer = await accountWith({ api_keys: 3 });
    const made = await several(8, () => makeKey(customer));
    expect([countOf(made, 201), countOf(made, 403)]).toEqual([2, 6]);
    refused(await makeKey(customer), 'account_limit');
    const { id } = read<{ id: string }>(
      made.find(({ status }) => status === 201) ?? expect.fail('no key'),
      201,
    );
    await send(stack, { method: 'DELETE', path: `/v1/api-keys/${id}`, apiKey: customer.apiKey });
    expect((await makeKey(customer)).status).toBe(201);
  });

  test('has exactly as many live sessions as its limit, and URLs may join them', async () => {
    const customer = await accountWith({ sessions: 3 });
    const made = await several(8, () => issue(customer));
    expect([countOf(made, 200), countOf(made, 403)]).toEqual([3, 5]);
    refused(await issueMcp(customer), 'account_limit', 'session_id');
    const sent = made.find(({ status }) => status === 200) ?? expect.fail('no URL');
    const { session_id } = read<{ session_id: string }>(sent);
    expect((await issue(customer, { session_id })).status).toBe(200);
    refused(await issue(customer, { session_id: randomUUID() }), 'account_limit', 'session_id');
    const { apiKey } = customer;
    expect((await send(stack, { method: 'DELETE', path: `/v1/sessions/${session_id}`, apiKey })).status).toBe(
      204,
    );
    expect((await issueMcp(customer)).status).toBe(200);
  });

  test('does not count sessions whose URLs ended with their virtual key', async () => {
    const customer = await accountWith({ sessions: 1 });
    const virtualKey = await addVirtualKey(stack, customer.id);
    expect((await issue(customer, { client_api_key: undefined, virtual_key: virtualKey })).status).toBe(200);
    refused(await issue(customer), 'account_limit', 'session_id');
    const { apiKey } = customer;
    await send(stack, { method: 'DELETE', path: `/v1/virtual-keys/${virtualKey}`, apiKey });
    expect((await issue(customer)).status).toBe(200);
  });

  test('issues no more URLs in a minute than its limit, over all its API keys', async () => {
    const customer = await accountWith({ urls_per_minute: 4 });
    const other = { ...customer, apiKey: read<{ key: string }>(await makeKey(customer), 201).key };
    const made = await Promise.all([...Array(4)].flatMap(() => [issue(customer), issueMcp(other)]));
    expect([countOf(made, 200), countOf(made, 429)]).toEqual([4, 4]);
    const late = made.find(({ status }) => status === 429) ?? expect.fail('no refusal');
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
    const message = expect.stringContaining('This account has no calls left (4 a minute)') as string;
    expect(JSON.parse(late.text)).toMatchObject({ error: { code: 'rate_limited', limit: 4, message } });
  });

  test('issues and raises no URL above its highest cost_limit, and shows the limit to its keys', async () => {
    const customer = await accountWith({ cost_limit: 1_000 });
    refused(await issue(customer), 'account_limit', 'cost_limit');
    refused(await issue(customer, { cost_limit: 1_001 }), 'account_limit', 'cost_limit');
    refused(await issueMcp(customer), 'account_limit', 'cost_limit');
    expect((await issueMcp(customer, { cost_limit: 1_000 })).status).toBe(200);
    const { grant_id } = read<{ grant_id: string }>(await issue(customer, { cost_limit: 1_000 }));
    const patch = (body: object) =>
      send(stack, { method: 'PATCH', path: `/v1/grants/${grant_id}`, body, apiKey: customer.apiKey });
    refused(await patch({ cost_limit: 1_001 }), 'account_limit', 'cost_limit');
    refused(await patch({ cost_limit: null }), 'account_limit', 'cost_limit');
    expect((await patch({ cost_limit: 900, max_uses: 5 })).status).toBe(200);
    const asked = await send(stack, { method: 'GET', path: '/v1/limits', apiKey: customer.apiKey });
    const { account, presign: own } = read<LimitsAnswer>(asked);
    expect([account.cost_limit, own?.cost_limit.maximum, own?.cost_limit.required]).toEqual([
      1_000,
      1_000,
      true,
    ]);
  });
});

describe.skipIf(!canReachDatabase)('the command line', () => {
  const run = async (...args: string[]) => {
    const done = await presign(['accounts', ...args], {
      DATABASE_URL: stack.databaseUrl,
      REDIS_URL: stack.redisUrl,
    });
    return done;
  };
  const stateOf = async (id: string) => {
    const line = (await run('list')).out.split('\n').find((each) => each.startsWith(id));
    return line?.split(/ {2,}/)[2];
  };

  test('creates an account with limits, changes them, and shows it', async () => {
    const { out } = await run('create', '--name', 'acme', '--api-keys', '2', '--cost-limit', '500');
    const id = out.trim();
    expect(JSON.parse((await run('show', id)).out)).toMatchObject({
      name: 'acme',
      limits: { api_keys: 2, cost_limit: 500 },
    });
    const changed = await run('change', id, '--name', 'acme 2', '--cost-limit', 'none', '--sessions', '9');
    expect(JSON.parse(changed.out)).toMatchObject({
      name: 'acme 2',
      limits: { api_keys: 2, sessions: 9, cost_limit: null },
      revision: 2,
    });
    expect((await run('change', id, '--sessions', 'many')).code).toBe(2);
    expect((await run('show', randomUUID())).code).toBe(1);
  });

  test('suspends, resumes and deletes an account', async () => {
    const customer = await accountWith();
    expect((await run('suspend', customer.id)).code).toBe(0);
    expect([(await issue(customer)).status, await stateOf(customer.id)]).toEqual([403, 'suspended']);
    expect((await run('resume', customer.id)).code).toBe(0);
    expect([(await issue(customer)).status, await stateOf(customer.id)]).toEqual([200, 'active']);
    expect((await run('delete', customer.id)).code).toBe(0);
    expect([(await issue(customer)).status, await stateOf(customer.id)]).toEqual([401, 'deleted']);
    expect((await run('resume', customer.id)).code).toBe(1);
  });
});
