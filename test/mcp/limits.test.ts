import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type GatewayProcess, startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { send } from '../issuer/ask.ts';
import { ask, at, ledgerOf, outcomes, post, sumOf, tally, toolCall, urlOf } from './holder.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let other: McpUpstream;
let stack: Stack;
let processes: GatewayProcess[];

beforeAll(async () => {
  [upstream, other] = await Promise.all([startMcpUpstream(), startMcpUpstream()]);
  stack = await startStack({ providers: {}, gateways: 2 });
  processes = await Promise.all([startGatewayProcess(stack), startGatewayProcess(stack)]);
});
afterAll(async () => {
  await Promise.all(processes.map((each) => each.kill()));
  await stack.close();
  await Promise.all([upstream.close(), other.close()]);
});

/** Uses of both servers so far, so that each test counts its own. */
let before = { upstream: 0, other: 0 };
beforeEach(() => {
  upstream.form = 'json';
  before = { upstream: upstream.ran.length, other: other.ran.length };
});
const ran = () => upstream.ran.slice(before.upstream);

const issue = (policy: object, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });

/** Calls all at once, in turn over gateways. */
const many = (url: string, gateways: readonly string[], calls: readonly object[]) =>
  Promise.all(calls.map((call, i) => post(at(stack, gateways[i % gateways.length] ?? '', url), call)));
const calls = (count: number, name = 'run') =>
  Array.from({ length: count }, (_, i) => toolCall(name, `call ${i}`));

describe.each([
  ['two gateways of one process', () => stack.gatewayUrls],
  ['two gateway processes', () => processes.map((each) => each.url)],
])('over %s', (_what, gateways) => {
  test.each(['json', 'sse'] as const)(
    'exactly 3 of 50 parallel calls run on max_uses = 3 (%s)',
    async (form) => {
      upstream.form = form;
      const answer = await issue({ max_uses: 3 });
      // Opens the grant in Redis, where processes without a database find it; free.
      expect((await post(urlOf(answer, 'a'), ask('initialize'))).status).toBe(200);
      const heard = await many(urlOf(answer, 'a'), gateways(), calls(50));
      expect(tally(heard)).toEqual({ ran: 3, uses_exhausted: 47 });
      expect(ran()).toHaveLength(3);
      for (const [i, { status, messages, headers }] of heard.entries()) {
        expect([status, messages.length, messages[0]?.id]).toEqual([200, 1, `call ${i}`]);
        if (!messages[0]?.error) continue;
        expect(headers['content-type']).toBe('application/json');
        expect(messages[0].error.data).toMatchObject({ code: 'uses_exhausted', limit: 3, used: 3 });
      }
      expect(await sumOf(stack, answer)).toEqual({ rows: 3, uses: 3, cost: 3_000 });
    },
  );

  test('spending never exceeds cost_limit, with a price for each tool', async () => {
    const pricing = { default: 10_000, tools: { cheap: 40, dear: 900 } };
    const answer = await issue({ cost_limit: 1_000 }, { pricing });
    await post(urlOf(answer, 'a'), ask('initialize'));
    const heard = await many(urlOf(answer, 'a'), gateways(), [
      ...calls(20, 'dear'),
      ...calls(30, 'cheap'),
      ...calls(10, 'unpriced'),
    ]);
    const cost = ran().reduce((sum, name) => sum + (name === 'dear' ? 900 : 40), 0);
    expect(cost).toBeLessThanOrEqual(1_000);
    // Whatever came first: a further cheap call would not have fitted.
    expect(cost).toBeGreaterThan(960);
    expect(ran()).not.toContain('unpriced');
    const { ran: passed = 0, ...refused } = tally(heard);
    expect(passed).toBe(ran().length);
    expect(Object.keys(refused).filter((code) => !code.startsWith('cost_limit_'))).toEqual([]);
    expect(await sumOf(stack, answer)).toEqual({ rows: passed, uses: passed, cost });
    const [told] = (await post(urlOf(answer, 'a'), toolCall('dear', 7))).messages;
    expect(told).toMatchObject({ id: 7, error: { data: { limit: 1_000, used: cost } } });
  });
});

test('a cost_limit of exactly two calls lets two run', async () => {
  const answer = await issue({ cost_limit: 1_800 }, { pricing: { default: 900 } });
  const heard = await many(urlOf(answer, 'a'), stack.gatewayUrls, calls(50));
  expect(tally(heard)).toEqual({ ran: 2, cost_limit_reached: 48 });
  expect(ran()).toHaveLength(2);
});

test('with a cost_limit of 0 only free messages and tools pass', async () => {
  const answer = await issue({ cost_limit: 0 }, { pricing: { default: 1, tools: { gift: 0 } } });
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('run')))).toEqual(['cost_limit_reached']);
  expect(outcomes(await post(urlOf(answer, 'a'), toolCall('gift')))).toEqual(['ran']);
  expect(outcomes(await post(urlOf(answer, 'a'), ask('tools/list')))).toEqual(['ran']);
  expect(ran()).toEqual(['gift']);
});

