import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyConfig, dialectOf, type JsonObject, namesRead } from '../src/index.ts';
import { known } from './known.ts';

const apply = (id: string, path: string, config: JsonObject, body: JsonObject) =>
  applyConfig(dialectOf(known(id), path), config, { path, body });

const GEMINI = '/v1beta/models/gemini-2.5-flash:generateContent';

type Row = [
  what: string,
  provider: string,
  path: string,
  config: JsonObject,
  sent: JsonObject,
  body: JsonObject,
];

const ROWS: Row[] = [
  [
    'max_tokens to max_completion_tokens',
    'openai',
    '/v1/chat/completions',
    { max_tokens: 9 },
    { max_tokens: 99, n: 1 },
    { max_completion_tokens: 9, n: 1 },
  ],
  [
    'every spelling the holder sends',
    'openai',
    '/v1/chat/completions',
    { max_completion_tokens: 9 },
    { max_tokens: 1, max_completion_tokens: 2, max_output_tokens: 3 },
    { max_completion_tokens: 9 },
  ],
  [
    "the API's own name before a generic one",
    'openai',
    '/v1/chat/completions',
    { max_tokens: 5, max_completion_tokens: 9 },
    {},
    { max_completion_tokens: 9 },
  ],
  [
    'stop_sequences to stop',
    'openai',
    '/v1/chat/completions',
    { stop_sequences: ['x'] },
    { stop: 'y' },
    { stop: ['x'] },
  ],
  [
    'unknown keys as given',
    'openai',
    '/v1/chat/completions',
    { reasoning_effort: 'low' },
    { reasoning_effort: 'high' },
    { reasoning_effort: 'low' },
  ],
  [
    'groq like openai',
    'groq',
    '/openai/v1/chat/completions',
    { max_tokens: 9 },
    {},
    { max_completion_tokens: 9 },
  ],
  ['xai like openai', 'xai', '/v1/chat/completions', { max_tokens: 9 }, {}, { max_completion_tokens: 9 }],
  [
    'the model, and its fallbacks gone',
    'openrouter',
    '/api/v1/chat/completions',
    { model: 'a/b' },
    { model: 'x/y', models: ['x/y', 'z'] },
    { model: 'a/b' },
  ],
  [
    'fallbacks the config itself gives',
    'openrouter',
    '/api/v1/chat/completions',
    { model: 'a/b', models: ['c/d'] },
    { models: ['x/y'] },
    { model: 'a/b', models: ['c/d'] },
  ],
  [
    'the model on Anthropic, and its fallbacks gone',
    'anthropic',
    '/v1/messages',
    { model: 'm' },
    { model: 'o', fallbacks: [{ model: 'o' }] },
    { model: 'm' },
  ],
  [
    'max_tokens kept where it is the name',
    'deepseek',
    '/chat/completions',
    { max_tokens: 9 },
    { max_completion_tokens: 99 },
    { max_tokens: 9 },
  ],
  [
    'max_completion_tokens to max_tokens',
    'together',
    '/v1/chat/completions',
    { max_completion_tokens: 9 },
    {},
    { max_tokens: 9 },
  ],
  [
    'one bound only, where both are refused',
    'fireworks',
    '/inference/v1/chat/completions',
    { max_tokens: 9 },
    { max_completion_tokens: 99 },
    { max_tokens: 9 },
  ],
  ['perplexity', 'perplexity', '/chat/completions', { max_output_tokens: 9 }, {}, { max_tokens: 9 }],
  [
    "cohere's OpenAI endpoint",
    'cohere',
    '/compatibility/v1/chat/completions',
    { max_completion_tokens: 9 },
    {},
    { max_tokens: 9 },
  ],
  [
    "mistral's bound and seed",
    'mistral',
    '/v1/chat/completions',
    { max_completion_tokens: 9, seed: 1 },
    { random_seed: 2 },
    { max_tokens: 9, random_seed: 1 },
  ],
  [
    "mistral's fill-in-the-middle",
    'mistral',
    '/v1/fim/completions',
    { max_tokens: 9, seed: 1 },
    {},
    { max_tokens: 9, random_seed: 1 },
  ],
  [
    'completions',
    'openai',
    '/v1/completions',
    { max_completion_tokens: 9 },
    { max_tokens: 99 },
    { max_tokens: 9 },
  ],
  [
    'responses',
    'openai',
    '/v1/responses',
    { max_tokens: 9 },
    { max_output_tokens: 99, max_completion_tokens: 98 },
    { max_output_tokens: 9 },
  ],
  [
    'azure v1',
    'azure-openai',
    '/openai/v1/responses',
    { max_tokens: 9, model: 'd' },
    { model: 'e' },
    { max_output_tokens: 9, model: 'd' },
  ],
  [
    'embeddings without what shapes output',
    'openai',
    '/v1/embeddings',
    { max_tokens: 9, temperature: 0, model: 'm', dimensions: 4 },
    { input: 'x', model: 'n' },
    { input: 'x', model: 'm', dimensions: 4 },
  ],
  [
    'messages',
    'anthropic',
    '/v1/messages',
    { max_completion_tokens: 9, stop: 'x', top_k: 1 },
    { max_tokens: 99, stop_sequences: ['y'] },
    { max_tokens: 9, stop_sequences: ['x'], top_k: 1 },
  ],
  [
    'a token count without a bound',
    'anthropic',
    '/v1/messages/count_tokens',
    { max_tokens: 9, model: 'm' },
    { model: 'o' },
    { model: 'm' },
  ],
  [
    'cohere v2',
    'cohere',
    '/v2/chat',
    { max_tokens: 9, top_p: 0.5, top_k: 3, stop: 'x' },
    { p: 0.9, k: 100, stop_sequences: ['y'] },
    { max_tokens: 9, p: 0.5, k: 3, stop_sequences: ['x'] },
  ],
  [
    'cohere v1 under its own names',
    'cohere',
    '/v1/chat',
    { p: 0.5, k: 3, stop_sequences: ['x'] },
    { p: 0.9, k: 9 },
    { p: 0.5, k: 3, stop_sequences: ['x'] },
  ],
  [
    'cohere embed',
    'cohere',
    '/v2/embed',
    { max_tokens: 9, truncate: 'END' },
    { truncate: 'NONE' },
    { truncate: 'END' },
  ],
  ['cohere rerank', 'cohere', '/v2/rerank', { top_n: 2, temperature: 1 }, { top_n: 9 }, { top_n: 2 }],
  [
    'every generic name of Gemini',
    'google',
    GEMINI,
    {
      max_tokens: 9,
      temperature: 0,
      top_p: 0.5,
      top_k: 3,
      stop: 'x',
      n: 1,
      seed: 7,
      presence_penalty: 1,
      frequency_penalty: 2,
    },
    {},
    {
      generationConfig: {
        maxOutputTokens: 9,
        temperature: 0,
        topP: 0.5,
        topK: 3,
        stopSequences: ['x'],
        candidateCount: 1,
        seed: 7,
        presencePenalty: 1,
        frequencyPenalty: 2,
      },
    },
  ],
  [
    'Gemini under snake_case names',
    'google',
    GEMINI,
    { max_tokens: 9 },
    { generation_config: { max_output_tokens: 99, top_k: 1 }, generationConfig: { maxOutputTokens: 98 } },
    { generationConfig: { top_k: 1, maxOutputTokens: 9 } },
  ],
  [
    "Gemini's own shape, deep, whatever the spelling",
    'google',
    GEMINI,
    { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } },
    { generation_config: { thinking_config: { thinking_budget: 9, include_thoughts: true } } },
    { generationConfig: { thinkingConfig: { include_thoughts: true, thinkingBudget: 0 } } },
  ],
  [
    "Gemini's own shape before a generic name",
    'google',
    GEMINI,
    { generation_config: { max_output_tokens: 9 }, max_tokens: 5 },
    {},
    { generation_config: { max_output_tokens: 9 } },
  ],
  [
    'a field that is no object',
    'google',
    GEMINI,
    { max_tokens: 9 },
    { generationConfig: [1], generation_config: 'x' },
    { generationConfig: { maxOutputTokens: 9 } },
  ],
  [
    "Gemini's system instruction",
    'google',
    GEMINI,
    { systemInstruction: { parts: [{ text: 'a' }] } },
    { system_instruction: { parts: [{ text: 'b' }] } },
    { systemInstruction: { parts: [{ text: 'a' }] } },
  ],
  [
    "names in a schema as the caller's own",
    'google',
    GEMINI,
    { generationConfig: { responseJsonSchema: { properties: { first_name: 1 } } } },
    { generationConfig: { responseJsonSchema: { properties: { firstName: 2 } } } },
    { generationConfig: { responseJsonSchema: { properties: { firstName: 2, first_name: 1 } } } },
  ],
  [
    "Gemini's token count",
    'google',
    '/v1beta/models/g:countTokens',
    { max_tokens: 9 },
    { contents: [] },
    { contents: [] },
  ],
  [
    "camelCase on Gemini's OpenAI endpoint",
    'google',
    '/v1beta/openai/chat/completions',
    { max_tokens: 9 },
    { maxCompletionTokens: 99, maxTokens: 98 },
    { max_completion_tokens: 9 },
  ],
  [
    'deep merge, arrays replaced',
    'openai',
    '/v1/chat/completions',
    { a: { b: { c: 1 }, d: [1] } },
    { a: { b: { e: 2 }, d: [2, 3], f: 4 } },
    { a: { b: { e: 2, c: 1 }, d: [1], f: 4 } },
  ],
  [
    'an object over a scalar, a scalar over an object',
    'openai',
    '/v1/chat/completions',
    { a: { b: 1 }, c: null },
    { a: [], c: { d: 1 } },
    { a: { b: 1 }, c: null },
  ],
];

