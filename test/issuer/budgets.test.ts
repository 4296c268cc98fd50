import { randomUUID } from 'node:crypto';
import { type BudgetAnswer, budgetAnswer, budgetPage } from '@presign/schema';
import { budgetCalendars, budgetWindows, sharedBudgets } from '@presign/schema/budget-tables';
import { budgets, grants } from '@presign/schema/tables';
import { and, eq, gte } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import { answerChat, startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { claimsOf, issue, refused, type Sent, send } from './ask.ts';
import { EAGER, startOwnIssuer } from './own-issuer.ts';

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream(answerChat);
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** An account of its own with an admin key, so that no test meets the budgets of another. */
async function account() {
  const { id } = await addAccount(stack);
  const apiKey = await addApiKey(stack, id, { scopes: ['admin'] });
  return { id, stack: { ...stack, apiKey } };
}
const ask = (of: Stack, method: string, path = '', body?: object, more: object = {}): Promise<Sent> =>
  send(of, { method, path: `/v1/budgets${path}`, ...(body ? { body } : {}), ...more });
const parsed = (sent: Sent): BudgetAnswer => budgetAnswer.parse(JSON.parse(sent.text));
/** Creates a budget; must succeed. */
async function create(of: Stack, body: object): Promise<BudgetAnswer> {
  const sent = await ask(of, 'POST', '', body);
  expect(sent.status, sent.text).toBe(201);
  return parsed(sent);
}
async function read(of: Stack, id: string): Promise<BudgetAnswer> {
  const sent = await ask(of, 'GET', `/${id}`);
  expect(sent.status, sent.text).toBe(200);
  expect(sent.headers.get('etag')).toBe(`"${parsed(sent).revision}"`);
  return parsed(sent);
}
async function list(of: Stack, query = ''): Promise<readonly BudgetAnswer[]> {
  const sent = await ask(of, 'GET', query);
  expect(sent.status, sent.text).toBe(200);
  return budgetPage.parse(JSON.parse(sent.text)).data;
}

type Answered = {
  readonly is: string;
  readonly limitOf?: string;
  readonly budget?: string;
  readonly error: object;
};
/** Calls a URL through a gateway. */
async function call(url: string, gateway = 0): Promise<Answered> {
  const at = url.replace(stack.gatewayUrls[0] ?? '', stack.gatewayUrls[gateway] ?? '');
  const answer = await fetch(at, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'gpt-4o-mini',
      max_tokens: 100,
      messages: [{ role: 'user', content: 'hi' }],
    }),
  });
  const { error = {} } = (await answer.json()) as {
    error?: { code?: string; limit_of?: string; budget?: string };
  };
  return {
    is: error.code ?? 'ok',
    error,
    ...(error.limit_of && { limitOf: error.limit_of }),
    ...(error.budget && { budget: error.budget }),
  };
}
const is = async (url: string, gateway = 0) => (await call(url, gateway)).is;
const urlOf = async (of: Stack, fields: object = {}) => (await issue(of, fields)).url;

