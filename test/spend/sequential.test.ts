import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { statusOf } from './many-calls.ts';
import { COST, PRICE, RECORDED } from './recorded.ts';

let upstream: Upstream;
let stack: Stack;
/** The address of a gateway to which Redis is far away. */
let far: string;
let slowWay: Tunnel;

const CALLS = thorough ? 200 : 40;
/** A call's longest possible answer holds more than 12,000 microdollars; its real answer costs 21. */
const MAX_TOKENS = 20_000;
/** Room for one such hold, not for two. */
const LIMIT = 23_000;

const CHAT = {
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 },
};
const MESSAGE = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 20, output_tokens: 30 },
};

beforeAll(async () => {
  upstream = await startUpstream(({ url, body }, response) => {
    const { stream } = JSON.parse(body.toString()) as { stream?: boolean };
    const recorded = RECORDED.find((each) => each.path('') === url);
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    response.end(stream ? recorded?.stream : JSON.stringify(url.endsWith('/messages') ? MESSAGE : CHAT));
  });
  const entry = { base_url: upstream.url, pricing: { m: PRICE } };
  const providers = { openai: entry, anthropic: entry };
  // However busy this machine is: an answer waits for its settle.
  stack = await startStack({ gateways: 1, providers, gateway: { settlingMs: 60_000 } });
  const redis = new URL(stack.redisUrl);
  slowWay = await openTunnel(Number(redis.port), 10);
  redis.port = String(slowWay.port);
  far = await stack.addGateway({ redisUrl: redis.href });
});
afterAll(async () => {
  await stack.close();
  slowWay.close();
  await upstream.close();
});

const issue = async (provider: string, path: string) =>
  (await stack.issue({ provider, path, client_api_key: 'sk-real', cost_limit: LIMIT })).url;
const messages = [{ role: 'user' as const, content: 'Hi' }];
const ask = { model: 'm', messages, max_tokens: MAX_TOKENS };

const openai = (url: string) =>
  new OpenAI({ baseURL: url.replace('/chat/completions', ''), apiKey: 'x', maxRetries: 0 });

/** Ends when the SDK takes the answer for ended: at a stream's last event. */
async function chat(client: OpenAI, stream: boolean): Promise<void> {
  if (!stream) await client.chat.completions.create(ask);
  else for await (const _ of await client.chat.completions.create({ ...ask, stream: true }));
}

/** Makes calls one after another, none before the one before it has ended; fails at the first refusal. */
async function oneByOne(url: string, call: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < CALLS; i++) await call();
  expect(await statusOf(url)).toMatchObject({ used: CALLS, spent: CALLS * COST, held: 0 });
}

test.each([true, false])(
  'the OpenAI SDK, one call after another (streamed: %s), is never refused because of its own hold',
  async (stream) => {
    const path = '/v1/chat/completions';
    const url = await issue('openai', path);
    const client = openai(url);
    await oneByOne(url, () => chat(client, stream));
  },
);

test.each([true, false])(
  'the Anthropic SDK, one call after another (streamed: %s), is never refused because of its own hold',
  async (stream) => {
    const path = '/v1/messages';
    const url = await issue('anthropic', path);
    const client = new Anthropic({ baseURL: url.replace(path, ''), apiKey: 'x', maxRetries: 0 });
    await oneByOne(url, async () => {
      if (!stream) return client.messages.create(ask);
      return client.messages.stream(ask).finalMessage();
    });
  },
);

test.each([true, false])(
  'a call through a gateway far from Redis is settled before the next one nearby (streamed: %s)',
  async (stream) => {
    const url = await issue('openai', '/v1/chat/completions');
    const clients = [url, url.replace(stack.gatewayUrls[0] ?? '', far)].map(openai);
    for (let i = 0; i < 20; i++) await chat(clients[i % 2] as OpenAI, stream);
    expect(await statusOf(url)).toMatchObject({ used: 20, spent: 20 * COST, held: 0 });
  },
);

test('of ten simultaneous calls one passes at a time: the limit has room for one hold', async () => {
  const url = await issue('openai', '/v1/chat/completions');
  const call = () =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(ask),
    });
  const answers = await Promise.all(Array.from({ length: 10 }, call));
  const [held] = answers.filter(({ status }) => status === 429);
  expect(await held?.json()).toMatchObject({ error: { code: 'cost_held' } });
  expect(held?.headers.get('retry-after')).toMatch(/^[1-9]\d?$/);
});
