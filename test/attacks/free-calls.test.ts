import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { ask, outcomes, post, send, sumOf, tally, toolCall, urlOf } from '../mcp/holder.ts';
import { type Listener, listen } from '../mcp/listen.ts';
import { type McpUpstream, startMcpUpstream } from '../mcp/upstream.ts';

const STREAMS = 64;
const FREE_PER_MINUTE = 600;

let upstream: McpUpstream;
let stack: Stack;
let aheadMs = 0;
const open: Listener[] = [];
beforeAll(async () => {
  stack = await startStack({ providers: {}, gateway: { now: () => startMs + aheadMs } });
});
afterAll(() => stack.close());
beforeEach(async () => {
  aheadMs = 0;
  startMs = Date.now();
  upstream = await startMcpUpstream();
});
afterEach(async () => {
  for (const each of open.splice(0)) each.leave();
  await upstream.close();
});
/** The gateways' clock stands within a test, so that none depends on how fast it runs. A token of a minute later would be of the future. */
let startMs = Date.now();

/** A URL that has no uses left. */
async function spent(policy: object = {}, transport: 'http' | 'sse' = 'http') {
  const url = transport === 'http' ? upstream.url : upstream.sseUrl;
  const answer = await stack.issueMcp({ servers: [{ name: 'a', url, transport }], max_uses: 1, ...policy });
  if (transport === 'http') await post(urlOf(answer, 'a'), toolCall('run'));
  return { answer, url: urlOf(answer, 'a') };
}

test('a spent URL reaches its server with free methods only as often as its rate limit allows', async () => {
  const { answer, url } = await spent({ calls_per_minute: 20 });
  const before = upstream.arrived.length;
  const heard = await Promise.all(Array.from({ length: 100 }, (_, i) => post(url, ask('tools/list', i))));
  const { ran = 0, rate_limited = 0 } = tally(heard);
  expect(ran + rate_limited).toBe(100);
  // One of the 20 was the call that spent the URL. Redis refills one in 3 seconds.
  expect(ran).toBeGreaterThanOrEqual(19);
  expect(ran).toBeLessThan(40);
  expect(upstream.arrived.length - before).toBe(ran);
  expect(await sumOf(stack, answer)).toMatchObject({ rows: 1, uses: 1 });
});

test.each([
  ['requests', ask('tools/list')],
  ['notifications', { jsonrpc: '2.0', method: 'notifications/progress' }],
])(`without a rate limit a gateway passes ${FREE_PER_MINUTE} free %s a minute`, async (_what, message) => {
  const { url } = await spent();
  const before = upstream.arrived.length;
  const batch = Array(100).fill(message);
  for (let i = 0; i < FREE_PER_MINUTE / 100; i++) expect((await post(url, batch)).status).toBeLessThan(300);
  expect(upstream.arrived.length - before).toBe(FREE_PER_MINUTE / 100);
  const over = await post(url, batch);
  expect(new Set(outcomes(over))).toEqual(new Set(['rate_limited']));
  expect(over.headers['retry-after']).toBe('10');
  expect(upstream.arrived.length - before).toBe(FREE_PER_MINUTE / 100);
  aheadMs = 10_000;
  expect((await post(url, batch)).status).toBeLessThan(300);
  expect(outcomes(await post(url, message))).toEqual(['rate_limited']);
});

test.each(['http', 'sse'] as const)(
  `a spent URL keeps at most ${STREAMS} streams of %s open at a gateway`,
  async (transport) => {
    const { url } = await spent({}, transport);
    for (let i = 0; i < STREAMS; i++) open.push(await listen(url));
    await eventually(async () => (upstream.streams.size === STREAMS ? true : undefined));
    const refused = await send(url, 'GET', { accept: 'text/event-stream' });
    expect([refused.status, ...outcomes(refused)]).toEqual([429, 'rate_limited']);
    expect(upstream.streams.size).toBe(STREAMS);
    open.pop()?.leave();
    const again = await eventually(async () => {
      const each = await listen(url);
      if (each.status === 200) return each;
      each.leave();
      return undefined;
    });
    open.push(again);
  },
);

test('open subscriptions count as streams, and calls that cost a use do not', async () => {
  const { url } = await spent({ max_uses: 200 });
  upstream.behaves = ({ body }, response) => {
    if (body.includes('tools/call')) return false;
    return response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  };
  const leaving = new AbortController();
  const asked = Array.from({ length: STREAMS }, (_, i) =>
    fetch(url, {
      method: 'POST',
      body: JSON.stringify(ask('subscriptions/listen', i)),
      signal: leaving.signal,
    }),
  );
  await Promise.all(asked);
  expect(outcomes(await post(url, ask('subscriptions/listen', 'more')))).toEqual(['rate_limited']);
  expect(outcomes(await post(url, toolCall('run')))).toEqual(['ran']);
  leaving.abort();
});

test.each<[string, () => Promise<string>]>([
  ['the document of a bundle', async () => (await spent()).answer.bundle_url],
  [
    'the status of an LLM URL',
    async () => {
      const { url } = await stack.issue({ provider: 'openai', path: '/v1/models', client_api_key: 'sk' });
      return url.replace('/v1/models', '');
    },
  ],
])(`%s is read at most ${FREE_PER_MINUTE} times a minute at a gateway`, async (_what, urlOfOne) => {
  const [url, other] = [await urlOfOne(), await urlOfOne()];
  // A few at a time, because only so many may be open at once.
  for (let i = 0; i < FREE_PER_MINUTE / 20; i++) {
    const statuses = await Promise.all(
      Array.from({ length: 20 }, async () => (await send(url, 'GET')).status),
    );
    expect(new Set(statuses)).toEqual(new Set([200]));
  }
  const over = await send(url, 'GET');
  expect([over.status, ...outcomesOf(over.text)]).toEqual([429, 'rate_limited']);
  expect(over.headers['retry-after']).toBe('1');
  expect((await send(other, 'GET')).status).toBe(200);
  aheadMs = 1_000;
  expect((await send(url, 'GET')).status).toBe(200);
});

const outcomesOf = (text: string) => [(JSON.parse(text) as { error?: { code: string } }).error?.code];
