import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';

let provider: Upstream;
let stack: Stack;
/** How the provider answers. */
let answers: (response: ServerResponse) => void;

const INPUT = 100;
const OUTPUT = 400;
const reports = (usage: object | undefined) => (response: ServerResponse) =>
  void response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(JSON.stringify({ id: 'x', model: 'm', choices: [], usage }));
const used = (input: number, output: number) =>
  reports({ prompt_tokens: input, completion_tokens: output, total_tokens: input + output });

beforeAll(async () => {
  provider = await startUpstream((_seen, response) => answers(response));
  stack = await startStack({ gateways: 2, providers: { openai: { base_url: provider.url } } });
});
beforeEach(() => {
  answers = used(INPUT, OUTPUT);
});
afterAll(async () => {
  await stack.close();
  await provider.close();
});

const asked = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
const body = (more: object = {}) => ({
  model: 'm',
  messages: [{ role: 'user', content: 'Hi' }],
  max_tokens: 800,
  ...more,
});
const call = (url: string, sent: object = body()) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) });
const errorOf = async (answer: Response) =>
  ((await answer.json()) as { error: Record<string, unknown> }).error;
const statusOf = async (url: string) => (await fetch(url.slice(0, url.indexOf('/v1/')))).json();
const rateOf = ({ headers }: Response) => [headers.get('ratelimit-policy'), headers.get('ratelimit')];