describe('a budget', () => {
  test('for an account covers every URL that is issued after it, and none before', async () => {
    const { stack: of } = await account();
    const before = await urlOf(of);
    const { id } = await create(of, { scope: { account: true }, max_uses: 3 });
    const [a, b] = [await urlOf(of), await urlOf(of, { external_user: 'u' })];
    expect([await is(a), await is(b, 1), await is(a)]).toEqual(['ok', 'ok', 'ok']);
    expect(await call(b)).toMatchObject({ is: 'uses_exhausted', limitOf: 'budget', budget: id });
    expect(await is(a, 1)).toBe('uses_exhausted');
    expect(await is(before)).toBe('ok');
    expect((await read(of, id)).current).toMatchObject({ live: { used: 3 }, ends_at: null });
    await callsSettled(stack);
    expect((await read(of, id)).current).toMatchObject({ settled: { used: 3, spent: expect.any(Number) } });
  });

  test('refuses without revealing its figures and its name', async () => {
    const { stack: of } = await account();
    const { id } = await create(of, { name: 'secret-project', scope: { account: true }, cost_limit: 1 });
    const { error } = await call(await urlOf(of));
    expect(error).toEqual({
      code: 'cost_limit_too_low',
      message: expect.not.stringContaining('secret-project'),
      type: 'insufficient_quota',
      param: null,
      request_id: expect.any(String),
      limit_of: 'budget',
      budget: id,
      needed: expect.any(Number),
    });
  });

  test('for an API key, a virtual key or a user covers only their URLs', async () => {
    const { id: accountId, stack: of } = await account();
    const backend = await addApiKey(stack, accountId);
    const key = (await issueKey(of)) ?? '';
    const [{ apiKeyId }] = (await stack.db
      .select({ apiKeyId: grants.apiKeyId })
      .from(grants)
      .where(eq(grants.id, claimsOf(stack, await urlOf({ ...of, apiKey: backend })).jti))) as [
      { apiKeyId: string },
    ];
    await create(of, { scope: { api_key: apiKeyId.toUpperCase() }, max_uses: 1 });
    await create(of, { scope: { virtual_key: key }, max_uses: 1 });
    await create(of, { scope: { external_user: 'ada' }, max_uses: 1 });
    const covered = [
      await urlOf({ ...of, apiKey: backend }),
      await urlOf(of, { client_api_key: undefined, virtual_key: key }),
      await urlOf(of, { external_user: 'ada' }),
    ];
    for (const url of covered) expect([await is(url), await is(url, 1)]).toEqual(['ok', 'uses_exhausted']);
    for (const url of [await urlOf(of), await urlOf(of, { external_user: 'Ada' })])
      expect([await is(url), await is(url)]).toEqual(['ok', 'ok']);
  });

  const issueKey = async (of: Stack) => {
    const body = { provider: 'openai', name: 'production', key: 'sk-real', budget: { max_uses: 50 } };
    const sent = await send(of, { path: '/v1/virtual-keys', body });
    return (JSON.parse(sent.text) as { id?: string }).id;
  };

  test('adds to other budgets: a call passes only if each has room, and counts in each', async () => {
    const { stack: of } = await account();
    const all = await create(of, { scope: { account: true }, max_uses: 5 });
    const day = await create(of, { scope: { account: true }, max_uses: 3, window: 'day' });
    const own = await create(of, { scope: { external_user: 'ada' }, max_uses: 2, window: 'hour' });
    const ada = await urlOf(of, { external_user: 'ada', max_uses: 9 });
    const other = await urlOf(of, { external_user: 'bob', max_uses: 9 });
    expect([await is(ada), await is(ada, 1)]).toEqual(['ok', 'ok']);
    expect(await call(ada)).toMatchObject({ is: 'uses_exhausted', budget: own.id });
    expect(await is(other)).toBe('ok');
    expect(await call(other, 1)).toMatchObject({ is: 'uses_exhausted', budget: day.id });
    const used = async (id: string) => (await read(of, id)).current?.live?.used;
    expect([await used(all.id), await used(day.id), await used(own.id)]).toEqual([3, 3, 2]);
  });

  test('that is raised admits the next call of every URL, and a lower limit or a deletion applies at once', async () => {
    const { stack: of } = await account();
    const { id } = await create(of, { scope: { account: true }, max_uses: 1, window: 'day' });
    const url = await urlOf(of);
    expect([await is(url), await is(url, 1)]).toEqual(['ok', 'uses_exhausted']);
    const raised = await ask(
      of,
      'PATCH',
      `/${id}`,
      { max_uses: 3, name: 'day' },
      { headers: { 'if-match': '"1"' } },
    );
    expect(parsed(raised)).toMatchObject({ max_uses: 3, revision: 2, name: 'day' });
    refused(
      await ask(of, 'PATCH', `/${id}`, { max_uses: 9 }, { headers: { 'if-match': '"1"' } }),
      'revision_mismatch',
      'If-Match',
    );
    expect([await is(url), await is(url, 1), await is(url)]).toEqual(['ok', 'ok', 'uses_exhausted']);
    await ask(of, 'PATCH', `/${id}`, { cost_limit: 0, max_uses: -1 });
    // Both gateways remember the URL without a spend limit: one call on each is to be repeated.
    for (const gateway of [0, 1])
      expect(await eventually(async () => (await is(url, gateway)) === 'cost_limit_reached')).toBe(true);
    expect((await ask(of, 'DELETE', `/${id}`)).status).toBe(204);
    expect([await is(url), await is(url, 1), await is(await urlOf(of))]).toEqual(['ok', 'ok', 'ok']);
    expect(await read(of, id)).toMatchObject({ revision: 4, deleted_at: expect.any(Number) });
    refused(await ask(of, 'PATCH', `/${id}`, { max_uses: 1 }), 'budget_deleted');
    expect((await ask(of, 'DELETE', `/${id}`)).status).toBe(204);
  });

  test('starts its next window without losing a call or counting one twice, while Redis keeps the last window', async () => {
    const { stack: of } = await account();
    const anchor = Math.floor(Date.now() / 1000) + 5;
    const { id } = await create(of, { scope: { account: true }, max_uses: 2, window: 'hour', anchor });
    const url = await urlOf(of);
    expect([await is(url), await is(url, 1), await is(url)]).toEqual(['ok', 'ok', 'uses_exhausted']);
    expect((await read(of, id)).current).toMatchObject({ ends_at: anchor, live: { used: 2 } });
    // Either gateway remembers the window that is over.
    for (const gateway of [0, 1])
      expect(await eventually(async () => (await is(url, gateway)) === 'ok' || undefined)).toBe(true);
    expect(Date.now()).toBeGreaterThanOrEqual(anchor * 1000);
    expect([await is(url, 1), await is(url)]).toEqual(['uses_exhausted', 'uses_exhausted']);
    expect((await read(of, id)).current).toMatchObject({ starts_at: anchor, live: { used: 2 } });
    await callsSettled(stack);
    const windows = await stack.db.select().from(budgets).where(eq(budgets.sharedId, id));
    expect(windows.map(({ used }) => used)).toEqual([2, 2]);
  });

  test('is restored after Redis lost everything', async () => {
    const { stack: of } = await account();
    await create(of, { scope: { account: true }, max_uses: 2, window: 'month' });
    const [a, b] = [await urlOf(of), await urlOf(of)];
    expect(await is(a)).toBe('ok');
    await callsSettled(stack);
    await flush(stack.redis);
    await stack.issuer.ledger.drainAll();
    expect(await eventually(async () => (await is(b)) === 'ok' || undefined)).toBe(true);
    expect([await is(a), await is(b, 1)]).toEqual(['uses_exhausted', 'uses_exhausted']);
  });

  test('for a metadata key covers the URLs with exactly that text', async () => {
    const { stack: of } = await account();
    const { id, scope } = await create(of, { scope: { metadata: { team: 'red' } }, max_uses: 1 });
    expect(scope).toEqual({ metadata: { team: 'red' } });
    const covered = await urlOf(of, { metadata: { team: 'red', other: { team: 7 } } });
    expect([await is(covered), await is(covered, 1)]).toEqual(['ok', 'uses_exhausted']);
    const others = [
      { team: 'Red' },
      { team: ['red'] },
      { team: { a: 'red' } },
      { squad: 'red' },
      { team: 'red\0' },
    ];
    for (const metadata of others) {
      const url = await urlOf(of, { metadata });
      expect([await is(url), await is(url)], JSON.stringify(metadata)).toEqual(['ok', 'ok']);
    }
    expect((await read(of, id)).current).toMatchObject({ live: { used: 1 } });
  });

  test('covers the servers of a bundle', async () => {
    const { id: accountId, stack: of } = await account();
    const { id } = await create(of, { scope: { external_user: 'ada' }, max_uses: 1 });
    const servers = [{ name: 'docs', url: `${upstream.url}/mcp`, transport: 'http' }];
    const sent = await send(of, { path: '/v2/mcp-presign', body: { servers, external_user: 'ada' } });
    const { servers: issued } = JSON.parse(sent.text) as { servers: Record<string, { url: string }> };
    const message = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'search', arguments: {} },
    };
    const ask = async () => {
      const answer = await fetch(issued.docs?.url ?? '', {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(message),
      });
      return await answer.text();
    };
    await ask();
    expect(JSON.parse(await ask())).toMatchObject({
      error: { data: { code: 'uses_exhausted', limit_of: 'budget', budget: id } },
    });
    const rows = await stack.db.select().from(grants).where(eq(grants.accountId, accountId));
    expect(rows.map(({ sharedBudgetIds }) => sharedBudgetIds)).toEqual([[id], [id]]);
  });
});