describe('config laid over a body', () => {
  it.each(ROWS)('maps %s (%s %s)', (_what, provider, path, config, sent, body) => {
    expect(apply(provider, path, config, sent)).toEqual({ path, body });
  });

  it('is laid as given where the endpoint is unknown', () => {
    expect(apply('openai', '/v1/audio/speech', { model: 'm', max_tokens: 1 }, { voice: 'x' }).body).toEqual({
      voice: 'x',
      model: 'm',
      max_tokens: 1,
    });
  });

  it('gives no body to a call without one', () => {
    const path = '/v1/models/x:generateContent';
    expect(
      applyConfig(dialectOf(known('google'), path), { model: 'y', n: 1 }, { path, body: undefined }),
    ).toEqual({
      path: '/v1/models/y:generateContent',
      body: undefined,
    });
  });

  it('reaches the dialect however a holder with a wide grant spells its path', () => {
    for (const path of ['/v1/chat/completions/', '/V1/Chat/Completions', '/v1;a=b/chat/completions']) {
      expect(apply('openai', path, { max_tokens: 9 }, { max_completion_tokens: 99 }).body).toEqual({
        max_completion_tokens: 9,
      });
    }
    const encoded = '/v1beta/models/big%3AgenerateContent';
    expect(apply('google', encoded, { model: 'small' }, {}).path).toBe(
      '/v1beta/models/small%3AgenerateContent',
    );
  });

  it('names every field it reads, so that look-alikes can be refused', () => {
    const names = namesRead(dialectOf(known('openai'), '/v1/chat/completions'), {
      max_tokens: 1,
      model: 'm',
      a: { b: [{ c: 1 }] },
    });
    expect([...names].sort()).toEqual(
      [
        'a',
        'b',
        'fallbacks',
        'max_completion_tokens',
        'max_output_tokens',
        'max_tokens',
        'model',
        'models',
      ].sort(),
    );
  });
});

