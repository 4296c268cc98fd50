import { randomUUID } from 'node:crypto';
import { sendRefused } from '@presign/gateway';
import { addRefused, keys, readRefused } from '@presign/limits';
import type { CallSummary, RefusedEntry } from '@presign/schema';
import { refusalDays, refusedCalls } from '@presign/schema/ledger-tables';
import { and, eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { newKeys, type Stack, startStack } from '../harness/stack.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, toolCall, urlOf } from '../mcp/holder.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';
import { addAccount, addApiKey, ownAccount } from './accounts.ts';
import { startOwnIssuer } from './own-issuer.ts';
import { type Sweeps, startSweeps } from './sweeps.ts';

let upstream: Upstream;
let server: McpUpstream;
let stack: Stack;
let account: string;

beforeAll(async () => {
  [upstream, server] = await Promise.all([startUpstream(answerChat), startMcpUpstream()]);
  const pricing = { 'gpt-4o-mini': { input: 150_000, output: 600_000 } };
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url, pricing } } });
  account = await ownAccount(stack);
});
afterAll(async () => {
  await stack.close();
  await Promise.all([upstream.close(), server.close()]);
});

type Page = { data: CallSummary[]; next_cursor: string | null };
type Sums = {
  data: { day: string; code: string; calls: number; names: { name: string; calls: number }[] }[];
};

const get = (path: string, apiKey = stack.apiKey) =>
  fetch(`${stack.issuerUrl}${path}`, { headers: { authorization: `Bearer ${apiKey}` } });
async function list(query: Record<string, string>, apiKey?: string): Promise<Page> {
  const answer = await get(`/v1/calls?${new URLSearchParams(query)}`, apiKey);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Page;
}
const sums = async (apiKey?: string): Promise<Sums['data']> =>
  ((await (await get('/v1/refusals', apiKey)).json()) as Sums).data;
/** How many calls were refused with a code on all days. */
const count = async (code: string, apiKey?: string) =>
  (await sums(apiKey)).filter((each) => each.code === code).reduce((sum, { calls }) => sum + calls, 0);

const issue = (fields: object) =>
  stack.issue({ provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real', ...fields });
const chat = { model: 'gpt-4o-mini', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };
async function call(url: string, body: object = chat): Promise<{ status: number; id: string }> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  await answer.text();
  return { status: answer.status, id: answer.headers.get('x-presign-request-id') ?? '' };
}
/** The same URL at the other gateway. */
const elsewhere = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[1] ?? '');
const listed = (external_user: string, calls: number) =>
  eventually(async () => (await list({ outcome: 'refused', external_user })).data.length === calls);

