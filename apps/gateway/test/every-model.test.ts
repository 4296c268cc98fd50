import {
  BUILT_IN_PROVIDERS,
  BUNDLED_PRICES,
  dialectOf,
  FEE_UNITS,
  type JsonObject,
  type Provider,
  type Route,
  type Spend,
  spendOf,
  TOKEN_KINDS,
  type VendorRules,
} from '@presign/providers';
import { describe, expect, test } from 'vitest';
import { worstCase } from '../src/llm/hold.ts';

const NOW = { prices: BUNDLED_PRICES, now: Date.parse('2026-11-21T12:00:00Z') };

/** One small call of each API, in the order in which a route's is looked for. */
const CALLS: readonly JsonObject[] = [
  { messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 },
  { messages: [{ role: 'user', content: [{ text: 'Hi' }] }], inferenceConfig: { maxTokens: 100 } },
  { input: 'Hi', max_output_tokens: 100 },
  { input: 'Hi' },
  { prompt: 'Hi', max_tokens: 100 },
  { contents: [{ parts: [{ text: 'Hi' }] }], generationConfig: { maxOutputTokens: 100 } },
  { content: { parts: [{ text: 'Hi' }] } },
  { message: 'Hi', max_tokens: 100 },
  { texts: ['Hi'], input_type: 'search_query' },
  { query: 'Hi', documents: ['a'] },
];

/** Far more than any call here uses. */
const WINDOW = 10_000_000;
const FACTS = { contextWindow: WINDOW, maxOutput: 1_000, reasoning: false };

/** A route of a provider with a call that its dialect takes. */
type Endpoint = { readonly provider: Provider; readonly route: Route; readonly body: JsonObject };

/** A route for Claude alone gets its prefix in front of other names. */
const pathOf = ({ path }: Route, model: string): string =>
  path
    .replace(/(models?|deployments)\/\*(?=[/:])/i, `$1/${model.replaceAll('/', '%2F')}`)
    .replace(/[^/]*claude-\*/, (pattern) =>
      model.includes(CLAUDE) ? model : pattern.replace(/\*$/, model).replace('*', 'us'),
    )
    .replaceAll('*', 'v1');
const CLAUDE = 'anthropic.claude-';

/** A call as its dialect takes it: Converse has no field for the model. */
const callOf = ({ dialect }: Route, model: string, body: JsonObject): JsonObject =>
  dialect.id === 'bedrock-converse' ? body : { model, ...body };

const facts = (route: Route, model: string, body: JsonObject) => ({
  path: pathOf(route, model),
  bytes: Buffer.byteLength(JSON.stringify(body)),
  facts: FACTS,
});

const endpoints: readonly Endpoint[] = [...BUILT_IN_PROVIDERS.values()].flatMap((provider) =>
  provider.routes
    .filter(({ dialect }) => dialect.spend !== undefined)
    .map((route) => {
      const body = CALLS.find((call) => {
        const judged = route.dialect.spend?.boundBody(callOf(route, 'm', call), facts(route, 'm', call));
        return judged && 'bound' in judged && judged.bound.inputTokens > 0;
      });
      return { provider, route, body: body ?? {} };
    }),
);

/**
 * Endpoints on which every call is free, whose path names a model without a price, that cost images or characters, or whose input is always the
 * whole window.
 */
const WITHOUT_A_CALL =
  /[cC]ount_?[tT]okens$|\/tunedModels\/|\/images\/generations$|\/audio\/speech$|:predict$|\/realtime$/;

test('every other endpoint that a spend limit allows has a call in this file', () => {
  const without = endpoints.filter(({ body }) => Object.keys(body).length === 0);
  const named = without.map(({ provider, route }) => `${provider.id} ${route.path}`);
  expect(named.filter((name) => !WITHOUT_A_CALL.test(name))).toEqual([]);
});

const metered = endpoints.filter(({ body }) => Object.keys(body).length > 0);

/** The models of the bundled lists, by the name that they have for a provider. */
const listedBy = (name = '') =>
  BUNDLED_PRICES.layers.flat().flatMap(({ providers }) => providers.get(name)?.models ?? []);

const listedModels = ({ priceList }: Provider): readonly string[] => listedBy(priceList).map(({ id }) => id);

const spendAt = (provider: Provider, route: Route, model: string): Spend => {
  const path = pathOf(route, model);
  expect(dialectOf(provider, path)).toBe(route.dialect);
  const spend = spendOf(provider, path);
  if (!spend) throw new Error(`${provider.id} ${path}`);
  return spend;
};

