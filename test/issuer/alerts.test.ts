import { alertFirings, alerts } from '@presign/schema/alert-tables';
import { accounts, budgets } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { othersWait } from '../harness/others-wait.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import {
  addCalls,
  ago,
  changeAlert,
  createAlert,
  evaluate,
  firingsOf,
  getAlert,
  type Owner,
  ownerOf,
} from './alerts.ts';
import { issue, refused, send } from './ask.ts';
import { sumAll } from './sweeps.ts';
import { addEndpoint, arrived, deliveriesOf, type Endpoint, quiet } from './webhook-receiver.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const DOLLAR = 1_000_000;

let stack: Stack;
let upstream: Upstream;

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

/** An account with an endpoint that gets only alerts. */
async function withEndpoint() {
  const of = await ownerOf(stack);
  return { of, endpoint: await addEndpoint(of, { events: [] }) };
}

/** The types of the events that came. Deliveries keep no order. */
const seen = (endpoint: Endpoint) =>
  endpoint
    .events()
    .map(({ type }) => type)
    .toSorted();

/** A spend of today that an alert fires at. */
const ofDay = (amount = DOLLAR) => ({ spend: { window: 'day', amount } });
/** A settled call of today, unless a day began within the last second. */
const spend = (of: Owner, dollars: number) => addCalls(of, 0, [{ costMicrousd: dollars * DOLLAR }]);

test("a crossing fires once, while three issuers evaluate simultaneously, and is sent to the alert's endpoint", async () => {
  const { of, endpoint } = await withEndpoint();
  const other = await addEndpoint(of, { events: [] });
  const { id } = await createAlert(of, { name: 'Spend', condition: ofDay(), webhook: endpoint.id });
  await evaluate(stack, id);
  expect(await getAlert(of, id)).toMatchObject({ firing_since: null, value: 0, threshold: DOLLAR });
  await spend(of, 2);
  for (let round = 0; round < 4; round++) await evaluate(stack, id, 3);
  const [firing, ...others] = await firingsOf(of, id);
  expect([firing, others]).toMatchObject([{ value: 2 * DOLLAR, threshold: DOLLAR, resolved_at: null }, []]);
  expect(await getAlert(of, id)).toMatchObject({ firing_since: firing?.fired_at, value: 2 * DOLLAR });
  await quiet(stack);
  expect(endpoint.events()).toMatchObject([
    { type: 'alert.fired', data: { alert: id, firing: firing?.id, value: 2 * DOLLAR, test: false } },
  ]);
  expect(endpoint.ids()).toEqual([firing?.id]);
  expect((await firingsOf(of, id))[0]?.delivery).toMatchObject({ status: 'delivered', attempts: 1 });
  expect(other.upstream.seen).toEqual([]);
});

