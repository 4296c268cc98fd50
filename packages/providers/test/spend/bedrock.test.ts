import { describe, expect, it } from 'vitest';
import { dialectOf, type JsonObject, keyProblem, modelFacts, readAwsKey, spendOf } from '../../src/index.ts';
import { apply, known } from '../apply.ts';
import { boundOf, endpoint, FACTS, refusedField } from './native-call.ts';

const MODEL = '/model/us.anthropic.claude-sonnet-4-6';
const converse = endpoint('bedrock', `${MODEL}/converse`);
const stream = endpoint('bedrock', `${MODEL}/converse-stream`);
const invoke = endpoint('bedrock', `${MODEL}/invoke`);

const said = (text: string): JsonObject => ({ messages: [{ role: 'user', content: [{ text }] }] });
const content = (...blocks: object[]): JsonObject => ({ messages: [{ role: 'user', content: blocks }] });
const message = { anthropic_version: 'bedrock-2023-05-31', max_tokens: 9, messages: [] };

describe('Converse', () => {
  it.each<[string, JsonObject]>([
    ['guardrailConfig', { guardrailConfig: { guardrailIdentifier: 'g' } }],
    ['promptVariables', { promptVariables: { a: { text: 'b' } } }],
    [
      'additionalModelRequestFields.anthropic_beta[0]',
      { additionalModelRequestFields: { anthropic_beta: ['x'] } },
    ],
    ['additionalModelRequestFields.max_tokens', { additionalModelRequestFields: { max_tokens: 9 } }],
    ['inferenceConfig.maxTokens', { inferenceConfig: { maxTokens: 1.5 } }],
    ['inferenceConfig.MaxTokens', { inferenceConfig: { MaxTokens: 1 } }],
    ['inferenceConfig', { inferenceConfig: [1] }],
    [
      'toolConfig.tools[0].systemTool',
      { toolConfig: { tools: [{ systemTool: { name: 'nova_grounding' } }] } },
    ],
    ['messages[0].content[0].guardContent', content({ guardContent: { text: { text: 'a' } } })],
    ['messages[0].content[0].cachePoint.ttl', content({ cachePoint: { type: 'default', ttl: '1h' } })],
    ['messages[0].content[0].toolAddition', content({ toolAddition: {} })],
    ['messages[0].content[0].toolResult.content[0].x', content({ toolResult: { content: [{ x: 1 }] } })],
    ['system[0].y', { system: [{ y: 'a' }] }],
    ['model', { ...said('hi'), model: 'm' }],
  ])('refuses %s, whose cost has no bound', (param, body) => {
    expect(refusedField(converse, body)).toBe(param);
  });

  it('counts text by its bytes, an image of Claude at its maximum, and documents as the whole window', () => {
    const few = boundOf(converse, said('hi')).inputTokens;
    expect(boundOf(converse, said('hi there')).inputTokens).toBe(few + 6);
    const image = { image: { format: 'png', source: { bytes: 'A'.repeat(100_000) } } };
    expect(boundOf(converse, content(image)).inputTokens).toBeLessThan(5_200);
    expect(boundOf(converse, content(image)).inputTokens).toBeGreaterThan(4_784);
    const other = endpoint('bedrock', '/model/us.meta.llama4-scout-17b-instruct-v1:0/converse');
    expect(boundOf(other, content(image)).inputTokens).toBe(FACTS.contextWindow);
    for (const kind of ['document', 'video', 'audio'])
      expect(boundOf(converse, content({ [kind]: {} })).inputTokens).toBe(FACTS.contextWindow);
  });

  it('bounds thinking with the output, and leaves the fields of other tiers out', () => {
    const thinking = {
      additionalModelRequestFields: { thinking: { type: 'enabled', budget_tokens: 2_000 } },
    };
    const body = { ...said('hi'), ...thinking, inferenceConfig: { maxTokens: 3_000 } };
    expect(boundOf(converse, body).output).toMatchObject({ asked: 3_000, least: 2_001 });
    expect(
      converse.spend.atStandardPrice?.({
        ...said('hi'),
        serviceTier: { type: 'priority' },
        performanceConfig: { latency: 'optimized' },
      }),
    ).toEqual(said('hi'));
  });

  it('reads its usage, cached tokens included', () => {
    const usage = {
      ...{ inputTokens: 5, outputTokens: 7, totalTokens: 42 },
      ...{ cacheReadInputTokens: 10, cacheWriteInputTokens: 20 },
      cacheDetails: [
        { ttl: '5m', inputTokens: 12 },
        { ttl: '1h', inputTokens: 8 },
      ],
    };
    expect(converse.spend.readAnswer({ usage })?.usage).toEqual({
      ...{ input_tokens: 35, cache_read_tokens: 10, cache_write_tokens: 20, cache_write_1h_tokens: 8 },
      output_tokens: 7,
    });
  });

  it.each<[string, JsonObject]>([
    ['without usage', {}],
    ['with a negative count', { usage: { inputTokens: -1, outputTokens: 1 } }],
    ['at another tier', { usage: { inputTokens: 1, outputTokens: 1 }, serviceTier: { type: 'priority' } }],
    [
      'at optimized latency',
      { usage: { inputTokens: 1, outputTokens: 1 }, performanceConfig: { latency: 'optimized' } },
    ],
    ['of a guardrail', { usage: { inputTokens: 1, outputTokens: 1 }, trace: { guardrail: {} } }],
  ])('reports nothing for an answer %s', (_what, answer) => {
    expect(converse.spend.readAnswer(answer)).toBeUndefined();
  });

  it('takes the generic names of a config to their place, and the model into the path', () => {
    const config = { model: 'global.anthropic.claude-opus-5', max_tokens: 5, stop: 'x', temperature: 0 };
    const body = { ...said('hi'), max_tokens: 9, inferenceConfig: { maxTokens: 7, topP: 1 } };
    expect(apply('bedrock', `${MODEL}/converse`, config, body)).toEqual({
      path: '/model/global.anthropic.claude-opus-5/converse',
      body: {
        ...said('hi'),
        inferenceConfig: { maxTokens: 5, topP: 1, stopSequences: ['x'], temperature: 0 },
      },
    });
  });

  it('streams where its path says so', () => {
    expect(stream.spend.streams({}, stream.path, '')).toBe(true);
    expect(converse.spend.streams({}, converse.path, '')).toBe(false);
  });
});