describe('a template', () => {
  test('creates one budget for each user with the first URL, however many URLs are issued at once', async () => {
    const { stack: of } = await account();
    const template = await create(of, { scope: { external_user: '*' }, max_uses: 2, window: 'month' });
    expect(template).toMatchObject({ kind: 'template', scope: { external_user: '*' }, current: null });
    const users = ['ada', 'bob'];
    const urls = await Promise.all(
      users.flatMap((user) => Array.from({ length: 8 }, () => urlOf(of, { external_user: user }))),
    );
    const made = await list(of, `?template=${template.id}`);
    expect(made.map(({ scope }) => scope.external_user).sort()).toEqual(users);
    expect(made.map(({ kind, max_uses, template: by }) => [kind, max_uses, by])).toEqual(
      users.map(() => ['budget', 2, template.id]),
    );
    const outcomes = await Promise.all(urls.map((url, i) => is(url, i % 2)));
    for (const from of [0, 8])
      expect(outcomes.slice(from, from + 8).filter((each) => each === 'ok')).toHaveLength(2);
    expect(await list(of, '?external_user=ada')).toHaveLength(1);
  });

  test('creates no budget for a URL without a user, or for a user with a budget of the same window', async () => {
    const { stack: of } = await account();
    const own = await create(of, { scope: { external_user: 'ada' }, max_uses: 9, window: 'day' });
    const template = await create(of, { scope: { external_user: '*' }, max_uses: 1, window: 'day' });
    const [unnamed, ada] = [await urlOf(of), await urlOf(of, { external_user: 'ada' })];
    for (const url of [unnamed, ada]) expect([await is(url), await is(url)]).toEqual(['ok', 'ok']);
    expect(await list(of, `?template=${template.id}`)).toEqual([]);
    expect((await read(of, own.id)).current).toMatchObject({ live: { used: 2 } });
  });

  test('for a metadata key creates one budget for each value, and adds to the budgets of another key', async () => {
    const { stack: of } = await account();
    const template = await create(of, { scope: { metadata: { team: '*' } }, max_uses: 1, window: 'day' });
    const project = await create(of, { scope: { metadata: { project: 'x' } }, max_uses: 2, window: 'day' });
    expect(template).toMatchObject({ kind: 'template', scope: { metadata: { team: '*' } } });
    const [red, red2, blue, long, none] = [
      await urlOf(of, { metadata: { team: 'red', project: 'x' } }),
      await urlOf(of, { metadata: { team: 'red' } }),
      await urlOf(of, { metadata: { team: 'blue', project: 'x' } }),
      await urlOf(of, { metadata: { team: 'y'.repeat(300), project: 'x' } }),
      await urlOf(of),
    ];
    const made = await list(of, `?template=${template.id}`);
    expect(made.map(({ scope }) => scope.metadata?.team).sort()).toEqual(['blue', 'red']);
    expect([await is(red), await is(red2), await is(blue), await is(blue, 1)]).toEqual([
      ...['ok', 'uses_exhausted', 'ok', 'uses_exhausted'],
    ]);
    expect(await call(long)).toMatchObject({ is: 'uses_exhausted', budget: project.id });
    expect([await is(none), await is(none)]).toEqual(['ok', 'ok']);
  });

  test('that is changed applies to later users, and to the next windows of budgets that were not changed themselves', async () => {
    const { stack: of } = await account();
    // The first window ends then, after all of its calls, also on a busy machine.
    const anchor = Math.floor(Date.now() / 1000) + 15;
    const scope = { external_user: '*' };
    const template = await create(of, { scope, max_uses: 1, window: 'hour', anchor });
    const url = async (user: string) => urlOf(of, { external_user: user });
    const [ada, bob] = [await url('ada'), await url('bob')];
    expect([await is(ada), await is(ada), await is(bob)]).toEqual(['ok', 'uses_exhausted', 'ok']);
    const [budget] = await list(of, '?external_user=bob');
    expect((await ask(of, 'PATCH', `/${budget?.id}`, { max_uses: 0 })).status).toBe(200);
    expect((await ask(of, 'PATCH', `/${template.id}`, { max_uses: 2 })).status).toBe(200);
    expect(await is(ada)).toBe('uses_exhausted');
    const cleo = await url('cleo');
    expect([await is(cleo), await is(cleo, 1), await is(cleo)]).toEqual(['ok', 'ok', 'uses_exhausted']);
    expect(await eventually(async () => (await is(ada)) === 'ok' || undefined, 40_000)).toBe(true);
    expect([await is(ada, 1), await is(ada)]).toEqual(['ok', 'uses_exhausted']);
    expect(await is(bob)).toBe('uses_exhausted');
  });
});