test.each([
  [true, 'This call costs 1000 microdollars ($0.001), and 500 microdollars ($0.0005) are left.'],
  [false, 'A budget that this URL shares with others does not cover this call.'],
])(
  'a refusal for money states the amount in microdollars and dollars, if the holder may see the budget (%s)',
  async (visible, message) => {
    const user = `user-${visible}`;
    const body = { scope: { external_user: user }, cost_limit: 500, visible };
    expect((await send(stack, { path: '/v1/budgets', body })).status).toBe(201);
    const own = await issue({ cost_limit: 500 });
    const shared = await issue({ external_user: user });
    for (const answer of visible ? [own, shared] : [shared]) {
      const [sent] = (await post(urlOf(answer, 'a'), toolCall('run'))).messages;
      expect(sent?.error).toMatchObject({
        message: expect.stringContaining(message),
        data: { code: 'cost_limit_too_low', needed: 1000 },
      });
    }
    expect(ran()).toEqual([]);
  },
);

test('a batch passes whole or is refused whole, and each of its requests gets an answer', async () => {
  const answer = await issue({ max_uses: 5 });
  const url = urlOf(answer, 'a');
  const batch = [toolCall('run', 1), ask('tools/list', 2), toolCall('run', 'c')];
  const notice = { jsonrpc: '2.0', method: 'notifications/initialized' };
  expect(outcomes(await post(url, [...batch, notice]))).toEqual(['ran', 'ran', 'ran']);
  expect(outcomes(await post(url, batch))).toEqual(['ran', 'ran', 'ran']);
  const refused = await post(url, [...batch, notice]);
  expect(refused.status).toBe(200);
  expect(refused.messages.map(({ id, error }) => [id, error?.data?.used])).toEqual([
    [1, 4],
    [2, 4],
    ['c', 4],
  ]);
  expect(ran()).toHaveLength(4);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 3, uses: 5, cost: 5_000 });
});

test('the refusal of a batch states the uses that it needs and those that are left', async () => {
  const url = urlOf(await issue({ max_uses: 3 }), 'a');
  await post(url, [toolCall('run', 1), toolCall('run', 2)]);
  const { messages } = await post(url, [toolCall('run', 1), ask('tools/list', 2), toolCall('run', 3)]);
  const message =
    'This batch needs 2 uses, and 1 of 3 is left. Send fewer calls at once, or issue a new URL.';
  const data = { code: 'uses_exhausted', limit: 3, used: 2, remaining: 1, needed: 2 };
  expect(messages).toMatchObject([1, 2, 3].map((id) => ({ id, error: { message, data } })));
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
});

test('parallel batches pass whole or not at all', async () => {
  const answer = await issue({ max_uses: 7 });
  const batch = [toolCall('run', 1), toolCall('run', 2)];
  const heard = await many(urlOf(answer, 'a'), stack.gatewayUrls, Array(20).fill(batch));
  expect(tally(heard)).toEqual({ ran: 6, uses_exhausted: 34 });
  expect(ran()).toHaveLength(6);
});

test('messages without work are free, even when all uses are spent', async () => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  for (const method of ['initialize', 'ping', 'tools/list', 'resources/templates/list', 'logging/setLevel']) {
    expect([method, ...outcomes(await post(url, ask(method)))]).toEqual([method, 'ran']);
  }
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
  expect((await post(url, cancelled)).status).toBe(202);
  expect((await post(url, { jsonrpc: '2.0', id: 1, result: {} })).status).toBe(400);
  for (const method of ['resources/read', 'prompts/get', 'never/heard/of']) {
    expect([method, ...outcomes(await post(url, ask(method)))]).toEqual([method, 'uses_exhausted']);
  }
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['uses_exhausted']);
  // A server may run what asks for no answer, too.
  const before = upstream.arrived.length;
  const silent = await post(url, { jsonrpc: '2.0', method: 'tools/call', params: { name: 'run' } });
  expect(silent.status).toBe(403);
  expect(upstream.arrived).toHaveLength(before);
  expect((await ledgerOf(stack, answer)).map((row) => [row.uses, row.tool])).toEqual([[1, 'run']]);
});

test('the servers of a bundle share one budget', async () => {
  const answer = await stack.issueMcp({
    servers: [
      { name: 'a', url: upstream.url, transport: 'http', pricing: { default: 100 } },
      { name: 'b', url: other.url, transport: 'http', pricing: { default: 250 } },
    ],
    ...{ max_uses: 4, cost_limit: 5_000 },
  });
  const heard = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      post(at(stack, i % 2, urlOf(answer, i % 3 === 0 ? 'a' : 'b')), toolCall('run', i)),
    ),
  );
  expect(tally(heard)).toEqual({ ran: 4, uses_exhausted: 46 });
  const [ofA, ofB] = [ran().length, other.ran.length - before.other];
  expect(ofA + ofB).toBe(4);
  const rows = await ledgerOf(stack, answer);
  expect(rows.filter((row) => row.server === 'a')).toHaveLength(ofA);
  expect(await sumOf(stack, answer)).toEqual({ rows: 4, uses: 4, cost: ofA * 100 + ofB * 250 });
});

test('a forbidden tool does not run and costs nothing, alone or in a batch', async () => {
  const answer = await issue({ max_uses: 1 }, { tools: ['run', 'look'] });
  const url = urlOf(answer, 'a');
  const before = upstream.arrived.length;
  const refused = await post(url, toolCall('delete', 'x'));
  expect(refused.status).toBe(200);
  expect(refused.messages).toMatchObject([
    { id: 'x', error: { code: -32602, data: { code: 'tool_not_allowed', allowed: ['run', 'look'] } } },
  ]);
  expect(outcomes(await post(url, [toolCall('run', 1), toolCall('delete', 2)]))).toEqual([
    'tool_not_allowed',
    'tool_not_allowed',
  ]);
  expect(upstream.arrived).toHaveLength(before);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  expect(ran()).toEqual(['run']);
});
