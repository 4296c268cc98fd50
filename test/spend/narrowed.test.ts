import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refOf, startSampler } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';

/** A microdollar a token; two for one that is written to the cache for an hour, a tenth for one that is read from it. */
const PRICE = { input: 1_000_000, cache_read: 100_000, cache_write: 2_000_000, output: 1_000_000 };
const OUTPUT = 300;
const PROMPT = 'word '.repeat(1_000);
const STATED = { input_tokens: 500, cache_creation_input_tokens: 100, cache_read_input_tokens: 400 };
const STATED_COST = 500 + 2 * 100 + 400 / 10;

let upstream: Upstream;
let stack: Stack;
/** Continues the streams that have stated their input: to their end, or to a reset. */
const waiting: ((end: 'whole' | 'broken') => void)[] = [];

const event = (of: { type: string }) => `event: ${of.type}\ndata: ${JSON.stringify(of)}\n\n`;

beforeAll(async () => {
  upstream = await startUpstream(async (seen, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const states = !seen.body.includes('says nothing');
    const usage = states ? { ...STATED, output_tokens: 1 } : { input_tokens: 0, output_tokens: 0 };
    response.write(event({ type: 'message_start', message: { model: 'm', usage } } as { type: string }));
    const end = await new Promise<'whole' | 'broken'>((resolve) => waiting.push(resolve));
    if (end === 'broken') {
      response.destroy();
      return;
    }
    response.write(
      event({ type: 'message_delta', usage: { ...STATED, output_tokens: 10 } } as { type: string }),
    );
    response.end(event({ type: 'message_stop' }));
  });
  const entry = { base_url: upstream.url, pricing: { m: PRICE, 'claude-opus-4-1': PRICE } };
  stack = await startStack({ providers: { anthropic: entry, proxy: { ...entry, extends: 'anthropic' } } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const body = (more: object = {}) => ({
  model: 'm',
  messages: [{ role: 'user', content: PROMPT }],
  max_tokens: OUTPUT,
  stream: true,
  ...more,
});
const issue = async (cost_limit: number, provider = 'anthropic') =>
  (await stack.issue({ provider, path: '/v1/messages', client_api_key: 'sk', cost_limit })).url;
const heldOf = (url: string, holds: (held: number) => boolean) =>
  eventually(async () => {
    const { held } = await statusOf(url);
    return holds(held) ? held : undefined;
  });
const next = () => eventually(async () => waiting.shift());

describe('a stream that states its input at its start', () => {
  test('holds the price of that input and of its output bound from then on, and is charged its usage', async () => {
    const url = await issue(15_000);
    const sampler = startSampler(stack.redis, await refOf(stack.db, url));
    const answer = post(url, body());
    const end = await next();
    await heldOf(url, (held) => held === STATED_COST + OUTPUT);
    end('whole');
    expect((await answer).status).toBe(200);
    await heldOf(url, (held) => held === 0);
    expect((await statusOf(url)).spent).toBe(STATED_COST + 10);
    await sampler.stop();
    expect(sampler.samples.over).toBe(0);
  });

  test('leaves room for another call that its bytes left no room for', async () => {
    const url = await issue(15_000);
    const first = post(url, body());
    const end = await next();
    await heldOf(url, (held) => held === STATED_COST + OUTPUT);
    const second = post(url, body());
    const endSecond = await next();
    end('whole');
    endSecond('whole');
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
  });

  test('is charged the narrowed hold when it breaks off', async () => {
    const url = await issue(15_000);
    const answer = post(url, body());
    const end = await next();
    await heldOf(url, (held) => held === STATED_COST + OUTPUT);
    end('broken');
    expect((await answer).broken).toBe(true);
    await heldOf(url, (held) => held === 0);
    expect((await statusOf(url)).spent).toBe(STATED_COST + OUTPUT);
  });
});

test.each([
  ['of a server that only speaks the API', 'proxy', 15_000, {}],
  ['that states no input', 'anthropic', 15_000, { system: 'says nothing' }],
  ['of a URL with far more money than its calls hold', 'anthropic', 100_000_000, {}],
  [
    'with a tool that the provider runs, whose answers are input, too',
    'anthropic',
    5_000_000,
    { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 1 }], model: 'claude-opus-4-1' },
  ],
])('a stream %s keeps its hold', async (_, provider, limit, more) => {
  const url = await issue(limit, provider);
  const answer = post(url, body(more));
  const end = await next();
  const before = await heldOf(url, (held) => held > 0);
  expect(before).toBeGreaterThan(PROMPT.length);
  end('broken');
  await answer;
  await heldOf(url, (held) => held === 0);
  expect((await statusOf(url)).spent).toBe(before);
});