describe('a request for a budget', () => {
  test.each<[string, object, string | null]>([
    ['without a limit', { scope: { account: true } }, null],
    ['without a scope', { max_uses: 1 }, 'scope'],
    ['with two scopes', { scope: { account: true, external_user: 'a' }, max_uses: 1 }, 'scope'],
    ['with an empty scope', { scope: {}, max_uses: 1 }, 'scope'],
    ['of an empty user', { scope: { external_user: '' }, max_uses: 1 }, 'scope.external_user'],
    ['of two keys', { scope: { metadata: { a: 'x', b: 'x' } }, max_uses: 1 }, 'scope.metadata'],
    ['of a number', { scope: { metadata: { team: 7 } }, max_uses: 1 }, 'scope.metadata.team'],
    ['with a threshold twice', { scope: { account: true }, max_uses: 1, thresholds: [5, 5] }, 'thresholds'],
    ['of another window', { scope: { account: true }, max_uses: 1, window: 'year' }, 'window'],
    [
      'in a zone that there is not',
      { scope: { account: true }, max_uses: 1, time_zone: 'Mars/Base' },
      'time_zone',
    ],
    ['in an offset', { scope: { account: true }, max_uses: 1, time_zone: '+01:00' }, 'time_zone'],
    ['of a lifetime with an anchor', { scope: { account: true }, max_uses: 1, anchor: 1 }, 'anchor'],
    ['of an API key that does not exist', { scope: { api_key: randomUUID() }, max_uses: 1 }, 'scope.api_key'],
    [
      'of a virtual key that does not exist',
      { scope: { virtual_key: 'vk_1' }, max_uses: 1 },
      'scope.virtual_key',
    ],
  ])('%s names the field', async (_what, body, param) => {
    const { stack: of } = await account();
    refused(await ask(of, 'POST', '', body), 'invalid_request', param);
    expect(await list(of)).toEqual([]);
  });

  test('with the scope and window of another is refused, and so is a ninth kind', async () => {
    const { stack: of } = await account();
    const windows = ['lifetime', 'hour', 'day', 'week'];
    const scopes = [{ account: true }, { external_user: '*' }];
    for (const window of windows)
      for (const scope of scopes) await create(of, { scope, window, max_uses: 9 });
    const again = await ask(of, 'POST', '', { scope: { account: true }, window: 'day', cost_limit: 1 });
    expect(refused(again, 'budget_conflict', 'scope')).toContain('has this scope and this window already');
    const ninth = await ask(of, 'POST', '', { scope: { account: true }, window: 'month', max_uses: 9 });
    expect(refused(ninth, 'budget_conflict', 'scope')).toContain('at most 8');
    // A budget of a user takes the place of the template's.
    await create(of, { scope: { external_user: 'ada' }, window: 'day', max_uses: 9 });
    const url = await urlOf(of, { external_user: 'ada' });
    expect(await is(url)).toBe('ok');
    const [row] = await stack.db
      .select()
      .from(grants)
      .where(eq(grants.id, claimsOf(stack, url).jti));
    expect(row?.sharedBudgetIds).toHaveLength(8);
  });

  test('by a key without the scope is refused, and a budget of another account is not found', async () => {
    const { id: accountId, stack: of } = await account();
    const { id } = await create(of, { scope: { account: true }, max_uses: 1 });
    const backend = { ...of, apiKey: await addApiKey(stack, accountId) };
    for (const method of ['POST', 'PATCH', 'DELETE'])
      expect(
        (
          await ask(
            backend,
            method,
            method === 'POST' ? '' : `/${id}`,
            method === 'DELETE' ? undefined : { max_uses: 1 },
          )
        ).status,
      ).toBe(403);
    const { stack: other } = await account();
    for (const method of ['GET', 'PATCH', 'DELETE'])
      refused(
        await ask(other, method, `/${id}`, method === 'PATCH' ? { max_uses: 9 } : undefined),
        'not_found',
      );
    expect(await list(other)).toEqual([]);
  });

  test('with an Idempotency-Key creates one budget', async () => {
    const { stack: of } = await account();
    const body = { scope: { account: true }, max_uses: 1 };
    const more = { headers: { 'idempotency-key': randomUUID() } };
    const [first, second] = [await ask(of, 'POST', '', body, more), await ask(of, 'POST', '', body, more)];
    expect([first.status, second.text]).toEqual([201, first.text]);
    expect(await list(of)).toHaveLength(1);
  });
});