describe('an alert for spending', () => {
  test('is resolved when its day is over, and fires again for the next day', async () => {
    const { of, endpoint } = await withEndpoint();
    const { id } = await createAlert(of, { name: 'Day', condition: ofDay(), webhook: endpoint.id });
    await spend(of, 1);
    await evaluate(stack, id);
    // As if all of that had been yesterday.
    await stack.db.execute(
      sql`update ledger set settled_at = settled_at - interval '1 day' where account_id = ${of.account}`,
    );
    await ago(stack, id, '1 day');
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ firing_since: null, value: 0 });
    await spend(of, 3);
    await evaluate(stack, id);
    await evaluate(stack, id);
    await quiet(stack);
    expect(seen(endpoint)).toEqual(['alert.fired', 'alert.fired', 'alert.resolved']);
  });

  test('that was not evaluated at the end of an hour fires for it once, although the hour is over', async () => {
    const { of, endpoint } = await withEndpoint();
    const condition = { spend: { window: 'hour', amount: DOLLAR } };
    const { id } = await createAlert(of, { name: 'Hour', condition, webhook: endpoint.id });
    await evaluate(stack, id);
    await ago(stack, id, '5 hours');
    await addCalls(of, 3 * HOUR, [{ costMicrousd: 2 * DOLLAR }]);
    await evaluate(stack, id, 3);
    await evaluate(stack, id, 3);
    const firings = await firingsOf(of, id);
    expect(firings).toMatchObject([{ value: 2 * DOLLAR, resolved_at: expect.any(Number) }]);
    const [start = 0, end = 0] = [firings[0]?.starts_at ?? 0, firings[0]?.ends_at ?? 0];
    const moment = (Date.now() - 3 * HOUR) / 1000;
    expect([end - start, Math.abs(moment - start) <= 3_700]).toEqual([3_600, true]);
    await quiet(stack);
    expect(seen(endpoint)).toEqual(['alert.fired', 'alert.resolved']);
  });

  test('does not fire for an hour that ended before it was created', async () => {
    const { of } = await withEndpoint();
    await addCalls(of, 2 * HOUR, [{ costMicrousd: 2 * DOLLAR }]);
    const { id } = await createAlert(of, { condition: { spend: { window: 'hour', amount: DOLLAR } } });
    await evaluate(stack, id);
    await stack.db.execute(
      sql`update alerts set checked_at = checked_at - interval '5 hours' where id = ${id}`,
    );
    await evaluate(stack, id);
    expect(await firingsOf(of, id)).toEqual([]);
  });

  test('uses the days of its time zone', async () => {
    const { of } = await withEndpoint();
    const zone = 'Pacific/Kiritimati';
    const { id } = await createAlert(of, {
      condition: { spend: { window: 'day', time_zone: zone, amount: 1 } },
    });
    await spend(of, 1);
    await evaluate(stack, id);
    const [firing] = await firingsOf(of, id);
    const local = new Intl.DateTimeFormat('en', { timeZone: zone, hour: 'numeric', hourCycle: 'h23' });
    expect(local.format(new Date((firing?.starts_at ?? 1) * 1000))).toBe('00');
  });
});

describe('an alert for a jump', () => {
  const jump = (window: string) => ({ spend_jump: { window, factor: 3, at_least: DOLLAR } });

  test.each([['day'], ['hour']])(
    'over a %s compares with the mean of the previous seven, even after calls were summed',
    async (window) => {
      const { of } = await withEndpoint();
      const { id } = await createAlert(of, { condition: jump(window) });
      for (let day = 1; day <= 7; day++) await addCalls(of, day * DAY, [{ costMicrousd: 2 * DOLLAR }]);
      // Not in the seven before.
      await addCalls(of, 9 * DAY, [{ costMicrousd: 900 * DOLLAR }]);
      await sumAll(stack, Date.now());
      await spend(of, 5);
      await evaluate(stack, id);
      expect(await getAlert(of, id)).toMatchObject({
        value: 5 * DOLLAR,
        threshold: 6 * DOLLAR,
        firing_since: null,
      });
      await spend(of, 1);
      await evaluate(stack, id);
      expect(await getAlert(of, id)).toMatchObject({ value: 6 * DOLLAR, firing_since: expect.any(Number) });
    },
  );

  test('does not fire below its minimum amount, however little was spent before', async () => {
    const { of } = await withEndpoint();
    const { id } = await createAlert(of, { condition: jump('day') });
    await addCalls(of, 0, [{ costMicrousd: DOLLAR - 1 }]);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ threshold: DOLLAR, firing_since: null });
  });
});

