import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUILT_IN_PROVIDERS, type JsonObject, type Spend, spendOf as spendOn } from '../../src/index.ts';
import { FACTS, spendOf } from './openai-call.ts';

/** For each endpoint. */
const RUNS = process.env.TEST_ALL ? 400 : 100;

/** Every endpoint of every vendor that money may be spent on. */
const SPENDS = new Map<Spend, { readonly name: string; readonly path: string }>();
for (const provider of BUILT_IN_PROVIDERS.values()) {
  for (const { path } of provider.routes) {
    const concrete = path.replace('*', 'gemini-2.5-flash:generateContent').replace('*', 'x');
    const spend = spendOn(provider, concrete);
    if (spend) SPENDS.set(spend, { name: `${provider.id} ${path}`, path: concrete });
  }
}

/** Names that dialects look for, so that odd values land where they are read. */
const NAME = fc.constantFrom(
  ...['model', 'messages', 'content', 'type', 'tools', 'input', 'prompt', 'n', 'best_of', 'stream', 'text'],
  ...['max_tokens', 'max_completion_tokens', 'maxOutputTokens', 'max_output_tokens', 'max_uses', 'thinking'],
  ...['generationConfig', 'generation_config', 'candidateCount', 'contents', 'parts', 'inlineData', 'source'],
  ...['stream_options', 'include_usage', 'service_tier', 'system', 'image_url', 'url', 'data', 'tool_calls'],
  ...['function', 'arguments', 'texts', 'documents', 'query', 'requests', 'reasoning', 'budget_tokens'],
  ...['usage', 'usageMetadata', 'prompt_tokens', 'completion_tokens', 'input_tokens', 'output_tokens'],
  ...['choices', 'finish_reason', 'candidates', 'response', 'message', 'error', 'status', 'output', 'meta'],
  ...[
    'billed_units',
    'prompt_tokens_details',
    'cached_tokens',
    'promptTokenCount',
    'totalTokenCount',
    'delta',
  ],
  ...['__proto__', 'constructor', 'toString', 'length', 'code', 'x_groq', 'iterations', 'server_tool_use'],
);
const WORD = fc.constantFrom(
  ...['message', 'message_start', 'message_delta', 'message_stop', 'response.completed', 'base64', 'image'],
  ...['text', 'document', 'tool_use', 'function', 'custom', 'web_search_20250305', 'web_search', 'image_url'],
  ...['STOP', 'stream-end', 'message-end', 'claude-haiku-4-5', 'gpt-4o', 'data:image/png;base64,AAAA', ''],
);
const ODD_NUMBER = fc.constantFrom(0, -0, -1, 0.5, 1e300, 2 ** 53, Number.POSITIVE_INFINITY, 3);
const { json: JSON_VALUE } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.oneof(WORD, ODD_NUMBER, fc.boolean(), fc.constant(null), fc.string({ unit: 'binary', maxLength: 5 })),
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(NAME, tie('json'), { maxKeys: 6, noNullPrototype: true }),
  ),
}));
const BODY = fc.dictionary(NAME, JSON_VALUE, { maxKeys: 8, noNullPrototype: true });

const isAmount = (value: number) => Number.isFinite(value) && value >= 0;
const isWhole = (value: number) => Number.isInteger(value) && value >= 0;