test('URLs of an account with budgets are in one partition, and their tokens make older gateways refuse them', async () => {
  const { stack: of } = await account();
  const { id } = await create(of, { scope: { external_user: '*' }, max_uses: 9 });
  const urls = await Promise.all(Array.from({ length: 12 }, (_, i) => urlOf(of, { external_user: `u${i}` })));
  const claims = urls.map((url) => claimsOf(stack, url));
  expect(new Set(claims.map(({ prt }) => prt)).size).toBe(1);
  expect(claims.every(({ crt }) => crt?.includes('shared_budgets'))).toBe(true);
  expect(claimsOf(stack, await urlOf(of)).crt).toBeUndefined();
  expect((await ask(of, 'DELETE', `/${id}`)).status).toBe(204);
  expect(claimsOf(stack, await urlOf(of, { external_user: 'u0' })).crt).toEqual(['shared_budgets']);
});

test('old windows are deleted with old URLs; the present window, the budget and the calls are kept', async () => {
  const { stack: of } = await account();
  const { id } = await create(of, { scope: { account: true }, max_uses: 9, window: 'day' });
  const url = await urlOf(of);
  expect(await is(url)).toBe('ok');
  await callsSettled(stack);
  const ofBudget = eq(budgets.sharedId, id);
  const [window] = await stack.db.select().from(budgets).where(ofBudget);
  const day = 86_400_000;
  const past = (days: number) => new Date(Date.now() - days * day);
  const rows = [40, 31, 20].map((days) => ({
    ...{ id: randomUUID(), partition: window?.partition ?? 0, sharedId: id },
    startsAt: past(days + 1),
    endsAt: past(days),
  }));
  await stack.db.insert(budgets).values(rows);
  const retention = { ledgerDays: 0, usageDays: 0, grantDays: 30, refusedDays: 0, archive: undefined };
  const another = await startOwnIssuer(stack, { retention });
  const kept = await eventually(async () => {
    const found = await stack.db.select().from(budgets).where(ofBudget).orderBy(budgets.startsAt);
    return found.length < 4 ? found : undefined;
  });
  await another.close();
  expect(kept.map((row) => row.id)).toEqual([rows[2]?.id, window?.id]);
  expect((await read(of, id)).current).toMatchObject({ settled: { used: 1 } });
  expect(await is(url, 1)).toBe('ok');
});

