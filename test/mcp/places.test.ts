import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { grants } from '@presign/schema/tables';
import { eq } from 'drizzle-orm';
import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, at, grantIn, outcomes, post, send, sumOf, tokenIn, toolCall, urlOf } from './holder.ts';
import { type Listener, listen, openSession } from './listen.ts';
import { eventOf, type McpUpstream, startMcpUpstream } from './upstream.ts';

const STREAMS = 64;
const EXPIRES_MS = 5_000;

let upstream: McpUpstream;
let stack: Stack;
let aheadMs = 0;
let dispatcher: Agent;
/** Calls of the tool `kept` that the server has and has not answered. */
let kept: ServerResponse[] = [];
const open: Listener[] = [];

beforeAll(async () => {
  stack = await startStack({ providers: {}, gateways: 2, gateway: { now: () => Date.now() + aheadMs } });
});
afterAll(() => stack.close());
beforeEach(async () => {
  aheadMs = 0;
  kept = [];
  dispatcher = new Agent({ connections: 200, bodyTimeout: 0 });
  upstream = await startMcpUpstream();
  upstream.behaves = ({ body }, response) => {
    if (!/"(kept|subscriptions\/listen)"/.test(body)) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    kept.push(response);
    return true;
  };
});
afterEach(async () => {
  for (const each of open.splice(0)) each.leave();
  await dispatcher.destroy();
  await upstream.close();
});

const issue = async (policy: object = {}) => {
  const servers = [{ name: 'a', url: upstream.url, transport: 'http' }];
  const answer = await stack.issueMcp({ servers, concurrent_calls: 1, max_uses: 500, ...policy });
  return { answer, url: urlOf(answer, 'a') };
};
const sessionOf = async (url: string) => {
  const { headers } = await post(url, ask('tools/list'));
  return { 'mcp-session-id': String(headers['mcp-session-id']) };
};
const cancel = (requestId: string | number) => ({
  ...{ jsonrpc: '2.0', method: 'notifications/cancelled' },
  params: { requestId },
});
const answerTo = (id: string | number) => eventOf({ jsonrpc: '2.0', id, result: { content: [] } });

/** A POST whose answer does not end, once its server has it. */
async function begin(url: string, message: object, headers: Record<string, string> = {}) {
  const before = kept.length;
  let text = '';
  let isOver = false;
  const body = JSON.stringify(message);
  void request(url, { method: 'POST', body, dispatcher, headers }).then(
    async (heard) => {
      heard.body.on('data', (chunk: Buffer) => {
        text += chunk;
      });
      heard.body.on('close', () => {
        isOver = true;
      });
    },
    () => {},
  );
  const response = await eventually(async () => kept[before]);
  return { response, text: () => text, isOver: () => isOver };
}
const runs = (url: string) => async () => outcomes(await post(url, toolCall('run', 'next')))[0] === 'ran';
const refused = async (url: string) => outcomes(await post(url, toolCall('run', 'next')))[0];
/** Calls that have a place, by Redis. */
async function placed(url: string) {
  const { id, partition } = grantIn(tokenIn(url));
  const [grant] = await stack.db.select().from(grants).where(eq(grants.id, id));
  return Number(await stack.redis.hget(keys.budget(partition, grant?.budgetId ?? ''), 'active'));
}

const listening = ask('subscriptions/listen', 'l');

test.each<[string, (url: string, other: string) => Promise<unknown>]>([
  [
    'a call whose stream stays open after its answer',
    async (url) => (await begin(url, toolCall('kept'))).response.write(answerTo(1)),
  ],
  [
    'a batch whose stream stays open after its answers',
    async (url) => (await begin(url, [toolCall('kept'), cancel(7)])).response.write(answerTo(1)),
  ],
  ['a batch of a call and its cancellation', (url) => begin(url, [toolCall('kept'), cancel(1)])],
  [
    'a call that its session cancels',
    async (url) => {
      const session = await sessionOf(url);
      await begin(url, toolCall('kept'), session);
      await post(url, cancel(1), session);
    },
  ],
  [
    'a call that is cancelled without a session',
    async (url) => {
      await begin(url, toolCall('kept'));
      await post(url, cancel(1));
    },
  ],
  [
    'a call that its session cancels at another gateway',
    async (url, other) => {
      const session = await sessionOf(url);
      await begin(url, toolCall('kept'), session);
      await post(other, cancel(1), session);
    },
  ],
  [
    'a call that is cancelled at another gateway without a session',
    async (url, other) => {
      // From its first call on, a gateway hears of cancellations.
      await sessionOf(url);
      await begin(url, toolCall('kept'));
      await post(other, cancel(1));
    },
  ],
  ['a subscription', (url) => begin(url, listening)],
  [
    'a batch of a subscription and a call that is answered',
    async (url) => (await begin(url, [listening, toolCall('kept')])).response.write(answerTo(1)),
  ],
  [
    'a call whose answer has its id as a string',
    async (url) => (await begin(url, toolCall('kept'))).response.write(answerTo('1')),
  ],
])('%s has no place among the calls at once', async (_what, leaveOpen) => {
  const { answer, url } = await issue();
  await leaveOpen(url, at(stack, 1, url));
  await eventually(runs(url));
  expect(kept.at(-1)?.destroyed).toBe(false);
  await eventually(async () => (await placed(url)) === 0);
  // Nothing is given back of what ran.
  const { uses } = await sumOf(stack, answer);
  expect(uses).toBe(upstream.arrived.filter(({ body }) => body.includes('tools/call')).length);
});

