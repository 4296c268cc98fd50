import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { BUNDLED_PRICES, dialectOf, loadProviders } from '@presign/providers';
import { isJsonObject, type JsonObject } from '@presign/schema';
import { describe, expect, test } from 'vitest';
import { compileRules, NO_RULES } from '../src/grant/call-rules.ts';
import { NameTree } from '../src/json/names.ts';
import { MODEST, readContent, scanBody } from '../src/llm/body.ts';
import { planCall } from '../src/llm/plan.ts';
import { textOf } from './text-of.ts';

const PRICES = '{"m": {"input": 150000, "output": 600000}}';
const providers = loadProviders(
  `{"openai": {"pricing": ${PRICES}}, "azure-openai": {"base_url": "https://x.openai.azure.com", "pricing": ${PRICES}}, "xai": {"pricing": {"grok-4": {"input": 1, "output": 1}}}}`,
);
const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-21T12:00:00Z') };

/** The plan of a call, as the gateway makes it. */
function plan(
  json: JsonObject,
  {
    provider = 'openai',
    path = '/v1/chat/completions',
    costLimited = true,
    tokenLimited = false,
    config = undefined as unknown,
    query = '',
  } = {},
) {
  const known = providers.get(provider);
  if (!known) throw new Error(provider);
  const rules = isJsonObject(config) ? compileRules({ config }, dialectOf(known, path)) : NO_RULES;
  const raw = Buffer.from(JSON.stringify(json));
  const target = { path, query };
  const planned = planCall({
    grant: { provider: known, method: 'POST' },
    target,
    rules,
    limited: { costLimited, tokenLimited },
    content: { raw, json },
    at: NOW,
  });
  if ('refusal' in planned) return { refusal: planned.refusal.code, plan: undefined, sent: undefined };
  const body = planned.plan.bodyFor(planned.plan.askedTokens);
  return { refusal: undefined, plan: planned.plan, sent: JSON.parse(textOf(body)) as JsonObject };
}
const ask = (more: JsonObject = {}) => ({ model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...more });