test('calendars are stored far ahead, and an issuer extends them before they end', async () => {
  const { stack: of } = await account();
  const { id } = await create(of, {
    scope: { account: true },
    max_uses: 9,
    window: 'hour',
    anchor: 1_000_000,
  });
  const [row] = await stack.db.select().from(sharedBudgets).where(eq(sharedBudgets.id, id));
  const ofCalendar = eq(budgetWindows.calendarId, row?.calendarId ?? '');
  const read = () => stack.db.select().from(budgetWindows).where(ofCalendar).orderBy(budgetWindows.startsAt);
  const stored = await read();
  expect(stored.length).toBeGreaterThan(14 * 24);
  await stack.db
    .delete(budgetWindows)
    .where(and(ofCalendar, gte(budgetWindows.startsAt, stored[24]?.startsAt ?? new Date())));
  await stack.db
    .update(budgetCalendars)
    .set({ knownUntil: stored[24]?.startsAt ?? null })
    .where(eq(budgetCalendars.id, row?.calendarId ?? ''));
  const another = await startOwnIssuer(stack);
  const again = await eventually(async () => {
    const found = await read();
    return found.length > 14 * 24 ? found : undefined;
  });
  await another.close();
  expect(again.slice(0, stored.length)).toEqual(stored);
  const ends = again.map(({ endsAt }) => endsAt);
  expect(again.slice(1).map(({ startsAt }) => startsAt)).toEqual(ends.slice(0, -1));
});
