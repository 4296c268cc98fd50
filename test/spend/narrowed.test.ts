import { BUILT_IN_PROVIDERS } from '@presign/providers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refOf, startSampler } from '../chaos/sample.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';

/** A microdollar a token; two for one that is written to the cache for an hour, a tenth for one that is read from it. */
const PRICE = { input: 1_000_000, cache_read: 100_000, cache_write: 2_000_000, output: 1_000_000 };
const OUTPUT = 300;
const PROMPT = 'word '.repeat(1_000);
const STATED = { input_tokens: 500, cache_creation_input_tokens: 100, cache_read_input_tokens: 400 };
const STATED_COST = 500 + 2 * 100 + 400 / 10;

/** The server that the test takes for Anthropic's own, and another one. */
let vendor: Upstream;
let other: Upstream;
let vendorUrl: string | undefined;
let stack: Stack;
/** The address of a gateway whose `anthropic` is the other server. */
let elsewhere: string;
/** Continues the streams that have stated their input: to their end, or to a reset. */
const waiting: ((end: 'whole' | 'broken') => void)[] = [];

const event = (of: { type: string }) => `event: ${of.type}\ndata: ${JSON.stringify(of)}\n\n`;

const answer: Answer = async (seen, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const placeholder = /says (\d+) first/.exec(String(seen.body))?.[1];
  const first = placeholder === undefined ? STATED : { input_tokens: Number(placeholder) };
  const message = { model: 'm', usage: { ...first, output_tokens: 1 } };
  response.write(event({ type: 'message_start', message } as { type: string }));
  const end = await new Promise<'whole' | 'broken'>((resolve) => waiting.push(resolve));
  if (end === 'broken') {
    response.destroy();
    return;
  }
  response.write(
    event({ type: 'message_delta', usage: { ...STATED, output_tokens: 10 } } as { type: string }),
  );
  response.end(event({ type: 'message_stop' }));
};

beforeAll(async () => {
  [vendor, other] = await Promise.all([startUpstream(answer), startUpstream(answer)]);
  const pricing = { m: PRICE, 'claude-opus-4-1': PRICE };
  const at = (base_url: string) => ({
    anthropic: { base_url, pricing },
    proxy: { base_url, pricing, extends: 'anthropic' },
  });
  const anthropic = BUILT_IN_PROVIDERS.get('anthropic');
  vendorUrl = anthropic?.baseUrl;
  if (anthropic) anthropic.baseUrl = vendor.url;
  stack = await startStack({ providers: at(vendor.url) });
  elsewhere = await stack.addGateway({ providersFile: JSON.stringify(at(other.url)) });
});
afterAll(async () => {
  await stack.close();
  await Promise.all([vendor.close(), other.close()]);
  const anthropic = BUILT_IN_PROVIDERS.get('anthropic');
  if (anthropic) anthropic.baseUrl = vendorUrl;
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
  test('lowers its hold to the price of that input and of its output bound, and is charged its usage', async () => {
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

  test('leaves room for a call that did not fit before', async () => {
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
});

test.each([
  ['of a URL with far more money than its calls hold', 100_000_000, {}],
  [
    'with a tool that the provider runs, whose answers are input, too',
    5_000_000,
    { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch', max_uses: 1 }], model: 'claude-opus-4-1' },
  ],
])('a stream %s keeps its hold', async (_, limit, more) => {
  const url = await issue(limit);
  const answer = post(url, body(more));
  const end = await next();
  const before = await heldOf(url, (held) => held > 0);
  expect(before).toBeGreaterThan(PROMPT.length);
  end('broken');
  await answer;
  await heldOf(url, (held) => held === 0);
  expect((await statusOf(url)).spent).toBe(before);
});

/** By the prompt's 5,000 characters, the least input that can be true is 20 tokens. */
const STATEMENTS = [
  ['0', { system: 'says 0 first' }],
  ['1', { system: 'says 1 first' }],
  ['fewer tokens than its text can have', { system: 'says 19 first' }],
  ['the input', {}],
] as const;

const SERVERS = [
  ['the vendor itself', 'anthropic', () => stack.gatewayUrls[0]],
  ['the vendor at an address of the operator', 'anthropic', () => elsewhere],
  ['a server that extends the vendor', 'proxy', () => stack.gatewayUrls[0]],
] as const;

const STREAMS = SERVERS.flatMap(([server, provider, gateway]) =>
  STATEMENTS.map(([first, more]) => ({ server, provider, gateway, first, more })),
);

describe.each(STREAMS)(
  'a stream of $server that states $first first',
  ({ server, provider, gateway, first, more }) => {
    const isNarrowed = server === 'the vendor itself' && first === 'the input';
    const start = async () => {
      const url = await issue(15_000, provider);
      const answer = post(url.replace(stack.gatewayUrls[0] ?? '', gateway() ?? ''), body(more));
      const end = await next();
      if (isNarrowed) await heldOf(url, (held) => held === STATED_COST + OUTPUT);
      return { url, answer, end };
    };

    test('is charged its usage, and its URL stays valid', async () => {
      const { url, answer, end } = await start();
      end('whole');
      expect((await answer).status).toBe(200);
      await heldOf(url, (held) => held === 0);
      expect(await statusOf(url)).toMatchObject({ spent: STATED_COST + 10, revoked: false });
    });

    test(`is charged ${isNarrowed ? 'its statement' : 'its hold'} when it breaks off`, async () => {
      const { url, answer, end } = await start();
      end('broken');
      expect((await answer).broken).toBe(true);
      await heldOf(url, (held) => held === 0);
      const { spent } = await statusOf(url);
      if (isNarrowed) expect(spent).toBe(STATED_COST + OUTPUT);
      else expect(spent).toBeGreaterThan(2 * PROMPT.length);
    });
  },
);
