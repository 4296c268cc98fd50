import { randomUUID } from 'node:crypto';
import { countRefusals } from '@presign/gateway';
import { readRefusals } from '@presign/limits';
import { ERRORS, homePartition } from '@presign/schema';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { type Account, addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';

type Refusals = {
  from: string;
  to: string;
  data: { day: string; code: string; calls: number; names: { name: string; calls: number }[] }[] | null;
};

let upstream: Upstream;
let stack: Stack;
let reader: string;
let other: Account;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => void response.writeHead(200).end('{}'));
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } } });
  reader = await addApiKey(stack, await ownAccount(stack), { scopes: ['read'] });
  other = await addAccount(stack);
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ask = (apiKey: string, query = '') =>
  fetch(`${stack.issuerUrl}/v1/refusals${query}`, { headers: { authorization: `Bearer ${apiKey}` } });
const read = async (apiKey = reader): Promise<Refusals> => (await (await ask(apiKey)).json()) as Refusals;
/** How many calls were refused with a code on all days. */
const count = async (code: string, apiKey = reader) =>
  ((await read(apiKey)).data ?? [])
    .filter((each) => each.code === code)
    .reduce((sum, { calls }) => sum + calls, 0);

const issue = async (fields: object = {}) =>
  (await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', ...fields })).url;
const call = async (url: string) => {
  const answer = await request(url, { method: 'POST', body: '{}' });
  await answer.body.dump();
  return answer.statusCode;
};
/** The same URL at the other gateway. */
const elsewhere = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');

test('calls without a bound are counted by the name of their field, kind or model, and a day keeps a bounded number of names', async () => {
  const { id } = await addAccount(stack);
  const apiKey = await addApiKey(stack, id, { scopes: ['read'] });
  const counts = countRefusals(stack.redis, Date.now);
  for (let i = 0; i < 3; i++) counts.count(id, 'cost_unbounded', 'messages[].note');
  counts.count(id, 'price_unknown', 'model=new-1');
  counts.count(id, 'uses_exhausted');
  await counts.close();
  const found = (await read(apiKey)).data?.map(({ day: _, ...each }) => each);
  expect(found).toEqual([
    { code: 'cost_unbounded', calls: 3, names: [{ name: 'messages[].note', calls: 3 }] },
    { code: 'price_unknown', calls: 1, names: [{ name: 'model=new-1', calls: 1 }] },
    { code: 'uses_exhausted', calls: 1, names: [] },
  ]);
  // A holder sends a thousand names.
  for (let round = 0; round < 10; round++) {
    for (let i = 0; i < 100; i++) counts.count(id, 'cost_unbounded', `note_${round}_${i}`);
    await counts.close();
  }
  const all = (await read(apiKey)).data?.find(({ code }) => code === 'cost_unbounded');
  expect(all?.calls).toBe(1_003);
  expect(all?.names.length).toBeLessThan(260);
  expect(all?.names.reduce((sum, { calls }) => sum + calls, 0)).toBe(1_003);
  expect(all?.names[0]?.name).toBe('other');
});

test('a refused call is counted by the name that its log line has', async () => {
  const { id } = await addAccount(stack);
  const keys = [
    await addApiKey(stack, id, { scopes: ['presign'] }),
    await addApiKey(stack, id, { scopes: ['read'] }),
  ];
  const issued = await fetch(`${stack.issuerUrl}/v1/presign`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys[0]}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk', cost_limit: 1_000_000 },
    }),
  });
  const { url } = (await issued.json()) as { url: string };
  const refused = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 5, messages: [], brand_new: 1 }),
  });
  expect(refused.status).toBe(422);
  const names = [{ name: 'brand_new', calls: 1 }];
  await eventually(async () =>
    (await read(keys[1])).data?.some((each) => each.names[0]?.name === 'brand_new'),
  );
  expect((await read(keys[1])).data).toMatchObject([{ code: 'cost_unbounded', calls: 1, names }]);
});