describe('under a spend limit', () => {
  test.each([
    ['/api/v1/chat/completions', { messages: [{ role: 'user', content: 'Hi' }] }],
    ['/api/v1/completions', { prompt: 'Hi' }],
    ['/api/v1/responses', { input: 'Hi' }],
    ['/api/v1/messages', { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 9 }],
    ['/api/v1/embeddings', { input: 'Hi' }],
  ])('the maximum price sent to OpenRouter is the price of the hold, on %s', (path, body) => {
    const model = 'openai/gpt-4o-mini';
    const openrouter = { provider: 'openrouter', path };
    const { sent } = plan({ model, ...body }, openrouter);
    // Dollars for a million tokens.
    expect(sent?.provider).toEqual({ max_price: { prompt: '0.15', completion: '0.6', request: '0' } });
    const unlimited = { ...openrouter, costLimited: false };
    for (const each of [unlimited, { ...unlimited, tokenLimited: true }])
      expect(plan({ model, ...body }, each).sent?.provider).toBeUndefined();
    // The choice of hosts is the gateway's: a holder's own is refused.
    const chosen = { model, ...body, provider: { sort: 'throughput', max_price: { prompt: 9 } } };
    expect(plan(chosen, openrouter).refusal).toBe('cost_unbounded');
  });

  test('the sent body equals the judged body: one bound, the standard tier, usage requested', () => {
    const { sent, plan: made } = plan(
      ask({
        max_tokens: 9,
        service_tier: 'priority',
        stream: true,
        stream_options: { include_usage: false },
      }),
    );
    expect(sent).toEqual({
      ...ask(),
      max_completion_tokens: 9,
      service_tier: 'default',
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(made).toMatchObject({ rewritten: true, dropsUsageEvent: true, streams: true });
  });

  test('the hold grows with the number of choices and with the text', () => {
    const hold = (more: JsonObject) => plan(ask(more)).plan?.hold;
    expect(hold({ n: 3, max_tokens: 9 })?.ratePerMtok).toBe(3 * 600_000);
    const long = { messages: [{ role: 'user', content: 'x'.repeat(1_000_000) }] };
    expect(hold(long)?.fixedMicrousd).toBeGreaterThanOrEqual(150_000);
  });

  test('where the output bound excludes thinking, the hold covers all that the model can write, and the requested bound is sent', () => {
    const thinks = plan(
      { ...ask({ max_tokens: 50 }), model: 'openai/gpt-5' },
      {
        provider: 'openrouter',
        path: '/api/v1/chat/completions',
      },
    );
    expect(thinks.plan?.hold?.askedTokens).toBeGreaterThan(10_000);
    expect(thinks.sent).toMatchObject({ max_completion_tokens: 50 });
  });

  test.each<[string, JsonObject, string]>([
    ['no model', { messages: [] }, 'cost_unbounded'],
    ['a model in another case', ask({ model: 'M' }), 'price_unknown'],
    ['a model of spaces', ask({ model: ' m ' }), 'price_unknown'],
    ['a model with a prefix', ask({ model: 'models/m' }), 'price_unknown'],
    ['a model of a megabyte', ask({ model: 'm'.repeat(1_000_000) }), 'price_unknown'],
    ['a model that is a list', ask({ model: ['m'] }), 'cost_unbounded'],
    ['a tool of the provider', ask({ tools: [{ type: 'web_search' }] }), 'cost_unbounded'],
    ['a type that throws', ask({ tools: [{ type: { toString: 1 } }] }), 'cost_unbounded'],
    ['more choices than there are', ask({ n: 1e300 }), 'cost_unbounded'],
  ])('%s is refused', (_what, body, code) => {
    expect(plan(body).refusal).toBe(code);
  });

  test("a refusal quotes at most one line of the caller's text", () => {
    const known = providers.get('openai');
    const field = 'x'.repeat(1_000_000);
    const json = ask({ [field]: 1 });
    const planned =
      known &&
      planCall({
        grant: { provider: known, method: 'POST' },
        target: { path: '/v1/chat/completions', query: '' },
        rules: NO_RULES,
        limited: { costLimited: true },
        content: { raw: null, json },
        at: NOW,
      });
    expect(JSON.stringify(planned).length).toBeLessThan(2_000);
  });

  test('an amount beyond exact numbers is refused, not miscounted', () => {
    const prompt = Array.from({ length: 400_000 }, () => 'x');
    const body = { model: 'gpt-3.5-turbo-instruct', prompt, n: 128, max_tokens: 4_096 };
    expect(plan(body, { path: '/v1/completions' }).refusal).toBe('cost_unbounded');
  });
});

describe('under tokens_per_minute', () => {
  const tokens = (json: JsonObject, more: object = {}) =>
    plan(json, { costLimited: false, tokenLimited: true, ...more });

  test('input and each choice count, and a model needs no price', () => {
    const of = (more: JsonObject) => tokens({ ...ask(more), model: 'unpriced' }).plan?.worstTokens ?? 0;
    const one = of({ max_tokens: 50 });
    expect(of({ max_tokens: 51 })).toBe(one + 1);
    expect(of({ max_tokens: 50, n: 3 }) - one).toBeGreaterThanOrEqual(100);
    expect(of({ max_tokens: 50, user: 'x'.repeat(1_000) }) - one).toBeGreaterThanOrEqual(1_000);
  });

  test('nothing is counted without the limit, and nothing is held without a spend limit', () => {
    expect(plan(ask(), { costLimited: true }).plan?.worstTokens).toBeUndefined();
    expect(tokens(ask()).plan).toMatchObject({ hold: undefined, writesBound: true });
  });

  test.each<[string, JsonObject]>([
    ['no model', { messages: [] }],
    ['a tool of the provider', ask({ tools: [{ type: 'web_search' }] })],
    ['an unknown field', ask({ surprise: 1 })],
  ])('%s is refused', (_what, body) => {
    expect(tokens(body).refusal).toBe('tokens_unbounded');
  });

  test('where the output bound excludes thinking, all that the model can write counts', () => {
    const body = { ...ask({ max_tokens: 50 }), model: 'openai/gpt-5' };
    const thinks = tokens(body, { provider: 'openrouter', path: '/api/v1/chat/completions' });
    expect(thinks.plan?.worstTokens).toBeGreaterThan(10_000);
    expect(thinks.sent).toMatchObject({ max_completion_tokens: 50 });
  });
});

test('without a limit a body is sent unchanged, or with the config applied and nothing else', () => {
  expect(plan(ask(), { costLimited: false }).plan).toMatchObject({ hold: undefined, rewritten: false });
  const config = { max_tokens: 5 };
  expect(plan(ask(), { costLimited: false, config })).toMatchObject({
    plan: { rewritten: true },
    sent: { max_completion_tokens: 5 },
  });
});

test.each([
  ['openai', '/v1/chat/completions', ask()],
  ['openai', '/v1/chat/completions', ask({ service_tier: 'default', max_completion_tokens: 5 })],
  ['google', '/v1beta/models/gemini-2.5-flash:generateContent', { contents: [{ parts: [{ text: 'Hi' }] }] }],
])('%s %s: a planned call keeps no messages, and they are sent unchanged', async (provider, path, body) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const known = providers.get(provider);
  if (!known) throw new Error(provider);
  const text = JSON.stringify(body).replace('Hi', 'H\\u0069');
  const make = () => {
    const raw = Buffer.from(text);
    const read = readContent(raw, 'must', scanBody(raw, 'must', NO_RULES.names, MODEST));
    if ('refusal' in read || !read.content.json) throw new Error(text);
    const { json } = read.content;
    const limited = { costLimited: true, tokenLimited: false };
    const grant = { provider: known, method: 'POST' };
    const target = { path, query: '' };
    const planned = planCall({ grant, target, rules: NO_RULES, limited, content: read.content, at: NOW });
    if ('refusal' in planned) throw new Error(planned.refusal.message);
    return { plan: planned.plan, messages: new WeakRef((json.messages ?? json.contents) as object) };
  };
  const { plan: made, messages } = make();
  await new Promise(setImmediate);
  collect();
  expect(messages.deref()).toBeUndefined();
  const sent = textOf(made.bodyFor(made.askedTokens));
  expect(sent).toContain('H\\u0069');
  expect(JSON.parse(sent)).toMatchObject(body);
});

test('a body is searched for keys in one pass, however deep it is and however many names it has', () => {
  const most = { depth: 1_000_000, parts: 10_000_000 };
  const scan = (text: string) => scanBody(Buffer.from(text), 'must', new NameTree([['model']]), most);
  const deep = `${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`;
  expect(scan(deep)).toMatchObject({ ambiguous: undefined });
  const long = 'k'.repeat(16_000);
  const members = Array.from({ length: 200_000 }, (_, i) => `"${i}":1`).join(',');
  expect(scan(`{"${long}":{${members},"Model":1}}`)).toMatchObject({ ambiguous: undefined });
  expect(scan(`{"${long}":1,"Model":1}`)).toMatchObject({ ambiguous: 'Model' });
}, 10_000);

describe('a stream of Azure, which cannot be asked for usage', () => {
  const provider = 'azure-openai';
  const path = '/openai/deployments/m/chat/completions';
  test.each<[string, JsonObject, string]>([
    ['with data_sources', { data_sources: [{}] }, 'api-version=2025-01-01-preview'],
    ['of an old version', {}, 'api-version=2023-05-15'],
  ])('%s is sent as it is without a limit, and refused under one', (_what, more, query) => {
    const body = ask({ stream: true, ...more });
    expect(plan(body, { provider, path, query, costLimited: false }).sent).toEqual(body);
    expect(plan(body, { provider, path, query }).refusal).toBe('cost_unbounded');
    const tokens = { provider, path, query, costLimited: false, tokenLimited: true };
    expect(plan(body, tokens).refusal).toBe('tokens_unbounded');
    expect(
      plan(ask({ stream: true }), { provider, path, query: 'api-version=2024-10-21' }).sent,
    ).toMatchObject({
      stream_options: { include_usage: true },
    });
  });
});
