import { setTimeout as sleep } from 'node:timers/promises';
import { type BudgetAnswer, budgetAnswer, budgetPage } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets } from '@presign/schema/tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, addVirtualKey, ownAccount } from './accounts.ts';
import { issue, refused, type Sent, send } from './ask.ts';
import { EAGER, startOwnIssuer } from './own-issuer.ts';

const MINUTES = 60_000;

let upstream: Upstream;
let stack: Stack;

beforeAll(async () => {
  let answers = 0;
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  upstream = await startUpstream((_seen, response) => {
    const body = JSON.stringify({ choices: [], usage });
    setTimeout(
      () => response.writeHead(200, { 'content-type': 'application/json' }).end(body),
      (answers++ * 7) % 25,
    );
  });
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** An account of its own with an admin key. */
async function account() {
  const { id } = await addAccount(stack);
  const apiKey = await addApiKey(stack, id, { scopes: ['admin'] });
  return { id, of: { ...stack, apiKey } };
}
const ask = (of: Stack, method: string, path = '', body?: object | string): Promise<Sent> =>
  send(of, { method, path: `/v1/budgets${path}`, ...(body ? { body } : {}) });
async function create(of: Stack, body: object | string): Promise<BudgetAnswer> {
  const sent = await ask(of, 'POST', '', body);
  expect(sent.status, sent.text).toBe(201);
  return budgetAnswer.parse(JSON.parse(sent.text));
}
const list = async (of: Stack) => budgetPage.parse(JSON.parse((await ask(of, 'GET')).text)).data;
const urlOf = async (of: Stack, fields: object = {}) => (await issue(of, fields)).url;
const over = (url: string, gateway: string | undefined) =>
  url.replace(stack.gatewayUrls[0] ?? '', gateway ?? '');

/** Calls a URL through a gateway; the code of its refusal, or `ok`. */
async function call(url: string, gateway = stack.gatewayUrls[0]): Promise<string> {
  const answer = await fetch(over(url, gateway), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o-mini', max_tokens: 5, messages: [] }),
  });
  const { error } = (await answer.json()) as { error?: { code: string } };
  return error?.code ?? 'ok';
}

describe('a request for a budget', () => {
  const scope = '"scope": {"account": true}';
  test.each([
    [`{${scope}, "max_uses": -2}`, 'max_uses'],
    [`{${scope}, "max_uses": 1.5}`, 'max_uses'],
    [`{${scope}, "max_uses": "3"}`, 'max_uses'],
    [`{${scope}, "max_uses": 1e999}`, 'max_uses'],
    [`{${scope}, "cost_limit": -1}`, 'cost_limit'],
    [`{${scope}, "cost_limit": -0.5}`, 'cost_limit'],
    [`{${scope}, "cost_limit": 1e999}`, 'cost_limit'],
    [`{${scope}, "cost_limit": 9007199254740993}`, 'cost_limit'],
    [`{${scope}, "tokens": -1}`, 'tokens'],
    [`{${scope}, "tokens": 1e308}`, 'tokens'],
    [`{${scope}, "tokens": true}`, 'tokens'],
    [`{${scope}, "max_uses": 1, "window": "day", "anchor": -1e300}`, 'anchor'],
    [`{${scope}, "max_uses": 1, "window": "day", "anchor": 1e300}`, 'anchor'],
    [`{${scope}, "max_uses": 1, "window": "day", "anchor": 8640000000001}`, 'anchor'],
    [`{${scope}, "max_uses": 1, "window": "day", "time_zone": "../etc/passwd"}`, 'time_zone'],
    [`{${scope}, "max_uses": 1, "window": "day", "time_zone": "${'A'.repeat(10_000)}"}`, 'time_zone'],
    [`{${scope}, "max_uses": 1, "thresholds": [0]}`, 'thresholds[0]'],
    [`{${scope}, "max_uses": 1, "thresholds": [50, 101]}`, 'thresholds[1]'],
    [`{${scope}, "max_uses": 1, "thresholds": [1,2,3,4,5,6,7,8,9,10,11]}`, 'thresholds'],
    [`{${scope}, "max_uses": 1, "name": "${'n'.repeat(300)}"}`, 'name'],
    [`{${scope}, "max_uses": 1, "name": "a\\u0000b"}`, 'name'],
    ['{"scope": {"external_user": "a\\u0000b"}, "max_uses": 1}', 'scope.external_user'],
    [`{"scope": {"external_user": "${'u'.repeat(256)}"}, "max_uses": 1}`, 'scope.external_user'],
    ['{"scope": {"account": false}, "max_uses": 1}', 'scope.account'],
    ['{"scope": {"metadata": {"": "x"}}, "max_uses": 1}', 'scope.metadata.'],
    ['{"scope": {"metadata": {"team": ""}}, "max_uses": 1}', 'scope.metadata.team'],
    ['{"scope": {"metadata": {"team": ["red"]}}, "max_uses": 1}', 'scope.metadata.team'],
    ['{"scope": {"__proto__": {"account": true}}, "max_uses": 1}', 'scope.__proto__'],
    [`{${scope}, "max_uses": 1, "__proto__": {"cost_limit": 1}}`, '__proto__'],
    [`{${scope}, "max_uses": 1, "partition": 3}`, 'partition'],
  ])('%s is refused with its field, and creates nothing', async (body, param) => {
    const { of } = await account();
    const sent = await ask(of, 'POST', '', body);
    expect([sent.status, JSON.parse(sent.text).error.code], sent.text).toEqual([400, 'invalid_request']);
    expect(JSON.parse(sent.text).error.param).toBe(param);
    expect(await list(of)).toEqual([]);
  });

  test('cannot name an API key or a virtual key of another account, nor change its budget', async () => {
    const [{ of }, other] = [await account(), await account()];
    const made = await send(other.of, { path: '/v1/api-keys', body: { name: 'k', scopes: ['presign'] } });
    const key = JSON.parse(made.text) as { id: string };
    const virtual = await addVirtualKey(stack, other.id);
    for (const [field, value] of Object.entries({ api_key: key.id, virtual_key: virtual })) {
      const sent = await ask(of, 'POST', '', { scope: { [field]: value }, max_uses: 1 });
      refused(sent, 'invalid_request', `scope.${field}`);
    }
    const theirs = await create(other.of, { scope: { account: true }, max_uses: 1 });
    refused(await ask(of, 'PATCH', `/${theirs.id}`, { max_uses: -1 }), 'not_found');
    refused(await ask(of, 'DELETE', `/${theirs.id}`), 'not_found');
    expect(await list(other.of)).toMatchObject([{ max_uses: 1, deleted_at: null }]);
    const url = await urlOf(other.of);
    expect([await call(url), await call(url)]).toEqual(['ok', 'uses_exhausted']);
  });

  test.each(['__proto__', 'constructor', 'toString', 'é', 'e\u0301', ' team', 'team\t'])(
    'for the metadata key %j covers URLs with this key, and with no other spelling',
    async (key) => {
      const { of } = await account();
      // JSON.parse keeps `__proto__`, which an object literal does not.
      const metadata = JSON.parse(`{${JSON.stringify(key)}: "red"}`) as Record<string, string>;
      const scoped = JSON.stringify({ scope: {}, max_uses: 0 }).replace(
        '{}',
        JSON.stringify({ metadata: 0 }).replace('0', JSON.stringify(metadata)),
      );
      const sent = await ask(of, 'POST', '', scoped);
      const asked = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk' };
      const body = `${JSON.stringify(asked).slice(0, -1)},"metadata":${JSON.stringify(metadata)}}`;
      const issued = await send(of, { body });
      // A key that cannot be kept must be refused in both places, so that no URL escapes the budget.
      expect([sent.status, issued.status], sent.text + issued.text).toSatisfy(
        ([a, b]) => (a === 201 && b === 200) || a === 400,
      );
      if (sent.status !== 201) return;
      expect(await call((JSON.parse(issued.text) as { url: string }).url)).toBe('uses_exhausted');
      const others = await urlOf(of, { metadata: { [`${key}.`]: 'red', [key.toUpperCase()]: 'red' } });
      expect(await call(others)).toBe('ok');
    },
  );
});

test("a gateway whose clock is minutes off counts a call in the window of Redis's clock, right after a boundary", async () => {
  const { of } = await account();
  const gateways = await Promise.all(
    [-5 * MINUTES, 5 * MINUTES].map((off) => stack.addGateway({ now: () => Date.now() + off })),
  );
  // An hour began some seconds ago: one gateway believes that it has not, and the other that it is old.
  const anchor = Math.floor(Date.now() / 1000) - 2;
  const { id } = await create(of, { scope: { account: true }, max_uses: 2, window: 'hour', anchor });
  // A gateway that is more than a minute behind refuses a newer token.
  const issuer = await startOwnIssuer(stack, { now: () => Date.now() - 5 * MINUTES });
  const url = await urlOf({ ...of, issuerUrl: issuer.issuerUrl });
  await issuer.close();
  const found = [];
  for (const gateway of [...gateways, ...gateways]) found.push(await call(url, gateway));
  expect(found).toEqual(['ok', 'ok', 'uses_exhausted', 'uses_exhausted']);
  await callsSettled(stack);
  const windows = await stack.db.select().from(budgets).where(eq(budgets.sharedId, id));
  const used = windows.map(({ startsAt, used: calls }) => [startsAt?.getTime(), calls] as const);
  // The gateway that is behind stores the window that it believes in, and counts nothing there.
  expect(Object.fromEntries(used)).toMatchObject({ [anchor * 1000]: 2 });
  expect(used.reduce((sum, [, calls]) => sum + calls, 0)).toBe(2);
});

test('a budget is created while URLs of its user are issued, and after one revocation each working URL draws on it', async () => {
  const { of } = await account();
  const user = { external_user: 'ada' };
  const urls = await Promise.all(Array.from({ length: 5 }, () => urlOf(of, user)));
  let stopped = false;
  const issuing = Promise.all(
    [1, 2].map(async () => {
      while (!stopped && urls.length < 200) urls.push(await urlOf(of, user));
    }),
  );
  const { id } = await create(of, { scope: user, max_uses: 1 });
  const revoked = await send(of, { method: 'DELETE', path: '/v1/sessions?external_user=ada' });
  expect(revoked.status).toBe(204);
  stopped = true;
  await issuing;
  const before = upstream.seen.length;
  urls.push(await urlOf(of, user));
  const codes = new Set(await Promise.all(urls.map((url) => call(url))));
  expect([...codes].sort()).toEqual(
    ['grant_revoked', 'ok', 'uses_exhausted'].filter((code) => codes.has(code)),
  );
  expect(upstream.seen.length - before).toBe(1);
  expect(await list(of)).toMatchObject([{ id, current: { live: { used: 1 } } }]);
});

test('a suspended account is refused by its budgets’ routes and its URLs, and its budgets continue afterwards', async () => {
  const { id, of } = await account();
  const operator = {
    ...stack,
    apiKey: await addApiKey(stack, await ownAccount(stack), { scopes: ['operator'] }),
  };
  const set = async (state: string) =>
    expect((await send(operator, { path: `/v1/accounts/${id}/${state}` })).status).toBe(204);
  const budget = await create(of, { scope: { account: true }, max_uses: 2 });
  const url = await urlOf(of);
  expect(await call(url)).toBe('ok');
  await set('suspend');
  expect([await call(url), await call(url, stack.gatewayUrls[1])]).toEqual([
    'account_suspended',
    'account_suspended',
  ]);
  for (const [method, path, body] of [
    ['POST', '', { scope: { external_user: 'u' }, max_uses: 9 }],
    ['PATCH', `/${budget.id}`, { max_uses: 9 }],
    ['DELETE', `/${budget.id}`, undefined],
    ['GET', '', undefined],
  ] as const)
    expect((await ask(of, method, path, body)).status).toBe(403);
  await set('resume');
  expect([await call(url), await call(url)]).toEqual(['ok', 'uses_exhausted']);
  expect(await list(of)).toMatchObject([{ id: budget.id, max_uses: 2 }]);
});

test('limits that are changed, deleted and created during calls over two gateways are never exceeded after the answer, and sums are exact', async () => {
  const { id: accountId, of } = await account();
  const users = Array.from({ length: 3 }, (_, i) => `user-${i}`);
  await create(of, { scope: { external_user: '*' }, max_uses: 1_000, window: 'day' });
  const urls = await Promise.all(
    Array.from({ length: 9 }, (_, i) => urlOf(of, { external_user: users[i % 3] })),
  );
  const shared = await create(of, { scope: { account: true }, max_uses: 5, window: 'day' });
  urls.push(...(await Promise.all(users.map((external_user) => urlOf(of, { external_user })))));
  const codes: Record<string, number> = {};
  let stopped = false;
  const caller = async (i: number) => {
    for (let n = i; !stopped; n += 5) {
      const began = Date.now();
      const code = await call(urls[n % urls.length] ?? '', stack.gatewayUrls[n % 2]);
      codes[code] = (codes[code] ?? 0) + 1;
      // Stores run in this process: calls without a pause leave a change of a busy machine no turn.
      await sleep(Date.now() - began);
    }
  };
  const calling = Promise.all(Array.from({ length: 6 }, (_, i) => caller(i)));
  onTestFinished(() => {
    stopped = true;
  });
  // Redis may not have a change in time: 202 or 503. It is asked for again.
  const change = (id: string | undefined, fields: object) =>
    eventually(async () => {
      const { status } = await ask(of, 'PATCH', `/${id}`, fields);
      expect([200, 202, 503]).toContain(status);
      return status === 200;
    });
  const ofUsers = (await list(of)).flatMap(({ id, scope }) =>
    'external_user' in scope && scope.external_user !== '*' ? id : [],
  );
  for (let round = 0; round < (thorough ? 12 : 4); round++) {
    const limit = { max_uses: (round * 37) % 90 };
    await Promise.all([
      change(shared.id, limit),
      change(ofUsers[round % 3], { max_uses: (round * 53) % 200 }),
      change(shared.id, { thresholds: [(round % 99) + 1] }),
    ]);
  }
  // The last answers are in force: once each budget is full, not one more call passes on any gateway.
  await Promise.all(ofUsers.map((id) => change(id, { max_uses: 0 })));
  const before = upstream.seen.length;
  const asked = Date.now();
  await eventually(async () => Object.keys(codes).includes('uses_exhausted') && Date.now() > asked + 300);
  stopped = true;
  await calling;
  // Calls that were admitted before the answer may reach the provider after it: at most one of each caller.
  expect(upstream.seen.length - before).toBeLessThanOrEqual(6);
  expect(Object.keys(codes).sort()).toEqual(['ok', 'uses_exhausted']);

  const lastly = await ask(of, 'DELETE', `/${shared.id}`);
  expect(lastly.status).toBe(204);
  await Promise.all(ofUsers.map((id) => change(id, { max_uses: -1 })));
  expect(await Promise.all(urls.map((url) => call(url)))).toEqual(urls.map(() => 'ok'));
  await callsSettled(stack);
  const [sum] = await stack.db
    .select({ uses: sql<number>`sum(${ledger.uses})::int` })
    .from(ledger)
    .where(eq(ledger.accountId, accountId));
  const drawn = await Promise.all(
    ofUsers.map((id) => stack.db.select().from(budgets).where(eq(budgets.sharedId, id))),
  );
  expect(sum?.uses).toBe((codes['ok'] ?? 0) + urls.length);
  expect(drawn.flat().reduce((all, { used }) => all + used, 0)).toBe(sum?.uses);
});