test.each<[string, number, (url: string) => Promise<unknown>]>([
  ['that waits', 1, (url) => begin(url, toolCall('kept'))],
  [
    'of a batch, of which another is answered',
    2,
    async (url) => (await begin(url, [toolCall('kept', 1), toolCall('kept', 2)])).response.write(answerTo(1)),
  ],
  [
    'with the id of another that is answered',
    2,
    async (url) => (await begin(url, [toolCall('kept', 1), toolCall('kept', 1)])).response.write(answerTo(1)),
  ],
  [
    'without an id',
    1,
    (url) => begin(url, { jsonrpc: '2.0', method: 'tools/call', params: { name: 'kept' } }),
  ],
  [
    'whose cancellation names another id',
    1,
    async (url) => {
      const session = await sessionOf(url);
      await begin(url, toolCall('kept'), session);
      await post(url, cancel('1'), session);
    },
  ],
  [
    'that another session cancels',
    1,
    async (url) => {
      await begin(url, toolCall('kept'), await sessionOf(url));
      await post(url, cancel(1));
    },
  ],
  [
    'whose cancellation the server refuses',
    1,
    async (url) => {
      const session = await sessionOf(url);
      await begin(url, toolCall('kept'), session);
      upstream.behaves = ({ body }, response) =>
        body.includes('cancelled') ? response.writeHead(400).end() : false;
      await post(url, cancel(1), session);
    },
  ],
])('a call %s keeps its place until its POST ends, and frees it once', async (_what, calls, start) => {
  const { url } = await issue({ concurrent_calls: calls });
  await start(url);
  await sleep(300);
  expect(await refused(url)).toBe('concurrency_limited');
  expect(await placed(url)).toBe(calls);
  kept[0]?.end();
  await eventually(runs(url));
  await eventually(async () => (await placed(url)) === 0);
});

test('a place is freed once, even if the stream of an answered call ends later', async () => {
  const { url } = await issue();
  const first = await begin(url, toolCall('kept'));
  first.response.write(answerTo(1));
  await eventually(runs(url));
  await eventually(async () => (await placed(url)) === 0);
  const second = await begin(url, toolCall('kept', 2));
  first.response.end();
  await eventually(async () => first.isOver());
  await sleep(200);
  expect([await refused(url), await placed(url)]).toEqual(['concurrency_limited', 1]);
  second.response.end();
  await eventually(runs(url));
});

test.each([
  ['a stream', true],
  ['JSON', false],
])('a cancelled call whose server answers with %s ends some seconds later', async (_form, isStream) => {
  const { url } = await issue();
  const session = await sessionOf(url);
  if (!isStream)
    upstream.behaves = ({ body }, response) => {
      if (!body.includes('"kept"')) return false;
      kept.push(response);
      return true;
    };
  const call = await begin(url, toolCall('kept'), session);
  await post(url, cancel(1), session);
  await eventually(async () => call.isOver(), 15_000);
  expect(call.response.destroyed).toBe(true);
  // Its client wants no answer to it. Only a POST without an answer must say something.
  expect(call.text().includes('"error"')).toBe(!isStream);
});

test('a cancelled call without a session continues, because another client may have cancelled a call with the same id', async () => {
  const { url } = await issue({ concurrent_calls: 2 });
  const one = await begin(url, toolCall('kept'));
  await post(url, cancel(1));
  await eventually(async () => (await placed(url)) === 0);
  await sleep(6_000);
  expect(one.isOver()).toBe(false);
  one.response.end(answerTo(1));
  await eventually(async () => one.isOver());
  expect(one.text()).toContain('"result"');
  // If two are open, it is not known which one is meant.
  const two = [await begin(url, toolCall('kept')), await begin(url, toolCall('kept'))];
  await post(url, cancel(1));
  await sleep(300);
  expect(await placed(url)).toBe(2);
  for (const { response } of two) response.end();
});

