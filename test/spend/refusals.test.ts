import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { post, statusOf } from './many-calls.ts';
import { PRICE } from './recorded.ts';

/** A model without reasoning at xAI: elsewhere the bound of the output does not cover reasoning. */
const MODEL = 'grok-2';

type Failure = { readonly status: number; readonly body: string };

let upstream: Upstream;
let stack: Stack;
let failure: Failure;

beforeAll(async () => {
  upstream = await startUpstream((_seen, response) => {
    response.writeHead(failure.status, { 'content-type': 'application/json' }).end(failure.body);
  });
  const entry = { base_url: upstream.url, pricing: { [MODEL]: PRICE } };
  stack = await startStack({ providers: { openai: entry, xai: entry, 'azure-openai': entry } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

const PATHS = {
  openai: '/v1/chat/completions',
  xai: '/v1/chat/completions',
  'azure-openai': '/openai/v1/chat/completions',
};
type Id = keyof typeof PATHS;

const issue = async (provider: Id, limits: object) =>
  (await stack.issue({ provider, path: PATHS[provider], client_api_key: 'sk', ...limits })).url;

/** Calls a URL until it is refused by the gateway, at most 20 times. Returns how many calls reached the provider. */
async function callUntilRefused(url: string, maxTokens = 100): Promise<number> {
  const before = upstream.seen.length;
  const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi' }], max_tokens: maxTokens };
  for (let i = 0; i < 20; i++) {
    const reached = upstream.seen.length;
    await post(url, body);
    if (upstream.seen.length === reached) break;
  }
  return upstream.seen.length - before;
}

/** https://docs.x.ai/docs/pricing#usage-guidelines-violation-fee: $0.05 */
const VIOLATION: Failure = {
  status: 403,
  body: JSON.stringify({
    code: 'The caller does not have permission to execute the specified operation',
    error: 'Content violates usage guidelines. Team: t, Model: m, Failed check: SAFETY_CHECK_TYPE_BIO',
  }),
};

/** https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter */
const FILTERED: Failure = {
  status: 400,
  body: JSON.stringify({
    error: {
      message:
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      type: null,
      param: 'prompt',
      code: 'content_filter',
      status: 400,
      innererror: { code: 'ResponsibleAIPolicyViolation' },
    },
  }),
};

const errorWith = (status: number): Failure => ({ status, body: '{"error":{"message":"no","code":"x"}}' });

test.each<[string, Id, Failure]>([
  ["xAI's guideline violation", 'xai', VIOLATION],
  ["Azure's content filter", 'azure-openai', FILTERED],
])('%s keeps its use and is charged its hold', async (_what, provider, answer) => {
  failure = answer;
  const once = await issue(provider, { max_uses: 1 });
  expect(await callUntilRefused(once)).toBe(1);
  expect(await statusOf(once)).toMatchObject({ used: 1 });

  const limited = await issue(provider, { cost_limit: 1_000_000 });
  const body = { model: MODEL, messages: [], max_tokens: 100_000 };
  const { headers } = await post(limited, body);
  const { spent, held } = await statusOf(limited);
  // 100,000 tokens of output cost 60,000 microdollars, which is more than xAI's fee.
  expect(spent).toBeGreaterThan(60_000);
  expect(headers['x-presign-cost']).toBe(String(spent));
  expect(held).toBe(0);
});

test("xAI's fee is part of every hold, so a refused request ends no URL", async () => {
  failure = VIOLATION;
  const small = await issue('xai', { cost_limit: 49_999 });
  expect(await callUntilRefused(small, 1)).toBe(0);
  const { bytes } = await post(small, { model: MODEL, messages: [], max_tokens: 1 });
  expect(JSON.parse(bytes.toString())).toMatchObject({ error: { code: 'cost_limit_too_low' } });

  const url = await issue('xai', { cost_limit: 160_000 });
  expect(await callUntilRefused(url, 1)).toBe(3);
  const { spent, held } = await statusOf(url);
  expect(spent).toBeGreaterThanOrEqual(150_000);
  expect(held).toBe(0);
  const last = await post(url, { model: MODEL, messages: [], max_tokens: 1 });
  expect(JSON.parse(last.bytes.toString())).toMatchObject({ error: { code: 'cost_limit_too_low' } });
});

test('a 403 without a documented price keeps its use and is charged its hold', async () => {
  failure = errorWith(403);
  const once = await issue('openai', { max_uses: 1 });
  expect(await callUntilRefused(once)).toBe(1);
  const limited = await issue('openai', { cost_limit: 1_000_000 });
  await post(limited, { model: MODEL, messages: [], max_tokens: 1_000 });
  expect((await statusOf(limited)).spent).toBeGreaterThan(600);
});

test.each<[Id, number, number]>([
  ['azure-openai', 400, 1],
  ['openai', 400, 1],
  ['openai', 422, 1],
  ['openai', 429, 0],
  ['openai', 503, 0],
])('%s: a %i that is not billed costs no money and %i uses', async (provider, status, used) => {
  failure = errorWith(status);
  const url = await issue(provider, { max_uses: 5, cost_limit: 1_000_000 });
  const { headers } = await post(url, { model: MODEL, messages: [], max_tokens: 1_000 });
  expect(headers['x-presign-cost']).toBe('0');
  expect(await statusOf(url)).toMatchObject({ used, spent: 0, held: 0 });
});