describe('an alert for a budget', () => {
  const budgetOf = async (of: Owner, body: object) => {
    const sent = await send(of, { path: '/v1/budgets', body });
    expect(sent.status, sent.text).toBe(201);
    return (JSON.parse(sent.text) as { id: string }).id;
  };

  test('fires at its percentage of the fullest limit, is resolved when the limit is raised, and fires again', async () => {
    const { of, endpoint } = await withEndpoint();
    const budget = await budgetOf(of, { scope: { account: true }, max_uses: 4, cost_limit: 100 * DOLLAR });
    const condition = { budget: { budget, percent: 75 } };
    const { id } = await createAlert(of, { name: 'Budget', condition, webhook: endpoint.id });
    const { url } = await issue(of as Stack, { path: '/v1/models', method: 'GET' });
    const call = async (times: number) => {
      for (let i = 0; i < times; i++) expect((await fetch(url)).status).toBe(200);
      await callsSettled(stack);
      await evaluate(stack, id, 3);
    };
    await call(2);
    expect(await getAlert(of, id)).toMatchObject({ value: 50, threshold: 75, firing_since: null });
    await call(1);
    expect(await getAlert(of, id)).toMatchObject({ value: 75, firing_since: expect.any(Number) });
    const raised = await send(of, { method: 'PATCH', path: `/v1/budgets/${budget}`, body: { max_uses: 8 } });
    expect(raised.status, raised.text).toBe(200);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ value: 37.5, firing_since: null });
    await call(3);
    await quiet(stack);
    expect(seen(endpoint)).toEqual(['alert.fired', 'alert.fired', 'alert.resolved']);
  });

  test('fires for a window that has ended, and has no figure once the budget is deleted', async () => {
    const { of } = await withEndpoint();
    const budget = await budgetOf(of, { scope: { account: true }, max_uses: 4, window: 'day' });
    const { id } = await createAlert(of, { condition: { budget: { budget, percent: 100 } } });
    await evaluate(stack, id);
    const { url } = await issue(of as Stack, { path: '/v1/models', method: 'GET' });
    for (let i = 0; i < 4; i++) expect((await fetch(url)).status).toBe(200);
    await callsSettled(stack);
    await stack.db.update(budgets).set({ endsAt: sql`now()` }).where(eq(budgets.sharedId, budget));
    await evaluate(stack, id, 3);
    await evaluate(stack, id, 3);
    expect(await firingsOf(of, id)).toMatchObject([{ value: 100, resolved_at: expect.any(Number) }]);
    await send(of, { method: 'DELETE', path: `/v1/budgets/${budget}` });
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ value: null, threshold: null, firing_since: null });
  });

  test('is refused for a template, a budget of another account, and an endpoint of another account', async () => {
    const { of } = await withEndpoint();
    const { of: stranger, endpoint } = await withEndpoint();
    const template = await budgetOf(of, { scope: { external_user: '*' }, max_uses: 4 });
    const foreign = await budgetOf(stranger, { scope: { account: true }, max_uses: 4 });
    const ask = (fields: object) =>
      send(of, { path: '/v1/alerts', body: { name: 'a', condition: ofDay(), ...fields } });
    for (const budget of [template, foreign])
      refused(
        await ask({ condition: { budget: { budget, percent: 5 } } }),
        'invalid_request',
        'condition.budget.budget',
      );
    refused(await ask({ webhook: endpoint.id }), 'invalid_request', 'webhook');
  });
});

describe('an alert for errors', () => {
  const errors = { errors: { percent: 50, calls: 4, minutes: 5 } };
  const failed = { failure: 'upstream_unreachable', status: null };
  const passed = { failure: null, status: 200 };

  test('counts only faults of providers and of Presign, and only with enough calls', async () => {
    const { of } = await withEndpoint();
    const { id } = await createAlert(of, { condition: errors });
    await addCalls(of, 0, [failed, failed, failed]);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ value: 100, threshold: 50, firing_since: null });
    await addCalls(of, 0, [
      { failure: 'provider_error', status: 400 },
      { failure: 'holder_left', status: 200 },
      passed,
      passed,
    ]);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ value: 42.85, firing_since: null });
    await addCalls(of, 0, [failed]);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ value: 50, firing_since: expect.any(Number) });
  });

  test('keeps firing while calls pass again, and is resolved after its minutes without a fault', async () => {
    const { of, endpoint } = await withEndpoint();
    const { id } = await createAlert(of, { name: 'Errors', condition: errors, webhook: endpoint.id });
    await addCalls(of, 0, [failed, failed, failed, failed]);
    await evaluate(stack, id, 3);
    await addCalls(
      of,
      0,
      Array.from({ length: 20 }, () => passed),
    );
    await evaluate(stack, id);
    expect((await getAlert(of, id)).firing_since).not.toBeNull();
    await stack.db.execute(
      sql`update ledger set settled_at = settled_at - interval '6 minutes' where account_id = ${of.account}`,
    );
    await ago(stack, id, '6 minutes');
    await evaluate(stack, id);
    await evaluate(stack, id);
    await quiet(stack);
    expect(seen(endpoint)).toEqual(['alert.fired', 'alert.resolved']);
  });

  test('fires for faults at times when no issuer evaluated', async () => {
    const { of } = await withEndpoint();
    const { id } = await createAlert(of, { condition: errors });
    await evaluate(stack, id);
    await ago(stack, id, '2 hours');
    await addCalls(of, HOUR, [failed, failed, failed, failed]);
    await evaluate(stack, id, 3);
    await evaluate(stack, id, 3);
    expect(await firingsOf(of, id)).toMatchObject([{ value: 100, resolved_at: expect.any(Number) }]);
  });

  test('for one provider counts only its calls', async () => {
    const { of } = await withEndpoint();
    const { id } = await createAlert(of, { condition: { errors: { ...errors.errors, provider: 'mcp' } } });
    await addCalls(of, 0, [failed, failed, failed, failed]);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ value: 0, firing_since: null });
  });
});

