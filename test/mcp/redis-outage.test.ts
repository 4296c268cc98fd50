import { startEmbeddedRedis } from '@presign/local';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { buildRoad, type Road } from '../gateway/road.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { flush } from '../harness/stores.ts';
import {
  ask,
  at,
  type Heard,
  ledgerOf,
  outcomes,
  post,
  send,
  sumOf,
  tally,
  toolCall,
  urlOf,
} from './holder.ts';
import { openSession } from './listen.ts';
import { type McpUpstream, startMcpUpstream } from './upstream.ts';

let upstream: McpUpstream;
let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
let road: Road;
let stack: Stack;

beforeAll(async () => {
  upstream = await startMcpUpstream();
  redis = await startEmbeddedRedis();
  road = await buildRoad(redis.port);
  const url = new URL(redis.url);
  url.port = String(road.port);
  stack = await startStack({ providers: {}, gateways: 2, redisUrl: url.href });
});
afterAll(async () => {
  await road.mend();
  await stack.close();
  await road.cut();
  await redis.close();
  await upstream.close();
});
beforeEach(() => {
  upstream.behaves = undefined;
});

const issue = (policy: object = {}, server: object = {}) =>
  stack.issueMcp({ servers: [{ name: 'a', url: upstream.url, transport: 'http', ...server }], ...policy });
/** Waits until both gateways, and the issuer, have Redis again. */
const works = async () => {
  const url = urlOf(await issue(), 'a');
  for (const gateway of [0, 1]) {
    await eventually(async () =>
      (await post(at(stack, gateway, url), ask('ping'))).status === 200 ? true : undefined,
    );
  }
  await eventually(() =>
    stack.issuer.ledger.drainAll().then(
      () => true,
      () => undefined,
    ),
  );
};
const outage = (heard: Heard) =>
  expect([
    heard.status,
    heard.headers['retry-after'],
    heard.headers['content-type'],
    ...outcomes(heard),
  ]).toEqual([503, '1', 'application/json', 'limits_unavailable']);

test('while Redis is down no call reaches a server, and no refusal names a limit', async () => {
  const [known, fresh] = [await issue({ max_uses: 2 }), await issue({ max_uses: 2 })];
  const url = urlOf(known, 'a');
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  expect((await send(known.bundle_url, 'GET')).status).toBe(200);
  const before = upstream.arrived.length;
  await road.cut();
  for (const each of [url, urlOf(fresh, 'a'), at(stack, 1, url)]) {
    const heard = await post(each, toolCall('run', 'x'));
    outage(heard);
    expect(heard.messages[0]?.id).toBe('x');
    outage(await post(each, ask('tools/list')));
    outage(await send(each, 'GET', { accept: 'text/event-stream' }));
    outage(await send(each, 'DELETE'));
  }
  const batch = await post(url, [toolCall('run', 1), ask('ping', 2)]);
  expect([batch.status, ...outcomes(batch)]).toEqual([503, 'limits_unavailable', 'limits_unavailable']);
  expect((await send(known.bundle_url, 'GET')).status).toBe(503);
  expect(upstream.arrived).toHaveLength(before);
  await road.mend();
  await works();
  for (const answer of [known, fresh]) {
    const passed = [1, 2].map(() => post(urlOf(answer, 'a'), toolCall('run')));
    expect(tally(await Promise.all(passed)).ran).toBe(answer === known ? 1 : 2);
    expect((await sumOf(stack, answer)).uses).toBe(2);
  }
});

test('a charge whose reply was lost is refunded, and the call does not run', async () => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, ask('ping')))).toEqual(['ran']);
  const before = upstream.arrived.length;
  // A connection that the road does not cut.
  const direct = new Redis(redis.url);
  const charges = async () => (await direct.keys('presign:*:hold:*')).length;
  const counted = await charges();
  road.loseReplies();
  const asked = post(url, toolCall('run'));
  // Redis has the charge, and its reply is lost.
  await eventually(async () => (await charges()) > counted);
  direct.disconnect();
  await road.cut();
  outage(await asked);
  await road.mend();
  await works();
  const sum = await eventually(async () => {
    const each = await sumOf(stack, answer);
    return each.rows === 2 ? each : undefined;
  });
  expect(sum).toEqual({ rows: 2, uses: 0, cost: 0 });
  expect(upstream.ran.slice(before)).toEqual([]);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['uses_exhausted']);
});