describe.each([...SPENDS].map(([spend, at]) => ({ ...at, spend })))('$name', ({ spend, path }) => {
  const bounds = (body: JsonObject) => {
    const sent = spend.atStandardPrice?.(body) ?? body;
    return spend.bound(sent, { path, bytes: Buffer.byteLength(JSON.stringify(sent)), facts: FACTS });
  };

  it('bounds any body by amounts that can be priced, or refuses it', () => {
    fc.assert(
      fc.property(BODY, (body) => {
        const judged = bounds(body);
        spend.model(body, path);
        spend.streams(body, path, '');
        if ('unbounded' in judged) {
          expect(judged.unbounded.reason).not.toBe('');
          return;
        }
        const { inputTokens, fees, output } = judged.bound;
        expect([inputTokens, ...Object.values(fees)].every(isWhole)).toBe(true);
        if (output === undefined) return;
        expect([output.asked, output.least, output.times].every(isWhole)).toBe(true);
        expect(output.least).toBeLessThanOrEqual(output.asked);
        const asks = spend.askUsage?.(body) ?? body;
        expect(spend.withOutputBound?.(asks, 7)).toBeTypeOf('object');
      }),
      { numRuns: RUNS },
    );
  });

  it('reads any answer, and any stream, as amounts that can be priced or as nothing', () => {
    fc.assert(
      fc.property(JSON_VALUE, fc.array(fc.oneof(JSON_VALUE, fc.string())), (answer, events) => {
        expect(spend.isOwnError(answer)).toBeTypeOf('boolean');
        const reader = spend.readStream?.();
        for (const event of events) {
          const data = typeof event === 'string' ? event : JSON.stringify(event);
          reader?.event(data, 'response.completed');
          spend.isUsageEvent?.(data);
        }
        for (const told of [spend.readAnswer(answer), reader?.end()]) {
          expect(Object.values(told?.usage ?? {}).every(isAmount)).toBe(true);
        }
      }),
      { numRuns: RUNS },
    );
  });

  it('refuses a body that is nested a thousand times', () => {
    const deep = (levels: number): unknown => (levels === 0 ? 1 : [deep(levels - 1)]);
    expect(() => bounds({ model: 'x', messages: deep(1_000), contents: deep(1_000) })).not.toThrow();
  });
});

describe('malformed bounds', () => {
  const ask = (more: JsonObject) => ({
    model: 'gpt-4o',
    messages: [{ role: 'user', content: 'hi' }],
    ...more,
  });
  const openai = (body: JsonObject) =>
    spendOf('openai', '/v1/chat/completions').bound(body, {
      path: '/v1/chat/completions',
      bytes: 100,
      facts: FACTS,
    });

  it.each<[string, JsonObject]>([
    ['n as text', { n: '100' }],
    ['n as a fraction', { n: 1.5 }],
    ['n without end', { n: Number.POSITIVE_INFINITY }],
    ['max_tokens as text', { max_tokens: '100' }],
    ['max_tokens below zero', { max_tokens: -1 }],
    ['max_tokens of minus zero', { max_tokens: -0 }],
    ['max_tokens without end', { max_tokens: Number.POSITIVE_INFINITY }],
    ['two bounds that differ', { max_tokens: 5, max_completion_tokens: 50_000 }],
    ['stream as text', { stream: 'true' }],
    ['stream as a number', { stream: 1 }],
    ['stream_options as text', { stream: true, stream_options: 'include_usage' }],
    ['another case', { MAX_TOKENS: 5 }],
    ['a tool that the provider runs', { tools: [{ type: 'web_search' }] }],
    ['a tool without a type', { tools: [{}] }],
    ['the prototype', JSON.parse('{"__proto__": {"n": 5}}') as JsonObject],
  ])('%s is refused', (_what, more) => {
    expect(openai(ask(more))).toHaveProperty('unbounded');
  });

  it('an omitted bound becomes one that is sent', () => {
    expect(openai(ask({ max_tokens: null }))).toMatchObject({ bound: { output: { asked: 4_096 } } });
  });
});

describe('counts of modalities that have prices of their own', () => {
  const read = (modality: unknown) =>
    spendOf('google', '/v1beta/models/gemini-2.5-flash:generateContent').readAnswer({
      usageMetadata: {
        promptTokenCount: 100,
        totalTokenCount: 100,
        promptTokensDetails: [{ modality, tokenCount: 100 }],
      },
    });

  it('are read by name only: as numbers, which a query can select, they make the usage unknown', () => {
    expect(read('TEXT')?.usage).toEqual({ input_tokens: 100, output_tokens: 0 });
    expect(read('AUDIO')?.usage).toMatchObject({ input_audio_tokens: 100 });
    expect(read(4)).toBeUndefined();
    expect(read('HOLOGRAM')).toBeUndefined();
  });
});

describe('long texts', () => {
  it('are bounded without counting, at their maximum growth', () => {
    const said = '\ufdfa'.repeat(3 * 1024 * 1024);
    const path = '/v1/messages';
    const body = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: said }] };
    const facts = { ...FACTS, contextWindow: undefined };
    const bytes = Buffer.byteLength(said);
    const judged = spendOf('anthropic', path).bound(body, { path, bytes, facts });
    expect('bound' in judged && judged.bound.inputTokens).toBeGreaterThanOrEqual(11 * bytes);
  });
});
