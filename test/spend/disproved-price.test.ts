import type { NewAccountAnswer } from '@presign/schema';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { send } from '../issuer/ask.ts';
import { post } from './many-calls.ts';

/** How each provider's answer states the bill of a call, in dollars. OpenRouter's is that of a key of the customer's own at a host. */
const STATED = {
  xai: (usd: number) => ({ cost_in_usd_ticks: usd * 1e10 }),
  perplexity: (usd: number) => ({ cost: { total_cost: usd } }),
  openrouter: (usd: number) => ({
    is_byok: true,
    cost: 0,
    cost_details: { upstream_inference_cost: usd },
  }),
} as const;
type Vendor = keyof typeof STATED;
const CASES: readonly (readonly [Vendor, string, string])[] = [
  ['xai', '/v1/chat/completions', 'grok-4'],
  ['perplexity', '/chat/completions', 'sonar'],
  ['openrouter', '/api/v1/chat/completions', 'openai/gpt-4o-mini'],
];

/** Far more than any call here holds, and less than its price. */
const FAR_ABOVE = 10;
const BELOW = 0.000_001;

let upstream: Upstream;
let stack: Stack;
let usd = BELOW;
let tokens = 5;

beforeAll(async () => {
  upstream = await startUpstream((seen, response) => {
    const { model, stream } = JSON.parse(seen.body.toString()) as { model: string; stream?: boolean };
    const [vendor = 'xai'] = CASES.find(([, path]) => seen.url === path) ?? [];
    const stated = STATED[vendor](usd);
    const counts = { prompt_tokens: 10, completion_tokens: tokens, total_tokens: 10 + tokens };
    const usage = { ...counts, ...stated };
    const said = { role: 'assistant', content: 'Hi' };
    const choice = { index: 0, [stream ? 'delta' : 'message']: said, finish_reason: 'stop' };
    const answer = JSON.stringify({ model, choices: [choice], usage });
    response.writeHead(200, { 'content-type': stream ? 'text/event-stream' : 'application/json' });
    response.end(stream ? `data: ${answer}\n\ndata: [DONE]\n\n` : answer);
  });
  const entry = { base_url: upstream.url };
  stack = await startStack({ providers: { xai: entry, perplexity: entry, openrouter: entry } });
});
afterAll(async () => {
  await stack.close();
  await upstream.close();
});

type Limits = {
  readonly cost_limit?: number;
  readonly stream?: boolean;
  readonly apiKey?: string;
  readonly virtual_key?: string;
};

async function call([provider, path, model]: (typeof CASES)[number], asked: Limits) {
  const { stream = false, apiKey, ...limits } = asked;
  const fields = { provider, path, ...(limits.virtual_key ? {} : { client_api_key: 'sk' }), ...limits };
  const issued = await send(stack, { body: fields, ...(apiKey && { apiKey }) });
  const { url } = JSON.parse(issued.text) as { url: string };
  const body = { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100, stream };
  const { status, bytes } = await post(url, body);
  const { error } = status === 200 ? {} : (JSON.parse(bytes.toString()) as { error: { message: string } });
  return { status, error };
}
const LIMITED = { cost_limit: 5_000_000 };

describe.each(CASES)('%s states a cost above the hold of a call', (...vendor) => {
  const refused = { status: 422, error: { code: 'price_unknown', param: 'model' } };

  test.each([false, true])(
    'its model has no price for that account any more, and limits refuse it (streamed: %s)',
    async (stream) => {
      const { apiKey } = await newAccount();
      // A price of the customer's own at a host is that of one key, so its URLs must have one.
      const key = vendor[0] === 'openrouter' ? await newVirtualKey(apiKey) : {};
      const limited = { ...LIMITED, ...key, apiKey };
      usd = BELOW;
      expect((await call(vendor, limited)).status).toBe(200);
      usd = FAR_ABOVE;
      expect((await call(vendor, { ...limited, stream })).status).toBe(200);
      const sent = upstream.seen.length;
      const next = await call(vendor, limited);
      expect(next).toMatchObject(refused);
      expect(next.error?.message).toContain(
        'it has billed a call of this account above the price of the lists',
      );
      expect(upstream.seen.length).toBe(sent);
      usd = BELOW;
      const others = { xai: 'grok-3-mini', perplexity: 'sonar-pro', openrouter: 'openai/gpt-4o' };
      const [provider, path] = vendor;
      expect((await call([provider, path, others[provider]], limited)).status).toBe(200);
      const alias = { xai: 'grok-4-latest', perplexity: undefined, openrouter: undefined }[provider];
      if (alias) expect(await call([provider, path, alias], { ...LIMITED, apiKey })).toMatchObject(refused);
      expect((await call(vendor, { ...key, apiKey })).status).toBe(200);
      expect((await call(vendor, LIMITED)).status).toBe(200);
    },
  );
});

async function newAccount(): Promise<{ apiKey: string }> {
  const made = await send(stack, { path: '/v1/accounts', body: { name: 'customer' } });
  expect(made.status, made.text).toBe(201);
  return { apiKey: (JSON.parse(made.text) as NewAccountAnswer).api_key.key };
}

async function newVirtualKey(apiKey: string): Promise<{ virtual_key: string }> {
  const body = { provider: 'openrouter', name: 'main', key: 'sk-own' };
  const made = await send(stack, { path: '/v1/virtual-keys', body, apiKey });
  expect(made.status, made.text).toBe(201);
  return { virtual_key: (JSON.parse(made.text) as { id: string }).id };
}

test('a usage beyond its bound is an overrun that does not invalidate a price', async () => {
  const { apiKey } = await newAccount();
  const vendor = CASES[0] ?? expect.fail();
  tokens = 1_000_000;
  usd = 15.1;
  expect((await call(vendor, { ...LIMITED, apiKey })).status).toBe(200);
  tokens = 5;
  usd = BELOW;
  expect((await call(vendor, { ...LIMITED, apiKey })).status).toBe(200);
});
