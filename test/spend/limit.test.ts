import { beforeAll, describe, expect, test } from 'vitest';
import { type Concurrent, concurrentCalls } from '../chaos/concurrent.ts';
import { eventually } from '../harness/eventually.ts';
import { startStack } from '../harness/stack.ts';
import { startUpstream } from '../harness/upstream.ts';
import { statusOf } from './many-calls.ts';
import { PRICE } from './recorded.ts';

describe('1,000 concurrent calls of random cost on one cost_limit, over two gateways', () => {
  let run: Concurrent;
  beforeAll(async () => {
    run = await concurrentCalls(1_000, 20_261_121);
  }, 120_000);

  test('settled and held money never exceeds the limit at a sampled moment', () => {
    const { samples, limit } = run;
    expect(samples.over).toBe(0);
    expect(samples.most).toBeLessThanOrEqual(limit);
    expect(samples.count).toBeGreaterThan(20);
    // Calls did compete: the limit was reached while they were under way.
    expect(samples.most).toBeGreaterThan(limit * 0.95);
  });

  test('at least 95% of the limit can be spent, and then calls get 402', () => {
    const { last, settledMicrousd, limit } = run;
    expect(last.status).toBe(402);
    expect(['cost_limit_reached', 'cost_limit_too_low']).toContain(last.code);
    expect(settledMicrousd).toBeGreaterThanOrEqual(limit * 0.95);
    expect(settledMicrousd).toBeLessThanOrEqual(limit);
  });

  test("every call in the provider's books is one row of the ledger, at the provider's own price", () => {
    const { reckoning, settledMicrousd } = run;
    expect(reckoning.violations).toEqual([]);
    expect(reckoning.missing).toEqual([]);
    expect(reckoning.billedMicrousd).toBeLessThanOrEqual(reckoning.ledgerMicrousd);
    expect(reckoning.ledgerMicrousd).toBe(settledMicrousd);
  });

  test("the cost in an answer equals the cost in the provider's books", () => {
    const told = run.outcomes.filter(({ cost }) => cost !== undefined);
    const answered = told.filter(({ model }) => run.billed.get(model)?.fate === 'answer');
    expect(answered.length).toBeGreaterThan(20);
    expect(answered.map(({ cost }) => Number(cost))).toEqual(
      answered.map(({ model }) => run.billed.get(model)?.microusd),
    );
  });

  test('refusals reach no provider and cost no use', () => {
    const { outcomes, billed, reckoning, used } = run;
    const refused = outcomes.filter(({ code }) => code?.startsWith('cost_'));
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.filter(({ status }) => status !== 402)).toEqual([]);
    expect(refused.filter(({ model }) => billed.has(model))).toEqual([]);
    const givenBack = [...billed.values()].filter(({ fate }) => fate === 'rate limited').length;
    expect(used).toBe(billed.size - givenBack);
    expect(reckoning.uses).toBe(used);
  });

  test('every call ends as the provider or the limit decides', () => {
    const known = [200, 0, 402, 400, 429, 500, 502];
    expect(run.outcomes.filter(({ status }) => !known.includes(status))).toEqual([]);
  });
});

test('a free call passes under a limit, and costs nothing', async () => {
  const upstream = await startUpstream((_seen, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"results":[{"flagged":false}]}');
  });
  const stack = await startStack({ providers: { openai: { base_url: upstream.url } } });
  try {
    const ask = { provider: 'openai', path: '/v1/moderations', client_api_key: 'sk', cost_limit: 1 };
    const { url } = await stack.issue({ ...ask, max_uses: 2 });
    const body = JSON.stringify({ model: 'omni-moderation-latest', input: 'Hi' });
    const call = () => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    expect([(await call()).status, (await call()).status, (await call()).status]).toEqual([200, 200, 403]);
    expect(await statusOf(url)).toMatchObject({ spent: 0, held: 0, used: 2 });
    expect(upstream.seen.map((each) => each.body.toString())).toEqual([body, body]);
  } finally {
    await stack.close();
    await upstream.close();
  }
});

test('while money is only held a refusal says when to retry, and the retry passes', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
  const upstream = await startUpstream((_seen, response) => {
    const answer = JSON.stringify({ choices: [], usage });
    void released.then(() => response.writeHead(200, { 'content-type': 'application/json' }).end(answer));
  });
  const stack = await startStack({
    providers: { openai: { base_url: upstream.url, pricing: { m: PRICE } } },
  });
  try {
    const path = '/v1/chat/completions';
    const ask = { provider: 'openai', path, client_api_key: 'sk', cost_limit: 23_000 };
    const { url } = await stack.issue(ask);
    // May cost more than half of the limit, and does cost 21 microdollars.
    const body = JSON.stringify({ model: 'm', max_tokens: 20_000, messages: [] });
    const call = () => fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
    const first = call();
    await eventually(async () => upstream.seen.length === 1);
    const second = await call();
    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '1']);
    expect(second.headers.get('x-should-retry')).toBeNull();
    expect(await second.json()).toMatchObject({ error: { code: 'cost_held', limit_of: 'url' } });
    release();
    expect((await first).status).toBe(200);
    expect((await call()).status).toBe(200);
    expect(upstream.seen).toHaveLength(2);
  } finally {
    release();
    await stack.close();
    await upstream.close();
  }
});

test('the longer calls take at a gateway, the later its refusals say to retry', async () => {
  const held: (() => void)[] = [];
  const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 };
  const upstream = await startUpstream((_seen, response) => {
    const answer = JSON.stringify({ choices: [], usage });
    held.push(() => response.writeHead(200, { 'content-type': 'application/json' }).end(answer));
  });
  const stack = await startStack({
    providers: { openai: { base_url: upstream.url, pricing: { m: PRICE } } },
  });
  const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk' };
  const limits = [
    ['cost_held', { cost_limit: 23_000 }],
    ['concurrency_limited', { concurrent_calls: 1 }],
  ] as const;
  const call = (url: string) =>
    fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', max_tokens: 20_000, messages: [] }),
    });
  try {
    const { url: free } = await stack.issue(ask);
    const long = Array.from({ length: 40 }, () => call(free));
    await eventually(async () => held.length === long.length);
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    for (const end of held.splice(0)) end();
    expect((await Promise.all(long)).every(({ status }) => status === 200)).toBe(true);
    for (const [code, limit] of limits) {
      const { url } = await stack.issue({ ...ask, ...limit });
      const first = call(url);
      await eventually(async () => held.length === 1);
      const refused = await call(url);
      expect(refused.headers.get('x-presign-code')).toBe(code);
      const wait = Number(refused.headers.get('retry-after'));
      // More than the 2 s that a gateway begins with; a busy machine takes longer.
      expect(wait).toBeGreaterThanOrEqual(2);
      expect(wait).toBeLessThanOrEqual(30);
      for (const end of held.splice(0)) end();
      expect((await first).status).toBe(200);
    }
  } finally {
    for (const end of held) end();
    await stack.close();
    await upstream.close();
  }
});