describe('a change', () => {
  test('of the condition resolves a firing, and the new condition fires separately', async () => {
    const { of, endpoint } = await withEndpoint();
    const { id } = await createAlert(of, { name: 'Changed', condition: ofDay(), webhook: endpoint.id });
    await spend(of, 2);
    await evaluate(stack, id);
    expect(await changeAlert(of, id, { condition: ofDay(2 * DOLLAR) })).toMatchObject({
      firing_since: null,
      value: null,
      revision: 2,
    });
    await evaluate(stack, id);
    expect(await changeAlert(of, id, { enabled: false })).toMatchObject({
      firing_since: null,
      enabled: false,
    });
    await spend(of, 9);
    await evaluate(stack, id);
    await quiet(stack);
    expect(seen(endpoint)).toEqual(['alert.fired', 'alert.fired', 'alert.resolved', 'alert.resolved']);
  });

  test('of the name alone keeps a firing', async () => {
    const { of } = await withEndpoint();
    const { id } = await createAlert(of, { condition: ofDay() });
    await spend(of, 2);
    await evaluate(stack, id);
    const fired = await getAlert(of, id);
    expect(await changeAlert(of, id, { name: 'New' })).toEqual({ ...fired, name: 'New', revision: 2 });
  });
});

describe('nothing is sent', () => {
  test('for an account that is suspended or deleted', async () => {
    const { of } = await withEndpoint();
    const { id } = await createAlert(of, { condition: ofDay() });
    await spend(of, 2);
    await stack.db.update(accounts).set({ suspendedAt: new Date() }).where(eq(accounts.id, of.account));
    await evaluate(stack, id);
    expect(await stack.db.$count(alertFirings, eq(alertFirings.alertId, id))).toBe(0);
    await stack.db.update(accounts).set({ suspendedAt: null }).where(eq(accounts.id, of.account));
    await evaluate(stack, id);
    expect(await firingsOf(of, id)).toHaveLength(1);
  });

  test('once an alert is deleted, and its history is deleted too', async () => {
    const { of, endpoint } = await withEndpoint();
    const { id } = await createAlert(of, { condition: ofDay(), webhook: endpoint.id });
    await spend(of, 2);
    expect((await send(of, { method: 'DELETE', path: `/v1/alerts/${id}` })).status).toBe(204);
    await evaluate(stack, id);
    await quiet(stack);
    expect(endpoint.upstream.seen).toEqual([]);
    refused(await send(of, { method: 'GET', path: `/v1/alerts/${id}/firings` }), 'not_found');
  });

  test('once its endpoint is deleted; the alert remains, and shows its firing', async () => {
    const { of, endpoint } = await withEndpoint();
    const { id } = await createAlert(of, { condition: ofDay(), webhook: endpoint.id });
    expect((await send(of, { method: 'DELETE', path: `/v1/webhooks/${endpoint.id}` })).status).toBe(204);
    await spend(of, 2);
    await evaluate(stack, id);
    expect(await getAlert(of, id)).toMatchObject({ webhook: null, firing_since: expect.any(Number) });
    expect(await firingsOf(of, id)).toMatchObject([{ delivery: null }]);
    refused(await send(of, { path: `/v1/alerts/${id}/test` }), 'invalid_request', 'id');
  });
});

