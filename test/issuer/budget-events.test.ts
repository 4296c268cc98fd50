import { type BudgetAnswer, budgetAnswer, type WebhookEvent } from '@presign/schema';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { budgets } from '@presign/schema/tables';
import { webhookEvents } from '@presign/schema/webhook-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { issue, send } from './ask.ts';
import { EAGER, type OwnIssuer, startOwnIssuer } from './own-issuer.ts';
import { addEndpoint, arrived, type Endpoint, quiet } from './webhook-receiver.ts';

/** A time in the data of an event. */
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let stack: Stack;
let second: OwnIssuer;
let upstream: Upstream;

/** Two issuers drain and deliver. */
beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, issuer: EAGER });
  second = await startOwnIssuer(stack, EAGER);
});
afterAll(async () => {
  await second.close();
  await stack.close();
  await upstream.close();
});

/** An account of its own with an endpoint for the events of budgets. */
async function account() {
  const { id } = await addAccount(stack);
  const of = { ...stack, apiKey: await addApiKey(stack, id, { scopes: ['admin'] }) };
  const endpoint = await addEndpoint(of, {
    events: ['budget.threshold', 'budget.exhausted', 'budget.reset'],
  });
  return { of, endpoint, close: () => endpoint.upstream.close() };
}

async function ask(of: Stack, method: string, path: string, body: object): Promise<BudgetAnswer> {
  const sent = await send(of, { method, path: `/v1/budgets${path}`, body });
  expect(sent.status, sent.text).toBeLessThan(202);
  return budgetAnswer.parse(JSON.parse(sent.text));
}
const create = (of: Stack, body: object) => ask(of, 'POST', '', body);

/** Makes so many calls, all of which pass. */
async function call(url: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) expect((await fetch(url)).status).toBe(200);
}
const urlOf = async (of: Stack, fields: object = {}) =>
  (await issue(of, { path: '/v1/models', method: 'GET', ...fields })).url;

/** The events that an endpoint got, each once: their types with the limit and the percentage. */
function announced(endpoint: Endpoint): string[] {
  const byId = new Map(endpoint.events().map((event, i) => [endpoint.ids()[i], event]));
  return [...byId.values()].map(asText).sort();
}
function asText(event: WebhookEvent): string {
  if (event.type === 'budget.threshold') return `${event.data.limit} ${event.data.percent}`;
  if (event.type === 'budget.exhausted') return `${event.data.limit} exhausted`;
  return event.type;
}

test('each threshold of a window, and its exhaustion, is announced once while two issuers drain', async () => {
  const { of, endpoint, close } = await account();
  const budget = await create(of, {
    ...{ name: 'all', scope: { account: true }, window: 'day', max_uses: 10, thresholds: [90, 30] },
  });
  expect(budget.thresholds).toEqual([30, 90]);
  const [a, b] = [await urlOf(of), await urlOf(of)];
  await call(a, 2);
  await quiet(stack);
  expect(endpoint.ids()).toEqual([]);
  await call(b, 1);
  await arrived(endpoint, 1);
  await Promise.all([call(a, 3), call(b, 4)]);
  await quiet(stack);
  expect(announced(endpoint)).toEqual(['max_uses 30', 'max_uses 90', 'max_uses exhausted']);
  expect(endpoint.events()[0]).toMatchObject({
    type: 'budget.threshold',
    data: {
      ...{ budget: budget.id, name: 'all', scope: { account: true }, template: null, window: 'day' },
      ...{ percent: 30, limit: 'max_uses', max_uses: 10, cost_limit: null, settled: { used: 3, spent: 0 } },
      ...{ starts_at: expect.stringMatching(ISO), ends_at: expect.stringMatching(ISO) },
    },
  });
  await close();
});

