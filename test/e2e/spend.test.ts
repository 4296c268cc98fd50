import { startSandboxLlm } from '@presign/local';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets } from '@presign/schema/tables';
import OpenAI from 'openai';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { type Stack, startStack } from '../harness/stack.ts';

type Sandbox = Awaited<ReturnType<typeof startSandboxLlm>>;
let sandbox: Sandbox;
let stack: Stack;

/** $0.15 and $0.60 per million tokens. */
const pricing = { 'sandbox-1': { input: 150_000, output: 600_000 } };

beforeAll(async () => {
  sandbox = await startSandboxLlm();
  const providers = {
    openai: { base_url: sandbox.url, pricing },
    anthropic: { base_url: sandbox.url, pricing },
  };
  stack = await startStack({ gateways: 2, providers, gateway: { settlingMs: 60_000 } });
});
afterAll(async () => {
  await stack.close();
  await sandbox.close();
});

const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-sandbox' };
const body = (more: object = {}) => ({
  model: 'sandbox-1',
  messages: [{ role: 'user', content: 'Hello' }],
  max_tokens: 100,
  ...more,
});
const call = (url: string, sent: object = body()) =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(sent) });
const client = (url: string) =>
  new OpenAI({ baseURL: url.replace('/chat/completions', ''), apiKey: 'placeholder', maxRetries: 0 });

test('an answer states its cost and the money left, before its body', async () => {
  const { url } = await stack.issue({ ...ask, cost_limit: 10_000 });
  const answer = await call(url);
  expect(answer.status).toBe(200);
  const { usage } = (await answer.json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
  const cost = Math.ceil(usage.prompt_tokens * 0.15 + usage.completion_tokens * 0.6);
  expect(answer.headers.get('x-presign-cost')).toBe(String(cost));
  expect(answer.headers.get('x-presign-cost-remaining')).toBe(String(10_000 - cost));
});

test('a stream is charged from its usage event, which is hidden from a holder who did not request it', async () => {
  const { url } = await stack.issue({ ...ask, cost_limit: 10_000 });
  const stream = await client(url).chat.completions.create({ ...body({ stream: true }) } as never);
  const chunks: { choices: unknown[]; usage?: unknown }[] = [];
  for await (const chunk of stream as unknown as AsyncIterable<{ choices: unknown[] }>) chunks.push(chunk);
  expect(chunks.length).toBeGreaterThan(2);
  expect(chunks.every((chunk) => chunk.choices.length > 0 && !chunk.usage)).toBe(true);
  // A sequential caller never meets its own hold: the next call sees what is left, settled.
  const next = await call(url);
  expect(Number(next.headers.get('x-presign-cost-remaining'))).toBeLessThan(10_000);
  const asked = await client(url).chat.completions.create(
    body({ stream: true, stream_options: { include_usage: true } }) as never,
  );
  let usage: unknown;
  for await (const chunk of asked as unknown as AsyncIterable<{ usage?: unknown }>)
    usage = chunk.usage ?? usage;
  expect(usage).toMatchObject({ prompt_tokens: expect.any(Number) });
});

test("calls pass until the limit is spent, and the ledger's sum is what the provider would bill", async () => {
  const limit = 300;
  const { url } = await stack.issue({ ...ask, cost_limit: limit });
  let spent = 0;
  let last: Response;
  do {
    last = await call(url);
    spent += Number(last.headers.get('x-presign-cost') ?? 0);
    await last.arrayBuffer();
  } while (last.status === 200);
  expect(last.status).toBe(402);
  expect(spent).toBeLessThanOrEqual(limit);
  expect(spent).toBeGreaterThan(limit * 0.5);
  await callsSettled(stack);
  const settled = (await stack.db.select().from(budgets)).find(
    (budget) => budget.costLimitMicrousd === limit,
  );
  expect(settled?.settledMicrousd).toBe(spent);
  expect((await stack.db.select().from(ledger)).length).toBeGreaterThan(0);
});

test('a call without a known price or bound is refused under a limit', async () => {
  const { url } = await stack.issue({ ...ask, cost_limit: 10_000 });
  const code = async (sent: object) =>
    ((await (await call(url, sent)).json()) as { error: { code: string } }).error.code;
  expect(await code(body({ model: 'sandbox-mini' }))).toBe('price_unknown');
  expect(await code(body({ some_new_field: 1 }))).toBe('cost_unbounded');
});

test('an output bound is lowered to the money left, the answer states it, and the provider obeys it', async () => {
  const { url } = await stack.issue({ ...ask, cost_limit: 300 });
  const answer = await call(url, body({ max_tokens: 1_000_000 }));
  expect(answer.status).toBe(200);
  expect(Number(answer.headers.get('x-presign-max-tokens'))).toBeLessThan(500);
  const tooLow = await call((await stack.issue({ ...ask, cost_limit: 20 })).url);
  expect(tooLow.status).toBe(402);
  const { error } = (await tooLow.json()) as { error: { code: string; remaining: number; needed: number } };
  expect(error).toMatchObject({ code: 'cost_limit_too_low', remaining: 20 });
  expect(error.needed).toBeGreaterThan(20);
});

test('Anthropic messages are metered as JSON and as a stream', async () => {
  const grant = { ...ask, provider: 'anthropic', path: '/v1/messages', cost_limit: 10_000 };
  const { url } = await stack.issue(grant);
  const answer = await call(url);
  expect(answer.status).toBe(200);
  const { usage } = (await answer.json()) as { usage: { input_tokens: number; output_tokens: number } };
  const cost = Math.ceil(usage.input_tokens * 0.15 + usage.output_tokens * 0.6);
  expect(answer.headers.get('x-presign-cost')).toBe(String(cost));
  const streamed = await call(url, body({ stream: true }));
  expect(await streamed.text()).toContain('message_stop');
  const next = await call(url);
  expect(next.headers.get('x-presign-cost-remaining')).toBe(String(10_000 - 3 * cost));
});

test('a holder may ask what a URL allows, used and spent, without a use', async () => {
  const { url } = await stack.issue({ ...ask, cost_limit: 10_000, max_uses: 5 });
  const [base = ''] = url.split('/v1/');
  const before = await (await fetch(base)).json();
  expect(before).toMatchObject({
    max_uses: 5,
    used: 0,
    cost_limit: 10_000,
    spent: 0,
    held: 0,
    paths: [ask.path],
  });
  const cost = Number((await call(url)).headers.get('x-presign-cost'));
  expect(await (await fetch(base)).json()).toMatchObject({ used: 1, spent: cost, held: 0 });
  expect((await fetch(`${base}x`)).status).toBe(401);
});