test('an answer waits for its refund, and only briefly when Redis is down', async () => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, ask('ping')))).toEqual(['ran']);
  let answeredMs = Number.NaN;
  upstream.behaves = (_arrived, response) => {
    road.loseReplies();
    answeredMs = performance.now();
    response.writeHead(429).end('their words');
  };
  const heard = await post(url, toolCall('run'));
  // Redis has the refund, and its reply is lost: the gateway waits a second for it.
  expect(performance.now() - answeredMs).toBeGreaterThan(500);
  expect([heard.status, heard.text]).toEqual([429, 'their words']);
  upstream.behaves = undefined;
  await road.mend();
  await works();
  expect(await sumOf(stack, answer)).toEqual({ rows: 2, uses: 0, cost: 0 });
});

test('a refund that fails at first is made later, once', async () => {
  const answer = await issue({ max_uses: 1 });
  const url = urlOf(answer, 'a');
  expect(outcomes(await post(url, ask('ping')))).toEqual(['ran']);
  upstream.behaves = (_arrived, response) => {
    void road.cut().then(() => response.writeHead(429).end('their words'));
  };
  const heard = await post(url, toolCall('run'));
  expect([heard.status, heard.text]).toEqual([429, 'their words']);
  upstream.behaves = undefined;
  await road.mend();
  await works();
  await eventually(async () => ((await ledgerOf(stack, answer)).length === 2 ? true : undefined));
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  expect(await sumOf(stack, answer)).toEqual({ rows: 3, uses: 1, cost: 1_000 });
});

test('a session of the older transport survives an outage, and a limit is sent on its stream again', async () => {
  const answer = await issue({ max_uses: 1 }, { url: upstream.sseUrl, transport: 'sse' });
  const { stream, endpoint: elsewhere } = await openSession(stack, urlOf(answer, 'a'));
  const endpoint = at(stack, 0, elsewhere);
  await post(endpoint, toolCall('run', 'first'));
  await stream.reached(1);
  await road.cut();
  outage(await post(at(stack, 1, endpoint), toolCall('run', 'elsewhere')));
  // The gateway that holds the stream needs no Redis to pass the answer on.
  expect((await post(endpoint, toolCall('run', 'here'))).status).toBe(202);
  expect((await stream.reached(2))[1]).toMatchObject({
    id: 'here',
    error: { data: { code: 'limits_unavailable' } },
  });
  await road.mend();
  await works();
  await eventually(async () => {
    const { status } = await post(at(stack, 1, endpoint), toolCall('run', 'after'));
    return status === 202 && stream.messages().length > 2 ? true : undefined;
  });
  expect(stream.messages()[2]).toMatchObject({
    id: 'after',
    error: { data: { code: 'uses_exhausted', used: 1 } },
  });
  expect((await sumOf(stack, answer)).uses).toBe(1);
  stream.leave();
});

test('Redis without its data lets nothing exceed the limit in the ledger', async () => {
  const answer = await issue({ max_uses: 20, cost_limit: 20_000 });
  const calls = (count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, i) => post(at(stack, i % 2, urlOf(answer, 'a')), toolCall('run', i))),
    );
  const before = upstream.ran.length;
  expect(tally(await calls(12))).toEqual({ ran: 12 });
  expect((await sumOf(stack, answer)).uses).toBe(12);
  await flush(stack.redis);
  const seen = new Set<string>();
  await eventually(async () => {
    const counts = tally(await calls(30));
    for (const each of Object.keys(counts)) seen.add(each);
    return counts.uses_exhausted === 30 ? true : undefined;
  });
  // In between nothing was let through uncounted, and what was refused for the outage did not read like a limit.
  expect([...seen].filter((each) => !['ran', 'uses_exhausted', 'limits_unavailable'].includes(each))).toEqual(
    [],
  );
  expect(upstream.ran.length - before).toBe(20);
  expect(await sumOf(stack, answer)).toEqual({ rows: 20, uses: 20, cost: 20_000 });
});