test(`with ${STREAMS} answered lists whose streams stay open, the oldest ends for another stream or free request`, async () => {
  const { url } = await issue({ concurrent_calls: 2 });
  upstream.behaves = ({ body }, response) => {
    if (!body.includes('tools/list')) return false;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(answerTo((JSON.parse(body) as { id: number }).id));
    kept.push(response);
    return true;
  };
  const lists: Awaited<ReturnType<typeof begin>>[] = [];
  const list = async () => {
    const each = await begin(url, ask('tools/list', lists.length));
    lists.push(each);
    await eventually(async () => each.text().includes('"result"') && (await placed(url)) === 0);
  };
  for (let i = 0; i < STREAMS; i++) await list();
  expect(lists.some((each) => each.isOver())).toBe(false);
  await list();
  open.push(await listen(url));
  expect(open[0]?.status).toBe(200);
  await eventually(async () => lists[1]?.isOver());
  expect(lists.map((each) => each.isOver()).indexOf(false)).toBe(2);
  // A call has an end of its own, and its open stream then takes the place of another.
  const call = await begin(url, { ...ask('tools/list', 'x') });
  await eventually(async () => lists[2]?.isOver());
  expect(call.isOver()).toBe(false);
});

test(`an answered call whose stream stays open counts as one of ${STREAMS}, and ends if they all wait`, async () => {
  const { url } = await issue({ concurrent_calls: 2 });
  for (let i = 0; i < STREAMS - 1; i++) open.push(await listen(url));
  const calls = [await begin(url, toolCall('kept', 1)), await begin(url, toolCall('kept', 2))];
  calls[0]?.response.write(answerTo(1));
  await eventually(async () => (await placed(url)) === 1);
  calls[1]?.response.write(answerTo(2));
  await eventually(async () => calls[0]?.isOver());
  expect(calls[1]?.isOver()).toBe(false);
  open.push(await listen(url));
  await eventually(async () => calls[1]?.isOver());
  expect(calls.map((each) => each.text().includes('"result"'))).toEqual([true, true]);
  expect((await send(url, 'GET', { accept: 'text/event-stream' })).status).toBe(429);
});

test(`a subscription in a batch with a call counts as one of ${STREAMS} streams`, async () => {
  const { url } = await issue({ concurrent_calls: 2 });
  const batch = [listening, toolCall('kept')];
  const { response, isOver } = await begin(url, batch);
  response.write(answerTo(1));
  await eventually(async () => (await placed(url)) === 0);
  for (let i = 1; i < STREAMS; i++) open.push(await listen(url));
  expect((await send(url, 'GET', { accept: 'text/event-stream' })).status).toBe(429);
  expect(outcomes(await post(url, batch))).toEqual(['rate_limited', 'rate_limited']);
  expect(isOver()).toBe(false);
});

test("an answer whose id is the request's id as a string is followed by an error, for clients that still wait", async () => {
  const { url } = await issue();
  const call = await begin(url, toolCall('kept', 1));
  call.response.end(answerTo('1'));
  await eventually(async () => call.isOver());
  expect(call.text()).toMatch(/"id":"1","result".*"id":1,"error"/s);
});

test('at expires_at an idle stream ends, and a stream with a waiting request does not', async () => {
  const { url } = await issue({ concurrent_calls: 2 });
  aheadMs = grantIn(tokenIn(url)).expiresAtMs - Date.now() - EXPIRES_MS;
  const [answered, waiting] = [await begin(url, toolCall('kept', 1)), await begin(url, toolCall('kept', 2))];
  answered.response.write(answerTo(1));
  await eventually(async () => answered.text().includes('"result"'));
  await eventually(async () => answered.isOver(), 15_000);
  expect(answered.text()).not.toContain('"error"');
  expect(waiting.isOver()).toBe(false);
  waiting.response.write(answerTo(2));
  await eventually(async () => waiting.isOver());
  expect(waiting.text()).toContain('"result"');
});

test('a stream of the older transport with a cancelled call ends at expires_at', async () => {
  const servers = [{ name: 'a', url: upstream.sseUrl, transport: 'sse' }];
  const url = urlOf(await stack.issueMcp({ servers }), 'a');
  aheadMs = grantIn(tokenIn(url)).expiresAtMs - Date.now() - EXPIRES_MS;
  upstream.behaves = ({ method }, response) =>
    method === 'POST' ? response.writeHead(202).end('Accepted') : false;
  const { stream, endpoint } = await openSession(stack, url);
  await post(endpoint, toolCall('slow', 1));
  await post(at(stack, 0, endpoint), cancel(1));
  expect(await stream.over).toBe('ended');
  expect(stream.text()).not.toContain('"error"');
});