describe('a refused call is stored with its code, limit, URL, key, user, model or tool and size', () => {
  const post1 = async (fields: object, body?: object) => {
    const { url } = await issue(fields);
    return { url, send: () => call(url, body) };
  };
  const llm = { provider: 'openai', server: null, tool: null };

  test.each([
    [
      'the uses of its URL',
      async (user: object) => {
        const { url, send } = await post1({ max_uses: 1, ...user });
        expect((await call(url)).status).toBe(200);
        return send();
      },
      { ...llm, status: 403, failure: 'uses_exhausted', model: 'gpt-4o-mini' },
      { limit_of: 'url', limit: 1, used: 1 },
    ],
    [
      'the money of its URL',
      async (user: object) => (await post1({ cost_limit: 1, ...user })).send(),
      { ...llm, status: 402, failure: 'cost_limit_too_low', model: 'gpt-4o-mini' },
      { limit_of: 'url', limit: 1, remaining: 1, needed: expect.any(Number) },
    ],
    [
      'a shared budget',
      async (user: { external_user: string }) => {
        const made = await fetch(`${stack.issuerUrl}/v1/budgets`, {
          method: 'POST',
          headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
          body: JSON.stringify({
            name: user.external_user,
            window: 'month',
            cost_limit: 1,
            scope: { external_user: user.external_user },
          }),
        });
        expect(made.status, await made.clone().text()).toBeLessThan(300);
        return (await post1(user)).send();
      },
      { ...llm, status: 402, failure: 'cost_limit_too_low', model: 'gpt-4o-mini' },
      { limit_of: 'budget', budget: expect.stringMatching(/./), needed: expect.any(Number) },
    ],
    [
      'a model that its URL does not allow',
      async (user: object) => (await post1({ models: ['gpt-4o'], ...user })).send(),
      { ...llm, status: 403, failure: 'model_not_allowed', model: 'gpt-4o-mini' },
      { limit_of: null },
    ],
    [
      'a model without a price, whose name may be any text',
      async (user: object) =>
        (await post1({ models: ['gpt-4o'], ...user }, { ...chat, model: 'a text of the caller' })).send(),
      { ...llm, status: 403, failure: 'model_not_allowed', model: null },
      { limit_of: null },
    ],
    [
      'a further model of its body, next to one that its URL allows',
      async (user: object) =>
        (await post1({ models: ['gpt-4o-mini'], ...user }, { ...chat, fallbacks: ['gpt-4o'] })).send(),
      { ...llm, status: 403, failure: 'model_not_allowed', model: null },
      { limit_of: null },
    ],
    [
      'a field without a bound',
      async (user: object) =>
        (await post1({ cost_limit: 1_000_000, ...user }, { ...chat, brand_new: 1 })).send(),
      { ...llm, status: 422, failure: 'cost_unbounded' },
      { name: 'brand_new', limit_of: null },
    ],
    [
      'a URL whose end has come, which no gateway has in memory',
      async (user: object) => {
        const { url } = await issue({ expires_in: 1, ...user });
        await new Promise((resolve) => setTimeout(resolve, 1_100));
        return call(url);
      },
      { ...llm, status: 401, failure: 'token_expired', model: null },
      { limit_of: null },
    ],
    [
      'a path',
      async (user: object) => {
        const { url } = await issue(user);
        return call(url.replace('/v1/chat/completions', '/v1/SECRET-path?q=SECRET'));
      },
      { ...llm, status: 403, failure: 'path_not_allowed' },
      { limit_of: null },
    ],
    [
      'a tool',
      async (user: object) => {
        const { url } = {
          url: urlOf(
            await stack.issueMcp({
              servers: [{ name: 'docs', url: server.url, transport: 'http', tools: ['look'] }],
              ...user,
            }),
            'docs',
          ),
        };
        const { status, headers } = await post(url, toolCall('run', 1));
        return { status, id: String(headers['x-presign-request-id']) };
      },
      { provider: 'mcp', server: 'docs', tool: 'run', status: 200, failure: 'tool_not_allowed' },
      { limit_of: null },
    ],
  ])('refused for %s', async (_why, refuse, fields, refusal) => {
    const external_user = randomUUID();
    const { id, status } = await refuse({ external_user });
    expect(status).toBe(fields.status);
    await listed(external_user, 1);
    const [row] = (await list({ outcome: 'refused', external_user })).data;
    expect(row).toMatchObject({
      ...{ request_id: id, external_user, outcome: 'refused', uses: 0, cost: 0, hold: null, ...fields },
      refusal: { code: fields.failure, body_bytes: expect.any(Number), ...refusal },
    });
    expect(row?.api_key).toMatch(/-/);
    expect(Math.abs((row?.started_at ?? 0) - Date.now() / 1_000)).toBeLessThan(60);
    expect(JSON.stringify(row)).not.toMatch(/SECRET|sk-real/);
    expect(await (await get(`/v1/calls/${id}`)).json()).toEqual({ ...row, price_lines: null, refunds: [] });
  });
});

test('no send has failed so far', () => {
  expect(stack.logs.filter((line) => /refused calls|have no partition/.test(line))).toEqual([]);
});

test('one list has admitted and refused calls, page by page, and filters apply to both', async () => {
  const external_user = randomUUID();
  const { url, session_id } = await issue({ max_uses: 2, external_user });
  const made = [await call(url), await call(url), await call(url), await call(elsewhere(url))];
  expect(made.map(({ status }) => status)).toEqual([200, 200, 403, 403]);
  await listed(external_user, 2);
  await eventually(async () => (await list({ external_user })).data.length === 2);
  const pages: CallSummary[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page: Page = await list({ session_id, outcome: 'all', limit: '1', ...(cursor ? { cursor } : {}) });
    expect(page.data.length).toBeLessThanOrEqual(1);
    pages.push(...page.data);
    cursor = page.next_cursor;
  }
  expect(new Set(pages.map(({ request_id }) => request_id))).toEqual(new Set(made.map(({ id }) => id)));
  expect(pages).toHaveLength(4);
  expect(pages.map(({ settled_at }) => settled_at)).toEqual(
    pages.map(({ settled_at }) => settled_at).sort((a, b) => b - a),
  );
  expect(pages).toEqual((await list({ session_id, outcome: 'all' })).data);
  const of = async (query: Record<string, string>) => (await list({ session_id, ...query })).data.length;
  expect(await of({ outcome: 'all', failure: 'uses_exhausted' })).toBe(2);
  expect(await of({ outcome: 'passed' })).toBe(2);
  expect(await of({ outcome: 'all', model: 'gpt-4o-mini' })).toBe(4);
  expect(await of({ outcome: 'all', model: 'gpt-4o' })).toBe(0);
  expect(await of({ outcome: 'refused', external_user: randomUUID() })).toBe(0);
  expect(await of({ outcome: 'all', to: '1000000000' })).toBe(0);
});