test('after a raised limit thresholds can be reached again; a lowered limit announces those it has passed', async () => {
  const { of, endpoint, close } = await account();
  const { id } = await create(of, { scope: { account: true }, max_uses: 2, thresholds: [50, 100] });
  const url = await urlOf(of);
  await call(url, 2);
  await quiet(stack);
  expect(announced(endpoint)).toEqual(['max_uses 100', 'max_uses 50', 'max_uses exhausted']);
  await ask(of, 'PATCH', `/${id}`, { max_uses: 8 });
  await call(url, 2);
  await quiet(stack);
  expect(announced(endpoint)).toEqual(['max_uses 100', 'max_uses 50', 'max_uses 50', 'max_uses exhausted']);
  // No call follows, and none could.
  await ask(of, 'PATCH', `/${id}`, { max_uses: 4, thresholds: [75] });
  await quiet(stack);
  const again = ['max_uses 75', 'max_uses exhausted'];
  expect(announced(endpoint)).toEqual(
    ['max_uses 100', 'max_uses 50', 'max_uses 50', 'max_uses exhausted', ...again].sort(),
  );
  await close();
});

test("a budget from a template has the template's thresholds, until the budget itself is changed", async () => {
  const { of, endpoint, close } = await account();
  const template = await create(of, { scope: { external_user: '*' }, max_uses: 4, thresholds: [] });
  const [ada, bob] = [await urlOf(of, { external_user: 'ada' }), await urlOf(of, { external_user: 'bob' })];
  const ofAda = eq(sharedBudgets.scopeValue, 'ada');
  const [own] = await stack.db.select({ id: sharedBudgets.id }).from(sharedBudgets).where(ofAda);
  expect(await ask(of, 'PATCH', `/${own?.id}`, { thresholds: [75] })).toMatchObject({
    ...{ max_uses: 4, thresholds: [75], template: template.id },
  });
  await ask(of, 'PATCH', `/${template.id}`, { thresholds: [25] });
  await Promise.all([call(ada, 3), call(bob, 3)]);
  await quiet(stack);
  const seen = endpoint.events().flatMap((event) => (event.type === 'budget.threshold' ? event.data : []));
  expect(seen.map(({ scope, percent }) => `${scope.external_user} ${percent}`).sort()).toEqual([
    'ada 75',
    'bob 25',
  ]);
  await close();
});

test('the end of a window is announced once, with its figures, and not for a window that ended before the endpoint existed', async () => {
  const { of, endpoint, close } = await account();
  const { id } = await create(of, { scope: { account: true }, max_uses: 9, window: 'hour', thresholds: [] });
  await call(await urlOf(of), 3);
  await callsSettled(stack);
  const [window] = await stack.db.select().from(budgets).where(eq(budgets.sharedId, id));
  const begin = window?.startsAt?.getTime() ?? 0;
  // One that is long over, and the present one, which now ends.
  const before = { startsAt: new Date(begin - 7_200_000), endsAt: new Date(begin - 3_600_000) };
  await stack.db
    .insert(budgets)
    .values({ ...window, id: crypto.randomUUID(), partition: 0, sharedId: id, ...before });
  await stack.db
    .update(budgets)
    .set({ endsAt: new Date() })
    .where(eq(budgets.id, window?.id ?? ''));
  await arrived(endpoint, 1);
  await quiet(stack);
  expect(endpoint.events()).toMatchObject([
    {
      type: 'budget.reset',
      data: {
        budget: id,
        window: 'hour',
        max_uses: 9,
        settled: { used: 3 },
        starts_at: new Date(begin).toISOString(),
      },
    },
  ]);
  await close();
});

test('a deleted budget announces nothing, and an account without an endpoint leaves no rows', async () => {
  const { of, endpoint, close } = await account();
  const { id } = await create(of, { scope: { account: true }, max_uses: 4 });
  const url = await urlOf(of);
  await call(url, 1);
  expect((await send(of, { method: 'DELETE', path: `/v1/budgets/${id}` })).status).toBe(204);
  await call(url, 4);
  const { id: other } = await addAccount(stack);
  const silent = { ...stack, apiKey: await addApiKey(stack, other, { scopes: ['admin'] }) };
  await create(silent, { scope: { account: true }, max_uses: 1 });
  await call(await urlOf(silent), 1);
  await quiet(stack);
  expect(endpoint.ids()).toEqual([]);
  expect(await stack.db.$count(webhookEvents, eq(webhookEvents.accountId, other))).toBe(0);
  await close();
});