describe('a URL with tokens_per_minute', () => {
  test('gets no more than a full bucket and its refill over two gateways, and unused tokens are returned', async () => {
    const perMinute = 6_000;
    const { url } = await stack.issue({ ...asked, tokens_per_minute: perMinute });
    const [first = '', second = ''] = stack.gatewayUrls;
    const before = provider.seen.length;
    const began = performance.now();
    const until = began + 5_000;
    let refused = 0;
    const holder = async (_: unknown, i: number) => {
      const own = i % 2 ? url : url.replace(first, second);
      while (performance.now() < until) {
        const answer = await call(own);
        if (answer.status === 200) await answer.arrayBuffer();
        else {
          const error = await errorOf(answer);
          // A busy machine may answer late for Redis. Such a call did not run.
          expect(error.code).toMatch(/^(token_rate_limited|limits_unavailable)$/);
          if (error.code === 'token_rate_limited') refused++;
          await sleep(50);
        }
      }
    };
    await Promise.all(Array.from({ length: 10 }, holder));
    const minutes = (performance.now() - began) / 60_000;
    const tokens = (provider.seen.length - before) * (INPUT + OUTPUT);
    expect(tokens).toBeLessThanOrEqual(perMinute * (1 + minutes));
    // A call takes over 800 at first, so without giving back only seven could have run.
    expect(tokens).toBeGreaterThan(8 * (INPUT + OUTPUT));
    expect(refused).toBeGreaterThan(0);
  });

  test('states how many tokens are left, and refuses with the exact wait and without a use', async () => {
    const { url } = await stack.issue({
      ...asked,
      tokens_per_minute: 2_000,
      calls_per_minute: 60,
      max_uses: 9,
    });
    const passed = await call(url);
    expect(passed.status).toBe(200);
    const [policy, left] = rateOf(passed);
    expect(policy).toBe('"presign";q=60;w=60, "presign-tokens";q=2000;qu="tokens";w=60');
    expect(left).toMatch(/^"presign";r=59;t=1, "presign-tokens";r=\d+;t=\d+$/);
    answers = reports(undefined);
    expect((await call(url)).status).toBe(200);
    const late = await call(url);
    expect(late.status).toBe(429);
    const error = await errorOf(late);
    expect(error).toMatchObject({ code: 'token_rate_limited', type: 'rate_limit_error', limit: 2_000 });
    expect(error.message).toContain('tokens_per_minute');
    const PER_SECOND = 2_000 / 60;
    const missing = Number(error.needed) - Number(error.remaining);
    const wait = Number(late.headers.get('retry-after'));
    expect(wait).toBeGreaterThanOrEqual(Math.floor((missing - 1) / PER_SECOND));
    expect(wait).toBeLessThanOrEqual(Math.ceil(missing / PER_SECOND));
    expect(rateOf(late)[1]).toMatch(/"presign-tokens";r=\d+;t=\d+$/);
    expect(await statusOf(url)).toMatchObject({ tokens_per_minute: 2_000, used: 2 });
  });

  test('gives a caller of sequential calls what the last call returned', async () => {
    const { url } = await stack.issue({ ...asked, tokens_per_minute: 1_500 });
    answers = used(1, 1);
    for (let i = 0; i < 5; i++) expect((await call(url)).status).toBe(200);
  });

  test('gets all tokens of a call back that the provider refused or never got', async () => {
    const { url } = await stack.issue({ ...asked, tokens_per_minute: 1_500 });
    answers = (response) => void response.writeHead(429).end('{"error": {"message": "slow down"}}');
    for (let i = 0; i < 3; i++) expect((await errorOf(await call(url))).message).toBe('slow down');
    answers = (response) => void response.destroy();
    expect((await errorOf(await call(url))).code).toBe('upstream_unreachable');
    // It was sent, and its use is not known.
    expect((await errorOf(await call(url))).code).toBe('token_rate_limited');
  });

  test('refuses a call that can never fit, and a call without a bound, and neither reaches the provider', async () => {
    const { url } = await stack.issue({ ...asked, tokens_per_minute: 1_000, max_uses: 1 });
    const before = provider.seen.length;
    const tooLong = await call(url, body({ max_tokens: 5_000 }));
    expect(tooLong.status).toBe(422);
    expect(tooLong.headers.get('retry-after')).toBeNull();
    expect(await errorOf(tooLong)).toMatchObject({ code: 'token_rate_too_low', limit: 1_000 });
    const many = await call(url, body({ max_tokens: 100, n: 50 }));
    expect((await errorOf(many)).code).toBe('token_rate_too_low');
    for (const [field, value] of Object.entries({ audio: {}, surprise: 1, model: undefined })) {
      const unbounded = await call(url, body({ [field]: value }));
      expect(unbounded.status).toBe(422);
      const error = await errorOf(unbounded);
      expect(error).toMatchObject({ code: 'tokens_unbounded', param: field });
      expect(error.message).toContain('tokens_per_minute');
    }
    expect(provider.seen.length).toBe(before);
    expect(await statusOf(url)).toMatchObject({ used: 0 });
  });

  test('writes the counted output bound into the body, even if the holder sets none', async () => {
    const { url } = await stack.issue({ ...asked, tokens_per_minute: 100_000 });
    expect((await call(url, body({ max_tokens: undefined }))).status).toBe(200);
    const sent = JSON.parse(String(provider.seen.at(-1)?.body)) as Record<string, unknown>;
    expect(sent.max_completion_tokens).toBe(32_768);
    expect((await call(url, body({ max_tokens: 7 }))).status).toBe(200);
    const bounded = JSON.parse(String(provider.seen.at(-1)?.body)) as Record<string, unknown>;
    expect(bounded.max_completion_tokens).toBe(7);
  });

  test('counts the tokens of a text if its bytes would not fit', async () => {
    const { url } = await stack.issue({ ...asked, tokens_per_minute: 4_000 });
    const long = { model: 'gpt-4o', messages: [{ role: 'user', content: 'hello '.repeat(1_500) }] };
    expect((await call(url, body({ ...long, max_tokens: 100 }))).status).toBe(200);
    const unknown = await call(url, body({ ...long, model: 'm', max_tokens: 100 }));
    expect((await errorOf(unknown)).code).toBe('token_rate_too_low');
  });

  test('holds tokens next to a cost_limit, also for a large body', async () => {
    const { url } = await stack.issue({
      ...asked,
      tokens_per_minute: 2_000_000,
      cost_limit: 10_000_000,
      config: { model: 'gpt-4o-mini' },
    });
    const large = body({ messages: [{ role: 'user', content: 'x '.repeat(100_000) }] });
    const answer = await call(url, large);
    expect(answer.status).toBe(200);
    expect(rateOf(answer)[0]).toContain('"presign-tokens";q=2000000');
    expect(Number(answer.headers.get('x-presign-cost'))).toBeGreaterThan(0);
    const beyond = await stack.issue({ ...asked, tokens_per_minute: 10_000, config: { model: 'm' } });
    expect((await errorOf(await call(beyond.url, large))).code).toBe('token_rate_too_low');
  });

  test('shows the limit in its session, and is not issued if no call can have a bound', async () => {
    const { session_id: id } = await stack.issue({ ...asked, tokens_per_minute: 7 });
    const session = await fetch(`${stack.issuerUrl}/v1/sessions/${id}`, {
      headers: { authorization: `Bearer ${stack.apiKey}` },
    });
    expect(await session.json()).toMatchObject({ grants: [{ tokens_per_minute: 7 }] });
    const refused = await stack.presign({ ...asked, path: '/v1/unknown', tokens_per_minute: 7 });
    expect(refused.status).toBe(400);
    expect(await errorOf(refused)).toMatchObject({ code: 'invalid_request', param: 'path' });
    const none = await stack.presign({ ...asked, tokens_per_minute: 0 });
    expect(await errorOf(none)).toMatchObject({ param: 'tokens_per_minute' });
  });
});
