import { describe, expect, it, test } from 'vitest';
import { BUILT_IN_PROVIDERS, strayModel, strayPath } from '../src/index.ts';

const MINE = new Set(['small', 'tiny']);

const paramOf = (id: string, path: string, body: object | undefined, method = 'POST', query = '') => {
  const provider = BUILT_IN_PROVIDERS.get(id);
  if (!provider) throw new Error(id);
  return strayModel(provider, { method, path, query, body: body as never }, MINE)?.param;
};

/** The path of an endpoint with its model, where the path has it. */
const withModel = (path: string, model: string) => path.replaceAll('*', model);

const endpoints = [...BUILT_IN_PROVIDERS.values()].flatMap((provider) =>
  provider.routes.map(({ path, dialect }) => [`${provider.id} ${path}`, provider, path, dialect] as const),
);

test('there is an endpoint of each place of a model', () => {
  expect(endpoints.filter(([, , , { modelInPath }]) => modelInPath).length).toBeGreaterThan(10);
  expect(endpoints.filter(([, , , { modelInPath }]) => !modelInPath).length).toBeGreaterThan(30);
});

describe.each(endpoints)('%s', (_name, provider, pattern, dialect) => {
  const judge = (path: string, body: object | undefined) =>
    strayModel(provider, { method: 'POST', path, query: '', body: body as never }, MINE)?.param;

  it('serves an allowed model, and refuses every other one and none', () => {
    if (dialect.modelInPath) {
      // Bedrock's InvokeModel is known for Claude's names only.
      const models = [...(pattern.split('*').length > 2 || pattern.includes('claude') ? [] : ['small'])];
      for (const model of models) expect(judge(withModel(pattern, model), {})).toBeUndefined();
      for (const model of ['large', 'small%2C', 'SMALL', 'x', 'small;a=b', 'small%20'])
        expect(judge(withModel(pattern, model), {}), model).toBeDefined();
      return;
    }
    expect(judge(pattern, { model: 'small' })).toBeUndefined();
    for (const body of [
      undefined,
      {},
      { model: 'large' },
      { model: 'Small' },
      { model: ['small'] },
      { model: null },
      { model: 'small ' },
    ])
      expect(judge(pattern, body), JSON.stringify(body)).toBe('model');
  });
});

describe('a model that the path names', () => {
  const gemini = '/v1beta/models/small:generateContent';
  const vertex = (model: string) =>
    `/v1/projects/p/locations/global/publishers/google/models/${model}:generateContent`;

  it.each([
    ['google', gemini, {}, undefined],
    ['google', gemini, { model: 'models/small' }, undefined],
    ['google', gemini, { model: 'models/large' }, 'model'],
    ['google', gemini, { model: 'large' }, 'model'],
    ['google', '/v1beta/tunedModels/small:generateContent', {}, 'model'],
    ['google', '/v1beta/models/large%3AgenerateContent', {}, 'model'],
    ['google', '/v1beta/models/a:batchEmbedContents', { requests: [{ model: 'models/small' }] }, 'model'],
    ['google', '/v1beta/models/small:batchEmbedContents', { requests: [{ model: 'models/large' }] }, 'model'],
    [
      'google',
      '/v1beta/models/small:batchEmbedContents',
      { requests: [{ model: 'models/small' }] },
      undefined,
    ],
    [
      'google',
      '/v1beta/models/small:countTokens',
      { generate_content_request: { model: 'models/large' } },
      'model',
    ],
    ['vertex', vertex('small'), {}, undefined],
    ['vertex', vertex('large'), {}, 'model'],
    [
      'vertex',
      '/v1/projects/models/locations/small/publishers/google/models/large:generateContent',
      {},
      'model',
    ],
    ['bedrock', '/model/small/converse', {}, undefined],
    ['bedrock', '/model/small/converse', { model: 'large' }, 'model'],
    ['bedrock', '/model/large/converse-stream', {}, 'model'],
    ['azure-openai', '/openai/deployments/small/chat/completions', { model: 'small' }, undefined],
    ['azure-openai', '/openai/deployments/small/chat/completions', { model: 'large' }, 'model'],
    ['azure-openai', '/openai/deployments/large/chat/completions', { model: 'small' }, 'model'],
    ['azure-openai', '/openai/Deployments/small/chat/completions', { model: 'small' }, 'model'],
  ])('%s %s %j: %s', (id, path, body, param) => {
    expect(paramOf(id, path, body)).toBe(param);
  });
});