describe('InvokeModel', () => {
  it('is known for Claude alone, and bounded as messages of Claude', () => {
    expect(dialectOf(known('bedrock'), '/model/amazon.nova-lite-v1:0/invoke')).toBeUndefined();
    for (const model of ['anthropic.claude-opus-5', 'eu.anthropic.claude-haiku-4-5-20251001-v1%3A0'])
      expect(spendOf(known('bedrock'), `/model/${model}/invoke`)).toBeDefined();
    const image = {
      type: 'image',
      source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(90_000) },
    };
    const body = { ...message, messages: [{ role: 'user', content: [image] }] };
    expect(boundOf(invoke, body).inputTokens).toBeLessThan(5_200);
  });

  it('has no tier, passes only betas that change no price, and refuses a cache of an hour', () => {
    expect(invoke.spend.atStandardPrice?.({ ...message, service_tier: 'auto' })).toEqual(message);
    const betas = (...anthropic_beta: unknown[]) => refusedField(invoke, { ...message, anthropic_beta });
    expect(betas('output-128k-2025-02-19')).toBeUndefined();
    expect(betas('output-128k-2025-02-19', 'context-1m-2025-08-07')).toBe('anthropic_beta[1]');
    expect(betas(7)).toBe('anthropic_beta[0]');
    const cached = (ttl?: string) => ({
      ...message,
      system: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } }],
    });
    expect(refusedField(invoke, cached('1h'))).toBe('cache_control.ttl');
    expect([refusedField(invoke, cached('5m')), refusedField(invoke, cached())]).toEqual([
      undefined,
      undefined,
    ]);
  });
});

describe('a model of Bedrock', () => {
  it.each([
    ['anthropic.claude-haiku-4-5-20251001-v1:0', 200_000],
    ['us.anthropic.claude-sonnet-4-6', 1_000_000],
    ['global.anthropic.claude-opus-4-6-v1', 1_000_000],
    ['us.amazon.nova-lite-v1:0', undefined],
  ])('has the facts of its maker: %s', (model, contextWindow) => {
    expect(modelFacts(known('bedrock'), model).contextWindow).toBe(contextWindow);
  });

  it.each([
    'us.anthropic.claude-sonnet-5-5',
    'us-gov.anthropic.claude-opus-4-8',
    'us.anthropic.claude-3-5-sonnet-20241022-v2:0',
    'us.anthropic.claude-opus-4-8:1m',
    'arn:aws:bedrock:us-east-1:1:inference-profile.anthropic.claude-opus-4-8',
    'amazon.nova-lite-v1:0',
  ])('has no listed price if it differs by region, or is another: %s', (model) => {
    expect(known('bedrock').listedModels?.test(model)).toBe(false);
  });
});

describe('a key of AWS', () => {
  const key = { access_key_id: 'AKIDEXAMPLE000000001', secret_access_key: 'a/b+c', region: 'us-east-1' };
  const { region, ...rest } = key;

  it('is read as JSON, with a session token or as a Bedrock API key', () => {
    const read = { accessKeyId: key.access_key_id, secretAccessKey: 'a/b+c', region };
    expect(readAwsKey(JSON.stringify(key, undefined, 2))).toEqual(read);
    expect(readAwsKey(JSON.stringify({ ...key, session_token: 't' }))).toEqual({
      ...read,
      sessionToken: 't',
    });
    expect(readAwsKey(JSON.stringify({ api_key: 'ABSK', region }))).toEqual({ apiKey: 'ABSK', region });
  });

  it.each([
    ['no JSON', 'AKIDEXAMPLE000000001:a/b+c'],
    ['no region', JSON.stringify(rest)],
    ['a region that is no word', JSON.stringify({ ...key, region: 'us-east-1.evil.example/' })],
    ['a region of China', JSON.stringify({ ...key, region: 'cn-north-1' })],
    ['a line break in the secret', JSON.stringify({ ...key, secret_access_key: 'a\r\nx: y' })],
    ['an unknown field', JSON.stringify({ ...key, role: 'admin' })],
  ])('is not read with %s', (_what, text) => {
    expect(readAwsKey(text)).toBeUndefined();
    expect(keyProblem(known('bedrock'), text)).toMatch(/^expected the JSON text/);
  });

  it('cannot be the key of a provider that wants one word', () => {
    expect(keyProblem(known('openai'), JSON.stringify(key))).toBeUndefined();
    expect(keyProblem(known('openai'), JSON.stringify(key, undefined, 1))).toMatch(/without spaces/);
  });
});