test('another account sees no refused call, and a key needs the scope read', async () => {
  const { url, grant_id } = await issue({ max_uses: 1 });
  await call(url);
  const { id } = await call(url);
  await eventually(async () => (await get(`/v1/calls/${id}`)).status === 200);
  const other = await addAccount(stack);
  const reader = await addApiKey(stack, other.id, { scopes: ['read'] });
  expect((await list({ outcome: 'all', grant_id }, reader)).data).toEqual([]);
  expect((await get(`/v1/calls/${id}`, reader)).status).toBe(404);
  expect(await sums(reader)).toEqual([]);
  const issuing = await addApiKey(stack, account, { scopes: ['presign'] });
  expect((await get('/v1/calls?outcome=refused', issuing)).status).toBe(403);
});

test('a token that no key of the gateway has signed writes nothing', async () => {
  const before = [await stack.db.$count(refusedCalls), await sums()];
  const { url } = await issue({});
  const foreign = await startStack({ providers: { openai: { base_url: upstream.url } }, keys: newKeys() });
  const { url: stranger } = await foreign.issue({
    provider: 'openai',
    path: '/v1/chat/completions',
    client_api_key: 'x',
  });
  await foreign.close();
  const token = /\/t\/([^/]+)/.exec(stranger)?.[1] ?? '';
  expect((await call(url.replace(/\/t\/[^/]+/, `/t/${token}`))).status).toBe(401);
  expect((await call(url.replace(/.{8}(?=\/v1)/, 'AAAAAAAA'))).status).toBe(401);
  // Sent behind these.
  const user = randomUUID();
  const { url: own } = await issue({ external_user: user, max_uses: 1 });
  await call(own);
  await call(own);
  await listed(user, 1);
  expect(await stack.db.$count(refusedCalls)).toBe((before[0] as number) + 1);
  expect((await sums()).filter(({ code }) => code === 'token_invalid')).toEqual([]);
});

test('under a flood each gateway keeps the first ten calls of each code, and counts all', async () => {
  const external_user = randomUUID();
  const { url } = await issue({ max_uses: 1, external_user });
  await call(url);
  const before = await count('uses_exhausted');
  for (let i = 0; i < 10; i++)
    await Promise.all(Array.from({ length: 30 }, () => call(i % 2 ? url : elsewhere(url))));
  await eventually(async () => (await count('uses_exhausted')) === before + 300);
  expect((await list({ outcome: 'refused', external_user, limit: '100' })).data).toHaveLength(20);
});

describe('refused calls at a gateway', () => {
  /** A stream of its own: nothing reads the refusals of a grant that does not exist. */
  const grant = { id: randomUUID() as string, partition: 7 };
  const refused = (name?: string, of = grant) => ({
    ...{ grant: of, accountId: account, code: 'cost_unbounded' as const, name },
    describe: () => ({ rid: randomUUID(), sta: 422 }),
  });

  test('wait while the stream of their partition is full, and the first ones are kept', async () => {
    const stopped = await withoutIssuer();
    const { redis } = stopped;
    const filler = JSON.stringify({ grt: randomUUID(), cod: 'x', n: 1, kept: [] });
    const fill = Array.from({ length: 100 }, () => filler);
    for (let i = 0; i < 10; i++) expect(await addRefused(redis, 7, fill)).toBe(true);
    expect(await addRefused(redis, 7, [filler])).toBe(false);
    const calls = sendRefused(redis, Date.now);
    for (let i = 0; i < 25; i++) calls.add(refused());
    await calls.close();
    expect(await redis.xlen(keys.refused(7))).toBe(1_000);
    await redis.del(keys.refused(7));
    calls.add(refused());
    await calls.close();
    const [sent] = await readRefused(redis, 7, '0-0', 10);
    const entry = JSON.parse(sent?.entry ?? '{}') as RefusedEntry;
    expect([entry.n, entry.kept.length]).toEqual([26, 10]);
    await stopped.close();
  });

  test('wait while Redis does not answer', async () => {
    const stopped = await withoutIssuer();
    const calls = sendRefused(stopped.redis, Date.now);
    calls.add(refused());
    stopped.redis.disconnect(true);
    await calls.close();
    await eventually(async () => (await stopped.redis.ping().catch(() => '')) === 'PONG');
    await calls.close();
    expect(await readRefused(stopped.redis, 7, '0-0', 10)).toHaveLength(1);
    await stopped.close();
  });

  test('of one grant have at most 50 names, and of one account at most 100 kept calls, between two sends', async () => {
    const stopped = await withoutIssuer();
    const calls = sendRefused(stopped.redis, Date.now);
    for (let i = 0; i < 1_000; i++) calls.add(refused(`field_${i}`));
    const many = Array.from({ length: 200 }, () => ({ id: randomUUID(), partition: 7 }));
    for (const each of many) calls.add(refused(undefined, each));
    await calls.close();
    const sent = (await readRefused(stopped.redis, 7, '0-0', 1_000)).map(
      ({ entry }) => JSON.parse(entry) as RefusedEntry,
    );
    expect(sent).toHaveLength(51 + 200);
    expect(sent.reduce((sum, { n }) => sum + n, 0)).toBe(1_200);
    expect(sent.find(({ nam }) => nam === 'other')?.n).toBe(950);
    expect(sent.flatMap(({ kept }) => kept)).toHaveLength(100);
    await stopped.close();
  });

  /** A Redis that no issuer drains. */
  async function withoutIssuer() {
    const own = await startStack({ providers: {}, gateways: 0 });
    await own.issuer.close();
    return own;
  }
});