describe('config.model in a path', () => {
  it.each([
    ['gemini-x', GEMINI, '/v1beta/models/gemini-x:generateContent'],
    ['models/gemini-x', GEMINI, '/v1beta/models/gemini-x:generateContent'],
    ['tunedModels/mine', '/v1/models/a:streamGenerateContent', '/v1/tunedModels/mine:streamGenerateContent'],
    ['a/../b:c', GEMINI, '/v1beta/models/a/../b%3Ac:generateContent'],
    ['a?key=1', GEMINI, '/v1beta/models/a%3Fkey%3D1:generateContent'],
  ])('writes %s into %s', (model, path, written) => {
    expect(apply('google', path, { model }, {}).path).toBe(written);
  });

  it('replaces the model wherever a Gemini body repeats it, and adds it nowhere', () => {
    const model = 'small';
    expect(apply('google', GEMINI, { model }, { model: 'models/big', contents: [] }).body).toEqual({
      model: 'models/small',
      contents: [],
    });
    expect(
      apply(
        'google',
        '/v1/models/a:batchEmbedContents',
        { model },
        { requests: [{ model: 'models/big' }, {}, 1] },
      ).body,
    ).toEqual({ requests: [{ model: 'models/small' }, {}, 1] });
    expect(
      apply(
        'google',
        '/v1/models/a:countTokens',
        { model },
        { generate_content_request: { model: 'models/big' } },
      ).body,
    ).toEqual({ generate_content_request: { model: 'models/small' } });
  });

  it('writes an Azure deployment, whatever the case of the path', () => {
    const { path, body } = apply(
      'azure-openai',
      '/openai/Deployments/big/chat/completions',
      { model: 'small', max_tokens: 9 },
      { model: 'big' },
    );
    expect(path).toBe('/openai/Deployments/small/chat/completions'.replace('Deployments', 'deployments'));
    expect(body).toEqual({ model: 'small', max_completion_tokens: 9 });
  });

  it('never throws, whatever the model', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.boolean(), (text, cut) => {
        expect(() => apply('google', GEMINI, { model: cut ? `${text}\ud800` : text }, {})).not.toThrow();
      }),
    );
  });
});