test('an alert that cannot be evaluated is postponed, and other alerts are evaluated', async () => {
  const { of } = await withEndpoint();
  const broken = await createAlert(of, { condition: ofDay() });
  const { id } = await createAlert(of, { condition: ofDay() });
  await stack.db
    .update(alerts)
    .set({ condition: {} as never })
    .where(eq(alerts.id, broken.id));
  await spend(of, 2);
  await stack.db
    .update(alerts)
    .set({ dueAt: new Date(0) })
    .where(eq(alerts.id, broken.id));
  await evaluate(stack, id).catch(() => evaluate(stack, id));
  expect(await firingsOf(of, id)).toHaveLength(1);
});

test('a test message is sent to the endpoint at once, and does not change the state', async () => {
  const { of, endpoint } = await withEndpoint();
  const alert = await createAlert(of, { name: 'Tried', condition: ofDay(), webhook: endpoint.id });
  const sent = await send(of, { path: `/v1/alerts/${alert.id}/test` });
  expect([sent.status, JSON.parse(sent.text)]).toMatchObject([
    201,
    { type: 'alert.fired', status: 'pending' },
  ]);
  await arrived(endpoint, 1);
  expect(endpoint.events()).toMatchObject([{ type: 'alert.fired', data: { name: 'Tried', test: true } }]);
  expect((await deliveriesOf(of, endpoint))[0]).toMatchObject({ type: 'alert.fired' });
  expect(await firingsOf(of, alert.id)).toEqual([]);
});

test('a test message whose endpoint is deleted at the same moment gets 404 or 400', async () => {
  const { of, endpoint } = await withEndpoint();
  const alert = await createAlert(of, { condition: ofDay(), webhook: endpoint.id });
  const tested = await stack.db.transaction(async (tx) => {
    await tx.delete(webhooks).where(eq(webhooks.id, endpoint.id));
    const sent = send(of, { path: `/v1/alerts/${alert.id}/test` });
    await othersWait(stack, tx);
    return { sent };
  });
  const { status, text } = await tested.sent;
  expect([404, 400], text).toContain(status);
});

test.each([
  ['no condition', {}, 'condition'],
  ['two conditions', { condition: { ...ofDay(), errors: { percent: 5 } } }, 'condition'],
  ['an unknown window', { condition: { spend: { window: 'week', amount: 1 } } }, 'condition.spend.window'],
  ['an amount of 0', { condition: { spend: { window: 'day', amount: 0 } } }, 'condition.spend.amount'],
  [
    'a zone that is none',
    { condition: { spend: { window: 'day', amount: 1, time_zone: 'Mars' } } },
    'condition.spend.time_zone',
  ],
  [
    'a factor of 1',
    { condition: { spend_jump: { window: 'day', factor: 1, at_least: 1 } } },
    'condition.spend_jump.factor',
  ],
  ['101 percent', { condition: { errors: { percent: 101 } } }, 'condition.errors.percent'],
  ['too many minutes', { condition: { errors: { percent: 5, minutes: 61 } } }, 'condition.errors.minutes'],
  ['an unknown field', { condition: ofDay(), channel: '#ops' }, 'channel'],
])('an alert that has %s is refused, and the error names the field', async (_what, fields, param) => {
  refused(
    await send(stack, { path: '/v1/alerts', body: { name: 'a', ...fields } }),
    'invalid_request',
    param,
  );
});

test('an account has at most twenty alerts', async () => {
  const { of } = await withEndpoint();
  for (let i = 0; i < 20; i++) await createAlert(of, { condition: ofDay() });
  const message = refused(
    await send(of, { path: '/v1/alerts', body: { name: 'a', condition: ofDay() } }),
    'invalid_request',
  );
  expect(message).toContain('20');
  await stack.db.delete(webhooks).where(eq(webhooks.accountId, of.account));
});