describe('refused calls', () => {
  test('of one account are added up over all gateways by day and code, and no other account sees them', async () => {
    const url = await issue({ max_uses: 1 });
    expect(await call(url)).toBe(200);
    for (const at of [url, url, url, elsewhere(url), elsewhere(url)]) expect(await call(at)).toBe(403);
    expect(await call(url.replace('/v1/x', '/v1/y'))).toBe(403);
    await eventually(async () => (await count('uses_exhausted')) === 5);
    await eventually(async () => (await count('path_not_allowed')) === 1);
    const { from, to, data } = await read();
    const days = (Date.parse(to) - Date.parse(from)) / 86_400_000;
    expect(days).toBe(29);
    for (const { day } of data ?? []) expect([to, dayBefore(to)]).toContain(day);
    const foreign = await addApiKey(stack, other.id, { scopes: ['read'] });
    expect((await read(foreign)).data).toEqual([]);
  });

  test('of a token that is not valid or a URL that the gateway does not know, and calls that pass, are not counted', async () => {
    const url = await issue();
    const before = await read();
    expect(await call(url.replace(/.{8}(?=\/v1)/, 'AAAAAAAA'))).toBe(401);
    expect((await request(url.replace(/\/v1\/x$/, 'x'))).statusCode).toBe(401);
    // No call of this URL has passed yet, so the gateway does not know its account.
    expect(await call(url.replace('/v1/x', '/v1/w'))).toBe(403);
    expect(await call(url)).toBe(200);
    // Counted behind the others, by the same gateway.
    expect(await call(url.replace('/v1/x', '/v1/z'))).toBe(403);
    const paths = before.data?.find(({ code }) => code === 'path_not_allowed')?.calls ?? 0;
    await eventually(async () => (await count('path_not_allowed')) === paths + 1);
    const codes = (await read()).data?.map(({ code }) => code);
    expect(codes).toEqual(['path_not_allowed', 'uses_exhausted']);
  });

  test('are kept and shown as days, codes, names and numbers, without a key and without values of a request', async () => {
    const before = await count('path_not_allowed');
    const url = await issue({ external_user: 'SECRET-user' });
    expect(await call(url)).toBe(200);
    const at = url.replace('/v1/x', '/v1/SECRET-path?q=SECRET-query');
    const headers = { authorization: 'Bearer SECRET-header' };
    const answer = await request(at, { method: 'POST', headers, body: '{"model":"SECRET-model"}' });
    expect(await answer.body.text()).toContain('path_not_allowed');
    await eventually(async () => (await count('path_not_allowed')) === before + 1);
    const { from, to, data } = await read();
    expect(JSON.stringify(data)).not.toMatch(/SECRET|sk-real/);
    for (const each of data ?? []) expect(Object.keys(each)).toEqual(['day', 'code', 'calls', 'names']);
    const id = await ownAccount(stack);
    const kept = await readRefusals(stack.redis, homePartition(id), id, [from, dayBefore(to), to]);
    const codes = kept.flatMap(({ calls }) => [...calls.keys()]);
    expect(codes).toContain('path_not_allowed');
    for (const code of codes) expect(Object.keys(ERRORS)).toContain(code);
  });

  test('are read by keys with the scope read, for 1 to 90 days', async () => {
    expect((await ask(stack.apiKey)).status).toBe(200);
    const issuing = await addApiKey(stack, await ownAccount(stack), { scopes: ['presign'] });
    expect((await ask(issuing)).status).toBe(403);
    expect((await ask(reader, '?days=90')).status).toBe(200);
    for (const days of ['0', '91', 'x', '']) expect((await ask(reader, `?days=${days}`)).status).toBe(400);
  });

  test('of the last second are written when a gateway ends', async () => {
    const url = await issue({ max_uses: 1 });
    await call(url);
    const before = await count('uses_exhausted');
    for (let i = 0; i < 7; i++) expect(await call(elsewhere(url))).toBe(403);
    await stack.gateways[1]?.close();
    expect(await count('uses_exhausted')).toBe(before + 7);
  });

  test('of more than 1,000 accounts at once are counted for 1,000 of them', async () => {
    const counts = countRefusals(stack.redis, () => Date.parse('2030-01-01T00:00:00Z'));
    const ids = Array.from({ length: 1_001 }, () => randomUUID());
    for (const id of [...ids, ...ids]) counts.count(id, 'uses_exhausted');
    await counts.close();
    const counted = await Promise.all(
      ids.map(async (id) => {
        const [day] = await readRefusals(stack.redis, homePartition(id), id, ['2030-01-01']);
        return day?.calls.get('uses_exhausted');
      }),
    );
    expect(counted.slice(0, 1_000)).toEqual(Array.from({ length: 1_000 }, () => 2));
    expect(counted[1_000]).toBeUndefined();
  });

  test('are null while Redis does not answer', async () => {
    stack.redis.disconnect();
    expect((await read()).data).toBeNull();
  });
});

const dayBefore = (day: string) => new Date(Date.parse(day) - 86_400_000).toISOString().slice(0, 10);