describe('an issuer', () => {
  const entry = (grt: string, kept = 1): string =>
    JSON.stringify({
      ...{ grt, cod: 'cost_unbounded', nam: 'new_field', n: 5 },
      kept: Array.from({ length: kept }, () => ({ rid: randomUUID(), ago: 10, sta: 422 })),
    });

  test('writes each refused call once, however many issuers there are', async () => {
    const issuers = await Promise.all([1, 2, 3].map(() => startOwnIssuer(stack)));
    const { grant_id } = await issue({});
    const before = await count('cost_unbounded');
    for (let i = 0; i < 20; i++)
      await addRefused(
        stack.redis,
        i % 3,
        Array.from({ length: 15 }, () => entry(grant_id)),
      );
    const all = 20 * 15;
    await eventually(
      async () => (await stack.db.$count(refusedCalls, eq(refusedCalls.grantId, grant_id))) === all,
    );
    await eventually(async () => (await count('cost_unbounded')) === before + 5 * all);
    for (const partition of [0, 1, 2])
      await eventually(async () => (await stack.redis.xlen(keys.refused(partition))) === 0);
    await Promise.all(issuers.map((each) => each.close()));
    expect(await count('cost_unbounded')).toBe(before + 5 * all);
  });

  test('writes a call once even if its gateway sent it twice because the answer of Redis was lost', async () => {
    const { grant_id } = await issue({});
    const call = { rid: randomUUID(), sta: 422 };
    const sent = (ago: number) =>
      JSON.stringify({ grt: grant_id, cod: 'cost_unbounded', n: 1, kept: [{ ...call, ago }] });
    const ofGrant = eq(refusedCalls.grantId, grant_id);
    await addRefused(stack.redis, 4, [sent(10), sent(20)]);
    await eventually(async () => (await stack.db.$count(refusedCalls, ofGrant)) > 0);
    await addRefused(stack.redis, 4, [sent(1_500)]);
    await eventually(async () => (await stack.redis.xlen(keys.refused(4))) === 0);
    expect(await stack.db.$count(refusedCalls, ofGrant)).toBe(1);
  });

  test('skips entries that it cannot parse and grants that are gone, and continues', async () => {
    const { grant_id } = await issue({});
    await addRefused(stack.redis, 5, ['no JSON', '{}', entry(randomUUID()), entry(grant_id)]);
    await eventually(
      async () => (await stack.db.$count(refusedCalls, eq(refusedCalls.grantId, grant_id))) === 1,
    );
    await eventually(async () => (await stack.redis.xlen(keys.refused(5))) === 0);
  });

  test('creates the partition of a day if it is missing', async () => {
    const { grant_id } = await issue({});
    const at = new Date(Date.now() - 20 * 3_600_000);
    const name = `refused_calls_${at.toISOString().slice(0, 10).replaceAll('-', '')}`;
    const late = { rid: randomUUID(), ago: 20 * 3_600_000, sta: 422 };
    await stack.db.execute(sql`drop table if exists ${sql.identifier(name)}`);
    await addRefused(stack.redis, 6, [
      JSON.stringify({ grt: grant_id, cod: 'cost_unbounded', n: 1, kept: [late] }),
    ]);
    await eventually(async () => (await get(`/v1/calls/${late.rid}`)).status === 200);
  });

  test('keeps a bounded number of names for each account and day', async () => {
    const { id } = await addAccount(stack);
    const apiKey = await addApiKey(stack, id, { scopes: ['presign', 'read'] });
    const issued = await fetch(`${stack.issuerUrl}/v1/presign`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ provider: 'openai', path: '/v1/x', client_api_key: 'sk' }),
    });
    const { grant_id: grt } = (await issued.json()) as { grant_id: string };
    for (let round = 0; round < 10; round++) {
      const named = Array.from({ length: 100 }, (_, i) =>
        JSON.stringify({ grt, cod: 'cost_unbounded', nam: `note_${round}_${i}`, n: 1, kept: [] }),
      );
      await addRefused(stack.redis, 9, named);
    }
    await eventually(async () => (await count('cost_unbounded', apiKey)) === 1_000);
    const [all] = await sums(apiKey);
    expect(all?.names.length).toBeLessThan(310);
    expect(all?.names.reduce((sum, { calls }) => sum + calls, 0)).toBe(1_000);
    expect(all?.names[0]?.name).toBe('other');
  });
});