describe.each(
  metered.map((endpoint) => ({ ...endpoint, name: `${endpoint.provider.id} ${endpoint.route.path}` })),
)('$name', ({ provider, route, body }) => {
  const listed = listedModels(provider).filter(
    (model) => !route.path.includes(CLAUDE) || model.includes(CLAUDE),
  );
  const models = ['some-model', ...listed];

  test("follows its vendor's rules", () => {
    const rules: VendorRules = {
      addedInput: 12_345,
      coversReasoning: () => false,
      refusedModels: /refused-model$/,
      feePerRequest: () => true,
    };
    const spend = spendAt({ ...provider, rules }, route, 'some-model');
    const call = callOf(route, 'some-model', body);
    const plain = route.dialect.spend?.boundBody(call, facts(route, 'some-model', call));
    const ruled = spend.bound(call, facts(route, 'some-model', call));
    if (!plain || 'unbounded' in plain || 'unbounded' in ruled) throw new Error('has no bound');
    expect(ruled.bound.inputTokens).toBeGreaterThanOrEqual(plain.bound.inputTokens + 12_345);
    expect(ruled.bound.fees).toEqual({ ...plain.bound.fees, requests: 1 });
    if (ruled.bound.output) expect(ruled.bound.output.coversReasoning).toBe(false);
    const refused = callOf(route, 'refused-model', body);
    expect(spend.bound(refused, facts(route, 'refused-model', refused))).toMatchObject({
      unbounded: { param: 'model' },
    });
  });

  test("follows its own vendor's rules for each listed model", () => {
    const { rules } = provider;
    for (const model of models) {
      const call = callOf(route, model, body);
      const at = facts(route, model, call);
      const ruled = spendAt(provider, route, model).bound(call, at);
      const plain = route.dialect.spend?.boundBody(call, at);
      const isRefused = rules.refusedModels?.test(model.toLowerCase()) || !plain || 'unbounded' in plain;
      expect('unbounded' in ruled, `${model} is refused`).toBe(isRefused);
      if (isRefused || 'unbounded' in ruled) continue;
      const added =
        typeof rules.addedInput === 'number'
          ? rules.addedInput
          : rules.addedInput(route.path.includes(CLAUDE) ? CLAUDE : model);
      const least = added === 'whole window' ? WINDOW : plain.bound.inputTokens + added;
      expect(ruled.bound.inputTokens, model).toBeGreaterThanOrEqual(least);
      expect(ruled.bound.fees.requests ?? 0, model).toBe(rules.feePerRequest?.(model) ? 1 : 0);
      if (ruled.bound.output && rules.coversReasoning?.(model) === false) {
        expect(ruled.bound.output.coversReasoning, model).toBe(false);
      }
    }
  });

  test('holds money for each listed model, or refuses it', () => {
    const unheld = models.filter((model) => {
      const path = pathOf(route, model);
      const call = { spend: spendOf(provider, path), body: callOf(route, model, body), path, sizeOf };
      const held = worstCase(provider, call, { costLimited: true, at: NOW });
      if ('refusal' in held) return !['cost_unbounded', 'price_unknown'].includes(held.refusal.code);
      const { fixedMicrousd = 0, ratePerMtok = 0, askedTokens = 0 } = held.hold ?? {};
      return fixedMicrousd + (ratePerMtok * askedTokens) / 1e6 <= 0;
    });
    expect(unheld).toEqual([]);
  });
});

const sizeOf = (body: JsonObject) => Buffer.byteLength(JSON.stringify(body));

/** The refusal of a chat call of a model; undefined if it passes. */
function refusalOf(id: string, path: string, model: string): string | undefined {
  const provider = BUILT_IN_PROVIDERS.get(id);
  const body = { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 100 };
  const call = provider && { spend: spendOf(provider, path), body, path, sizeOf };
  const held = call && worstCase(provider, call, { costLimited: true, at: NOW });
  return held && 'refusal' in held ? held.refusal.code : undefined;
}

test.each([
  ['mistral', '/v1/chat/completions', 'mistral-ocr-latest'],
  ['mistral', '/v1/chat/completions', 'voxtral-mini-2602'],
  ['openai', '/v1/chat/completions', 'whisper-1'],
  ['openai', '/v1/chat/completions', 'text-embedding-3-small'],
  ['xai', '/v1/chat/completions', 'grok-voice-latest'],
  ['groq', '/openai/v1/chat/completions', 'whisper-large-v3'],
  ['openrouter', '/api/v1/chat/completions', 'google/gemini-3-pro-image-preview'],
  ['openrouter', '/api/v1/chat/completions', 'openai/gpt-5-image'],
  ['openrouter', '/api/v1/messages', 'openai/gpt-5-image-mini'],
  ['openrouter', '/api/v1/responses', 'openai/gpt-audio'],
])('%s %s: %s is refused, because its price is in units other than text tokens', (id, path, model) => {
  expect(refusalOf(id, path, model)).toBe('cost_unbounded');
});

test.each([
  ['mistral', '/v1/chat/completions', 'mistral-large-2512'],
  ['openai', '/v1/chat/completions', 'gpt-4o-mini'],
  ['cerebras', '/v1/chat/completions', 'gpt-oss-120b'],
])('%s %s: %s passes', (id, path, model) => {
  expect(refusalOf(id, path, model)).toBeUndefined();
});

/** Units of the list that no dialect bounds: hours of sound, pages, messages to a voice. */
const UNBOUNDED_UNITS = /^(input_)?audio_hours$|_kpages$|^input_text_messages_kcount$/;

test('PROVIDERS_FILE can state every unit of the price list that a dialect bounds', () => {
  const named = new Set([
    ...TOKEN_KINDS.map((kind) => `${kind}_mtok`),
    ...FEE_UNITS.map((unit) => `${unit}_kcount`),
    'input_mchars',
  ]);
  const units = [...BUILT_IN_PROVIDERS.values()]
    .flatMap(({ priceList }) => listedBy(priceList))
    .flatMap(({ prices }) => (Array.isArray(prices) ? prices.map((each) => each.prices) : [prices]))
    .flatMap((price) => Object.keys(price));
  expect(units.length).toBeGreaterThan(1_000);
  expect([...new Set(units)].filter((unit) => !named.has(unit) && !UNBOUNDED_UNITS.test(unit))).toEqual([]);
});