describe('config against any body', () => {
  const name = fc.constantFrom(
    'max_tokens',
    'max_completion_tokens',
    'maxOutputTokens',
    'generationConfig',
    'generation_config',
    'model',
    'stop',
    'n',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'a',
    'hasOwnProperty',
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.integer(),
      fc.constant(null),
      fc.array(fc.integer(), { maxLength: 2 }),
      tie('object'),
    ),
    object: fc
      .array(fc.tuple(name, tie('any')), { maxLength: 5 })
      .map((entries) => Object.fromEntries(entries)),
  }));
  const object = value.object as fc.Arbitrary<JsonObject>;
  const target = fc.constantFrom<[string, string]>(
    ['openai', '/v1/chat/completions'],
    ['openai', '/v1/audio/speech'],
    ['google', GEMINI],
    ['cohere', '/v2/chat'],
    ['anthropic', '/v1/messages'],
    ['azure-openai', '/openai/deployments/d/chat/completions'],
  );

  it('leaves both as they were and no prototype touched', () => {
    fc.assert(
      fc.property(target, object, object, ([provider, path], config, sent) => {
        const before = JSON.stringify([config, sent]);
        const prototype = Reflect.ownKeys(Object.prototype).length;
        const { body } = apply(provider, path, config, sent);
        expect(JSON.stringify([config, sent])).toBe(before);
        expect(Reflect.ownKeys(Object.prototype).length).toBe(prototype);
        expect(Object.getPrototypeOf(body)).toBe(Object.prototype);
      }),
      { numRuns: 1000 },
    );
  });

  it("wins: the provider reads one bound, the config's, whatever the holder sent", () => {
    const spellings = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
    const sent = fc.dictionary(fc.constantFrom(...spellings), fc.integer({ min: 10 }));
    const nested = fc.dictionary(
      fc.constantFrom('maxOutputTokens', 'max_output_tokens'),
      fc.integer({ min: 10 }),
    );
    const boundsIn = (body: JsonObject): unknown[] =>
      Object.entries(body).flatMap(([key, held]) => {
        if (/^generation_?config$/i.test(key)) return boundsIn(held as JsonObject);
        return [...spellings, 'maxOutputTokens'].includes(key) ? [held] : [];
      });
    const endpoint = target.filter(([, path]) => path !== '/v1/audio/speech');
    fc.assert(
      fc.property(
        endpoint,
        fc.constantFrom(...spellings),
        sent,
        nested,
        nested,
        ([provider, path], bound, ...bodies) => {
          const [flat, camel, snake] = bodies;
          const body =
            provider === 'google' ? { ...flat, generationConfig: camel, generation_config: snake } : flat;
          expect(boundsIn(apply(provider, path, { [bound]: 5 }, body).body)).toEqual([5]);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('wins: laying it over twice changes nothing more', () => {
    fc.assert(
      fc.property(target, object, object, ([provider, path], config, sent) => {
        const once = apply(provider, path, config, sent);
        expect(apply(provider, once.path, config, once.body)).toEqual(once);
      }),
      { numRuns: 1000 },
    );
  });

  it('wins: every field it gives stands in the body as given, where nothing is renamed', () => {
    const within = (over: unknown, body: unknown): boolean =>
      typeof over === 'object' && over !== null && !Array.isArray(over)
        ? Object.entries(over).every(
            ([key, inner]) => Object.hasOwn(body as object, key) && within(inner, (body as JsonObject)[key]),
          )
        : JSON.stringify(over) === JSON.stringify(body);
    fc.assert(
      fc.property(object, object, (config, sent) => {
        expect(within(config, apply('openai', '/v1/audio/speech', config, sent).body)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps a field named __proto__ an ordinary one', () => {
    const hostile = JSON.parse(
      '{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}',
    ) as JsonObject;
    const { body } = apply('openai', '/v1/chat/completions', hostile, hostile);
    expect(JSON.stringify(body)).toBe(JSON.stringify(hostile));
    expect(({} as JsonObject).admin).toBeUndefined();
    expect(body.admin).toBeUndefined();
  });
});