describe('old refused calls', () => {
  let sweeps: Sweeps;
  beforeAll(async () => {
    sweeps = await startSweeps(stack);
  });
  afterAll(() => sweeps.close());
  const DAY_MS = 86_400_000;
  const day = (ago: number) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);

  const tableOf = async (ago: number) => {
    const name = `refused_calls_${day(ago).replaceAll('-', '')}`;
    const [found] = await stack.db.execute<{ name: string | null }>(
      sql`select to_regclass(${name})::text as name`,
    );
    return found?.name;
  };
  async function addOld(ago: number, calls: number) {
    const row: Partial<typeof refusedCalls.$inferInsert> = {
      ...{ accountId: account, sessionId: randomUUID(), grantId: randomUUID(), provider: 'openai' },
      ...{ status: 403, code: 'uses_exhausted', tool: 'a "quoted" name' },
    };
    const name = sql.identifier(`refused_calls_${day(ago).replaceAll('-', '')}`);
    await stack.db.execute(
      sql`create table if not exists ${name} partition of ${refusedCalls} for values from (${sql.raw(`'${day(ago)} 00:00+00'`)}) to (${sql.raw(`'${day(ago - 1)} 00:00+00'`)})`,
    );
    const refusedAt = new Date(`${day(ago)}T12:00:00Z`);
    const rows = Array.from({ length: calls }, () => ({
      ...(row as typeof refusedCalls.$inferInsert),
      requestId: randomUUID(),
      refusedAt,
    }));
    for (let i = 0; i < calls; i += 1_000)
      await stack.db.insert(refusedCalls).values(rows.slice(i, i + 1_000));
    await stack.db
      .insert(refusalDays)
      .values({ accountId: account, day: day(ago), code: 'uses_exhausted', name: '', calls: String(calls) });
    return {
      id: rows[0]?.requestId ?? '',
      left: () => stack.db.$count(refusedCalls, and(eq(refusedCalls.refusedAt, refusedAt))),
    };
  }

  test('are archived and dropped with their day, and their sums are deleted', async () => {
    const [gone, stays] = [await addOld(40, 5_100), await addOld(8, 3)];
    const stop = await sweeps.sweep({ refusedDays: 9 });
    await eventually(async () => (await tableOf(40)) === null);
    expect((await get(`/v1/calls/${gone.id}`)).status).toBe(404);
    await eventually(async () => (await stack.db.$count(refusalDays, eq(refusalDays.day, day(40)))) === 0);
    const archived = await sweeps.archived('refused_calls');
    expect(new Set(archived.map((each) => each['request_id'])).size).toBe(5_100);
    expect(archived).toHaveLength(5_100);
    expect(archived[0]).toMatchObject({ account_id: account, code: expect.any(String) });
    expect((await sweeps.archived('refusal_days')).map((each) => [each['day'], each['calls']])).toEqual([
      [day(40), '5100'],
    ]);
    expect(await stays.left()).toBe(3);
    await stop();
  });

  test('are dropped at once without an archive', async () => {
    const gone = await addOld(60, 10);
    const stop = await sweeps.sweep({ refusedDays: 9, archive: undefined });
    await eventually(async () => (await gone.left()) === 0);
    await stop();
  });
});
