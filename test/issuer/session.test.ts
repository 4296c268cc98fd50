import { sessionAnswer } from '@presign/schema';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, addVirtualKey, ownAccount } from './accounts.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  const usage = { prompt_tokens: 100, completion_tokens: 100, total_tokens: 200 };
  const answer = JSON.stringify({ choices: [{ index: 0, message: {}, finish_reason: 'stop' }], usage });
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(answer);
  });
  const pricing = { 'model-1': { input: 150_000, output: 600_000 } };
  stack = await startStack({ providers: { openai: { base_url: upstream.url, pricing } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const get = (id: string, apiKey = stack.apiKey) =>
  fetch(`${stack.issuerUrl}/v1/sessions/${id}`, { headers: { authorization: `Bearer ${apiKey}` } });
const read = async (id: string) => sessionAnswer.parse(await (await get(id)).json());
/** The grant of two uses: both are issued in the same second, so their order is not known. */
const limited = async (id: string) => (await read(id)).grants.find((grant) => grant.max_uses === 2);
const call = (url: string) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"model":"model-1","max_tokens":200,"messages":[]}',
  });

test('a session shows the use and spending of its grants, live at once and settled when the ledger has them', async () => {
  const first = await stack.issue({ ...ask, max_uses: 2, cost_limit: 10_000, external_user: 'u1' });
  const { session_id } = first;
  await stack.issue({ ...ask, session_id });
  expect((await read(session_id)).grants.map((grant) => grant.live)).toEqual([
    { used: 0, spent: 0, held: 0 },
    { used: 0, spent: 0, held: 0 },
  ]);
  // 100 × $0.15 + 100 × $0.60 per million.
  expect((await call(first.url)).headers.get('x-presign-cost')).toBe('75');
  expect((await limited(session_id))?.live).toEqual({ used: 1, spent: 75, held: 0 });
  await callsSettled(stack);
  expect(await limited(session_id)).toMatchObject({
    settled: { used: 1, spent: 75 },
    status: 'active',
    external_user: 'u1',
    max_uses: 2,
  });
  await call(first.url);
  const after = await read(session_id);
  expect(after.grants.map((each) => each.status).sort()).toEqual(['active', 'exhausted']);
  expect(after.status).toBe('active');
});

test('a session shows the virtual key and the metadata of each grant, whatever the metadata contains', async () => {
  const virtual_key = await addVirtualKey(stack, await ownAccount(stack));
  const metadata = { tags: ['a', null, 1.5], text: 'NUL \0 and \ud800', nested: { a: {} } };
  const first = await stack.issue({ ...ask, client_api_key: null, virtual_key, metadata });
  const { session_id } = first;
  expect((await read(session_id)).grants).toMatchObject([{ virtual_key, metadata }]);
  await stack.issue({ ...ask, session_id });
  const found = (await read(session_id)).grants.filter((grant) => grant.virtual_key === null);
  expect(found).toMatchObject([{ metadata: null }]);
});

test('the grants of a session come in pages, and its own figures cover all of them', async () => {
  const { session_id } = await stack.issue({ ...ask, external_user: 'u-0', expires_in: 3_600 });
  for (let i = 1; i < 5; i++) await stack.issue({ ...ask, session_id, external_user: `u-${i}` });
  const page = async (query: string) =>
    sessionAnswer.parse(await (await get(`${session_id}?${query}`)).json());
  const told = [];
  let cursor: string | null = '';
  for (let pages = 0; cursor !== null; pages++) {
    expect(pages).toBeLessThan(3);
    const { grants, next_cursor, ...session } = await page(`limit=2${cursor && `&cursor=${cursor}`}`);
    expect(session).toMatchObject({ id: session_id, grant_count: 5, status: 'active' });
    expect(session.external_users).toHaveLength(5);
    expect(grants.length).toBe(pages < 2 ? 2 : 1);
    told.push(...grants);
    cursor = next_cursor;
  }
  const all = (await read(session_id)).grants;
  expect(told.map((grant) => grant.id)).toEqual(all.map((grant) => grant.id));
  expect(new Set(told.map((grant) => grant.external_user))).toEqual(
    new Set(['u-0', 'u-1', 'u-2', 'u-3', 'u-4']),
  );
  const times = told.map((grant) => grant.issued_at);
  expect(times).toEqual(times.toSorted((a, b) => b - a));
  const odd = await get(`${session_id}?cursor=none`);
  expect([odd.status, await odd.json()]).toMatchObject([400, { error: { param: 'cursor' } }]);
});

test('a session of another account, an unknown id and a malformed id return 404', async () => {
  const { session_id } = await stack.issue(ask);
  const { id } = await addAccount(stack);
  const stranger = await addApiKey(stack, id, { scopes: ['read'] });
  expect((await get(session_id, stranger)).status).toBe(404);
  expect((await get('0d9c8b7a-6f5e-4d3c-8b2a-190807060504')).status).toBe(404);
  expect((await get('not-an-id')).status).toBe(404);
});