describe('a field that may choose another model is refused', () => {
  const chat = (body: object) =>
    paramOf('openrouter', '/api/v1/chat/completions', { model: 'small', ...body });
  it.each([
    [{ models: ['tiny', 'large'] }, 'models'],
    [{ models: 'tiny' }, 'models'],
    [{ models: ['tiny', 'small'] }, undefined],
    [{ fallbacks: ['tiny'] }, 'fallbacks'],
    [{ preset: 'mine' }, 'preset'],
    [{ plugins: [{ id: 'auto-router', allowed_models: ['large'] }] }, 'plugins'],
    [{ compound_custom: { models: {} } }, 'compound_custom'],
    [{ prompt: { id: 'pmpt_1' } }, 'prompt'],
    [{ prompt: 'Hello' }, undefined],
    [{ tools: [{ type: 'image_generation', model: 'large' }] }, 'tools'],
    [{ tools: [{ type: 'image_generation', model: 'tiny' }] }, undefined],
    [{ tools: [{ type: 'advisor', parameters: { model: 'large' } }] }, 'tools'],
    [
      { tools: [{ type: 'function', function: { name: 'f', parameters: { properties: { model: {} } } } }] },
      undefined,
    ],
    [{ moderation: { model: 'large' } }, 'moderation'],
    [{ metadata: { model: 'large' } }, undefined],
    [{ models: null, fallbacks: null }, undefined],
  ])('%j: %s', (body, param) => {
    expect(chat(body)).toBe(param);
  });

  it('also in the query', () => {
    const path = '/v1/chat/completions';
    expect(paramOf('openai', path, { model: 'small' }, 'POST', 'a=b')).toBeUndefined();
    expect(paramOf('openai', path, { model: 'small' }, 'POST', 'Model=large')).toBe('model');
    expect(paramOf('openai', path, { model: 'small' }, 'POST', 'a=b&%6dodel=large')).toBe('model');
  });
});

it('an endpoint that is not known is refused, unless it is free and names no model', () => {
  expect(paramOf('openai', '/v1/fine_tuning/jobs', { model: 'small' })).toBe('path');
  expect(paramOf('openai', '/v1/batches', {})).toBe('path');
  expect(paramOf('openai', '/v1/models', undefined, 'GET')).toBeUndefined();
});

it('a path on which no call could pass is found before the URL is issued', () => {
  const reason = (id: string, path: string, config = {}, method = 'POST') => {
    const provider = BUILT_IN_PROVIDERS.get(id);
    return provider && strayPath(provider, { method, path, config }, [...MINE])?.param;
  };
  expect(reason('openai', '/v1/chat/completions')).toBeUndefined();
  expect(reason('openai', '/v1/chat/completions', { model: 'tiny' })).toBeUndefined();
  expect(reason('openai', '/v1/chat/completions', { model: 'large' })).toBe('model');
  expect(reason('openai', '/v1/batches')).toBe('path');
  expect(reason('openai', '/v1/models', { model: 'large' }, 'GET')).toBeUndefined();
  expect(reason('openai', '/v1/*')).toBeUndefined();
  expect(reason('google', '/v1beta/models/large:generateContent')).toBe('model');
  expect(reason('google', '/v1beta/models/large:generateContent', { model: 'small' })).toBeUndefined();
});
