import { describe, expect, it } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  CREDENTIAL_QUERY_KEYS,
  checkCallPath,
  checkPathPattern,
  configMatchesPaths,
  credentialOf,
  dialectOf,
  HOLDER_CREDENTIAL_HEADERS,
} from '../src/index.ts';
import { known } from './apply.ts';

const all = [...BUILT_IN_PROVIDERS.values()];

describe('every built-in provider', () => {
  it('is called over https at a bare origin, or leaves its address to the operator', () => {
    for (const { id, baseUrl } of all) {
      if (id === 'azure-openai') expect(baseUrl).toBeUndefined();
      else expect(baseUrl).toBe(new URL(baseUrl ?? '').origin);
      expect(baseUrl ?? 'https:').toMatch(/^https:/);
    }
  });

  it('takes its key in a header that holders cannot set', () => {
    for (const { credential, routes } of all) {
      const headers = [credential, ...routes.flatMap((route) => route.credential ?? [])].map(
        ({ header }) => header,
      );
      for (const header of headers) expect(HOLDER_CREDENTIAL_HEADERS).toContain(header);
    }
  });

  it('has paths that a grant may hold, each of which finds its own dialect', () => {
    for (const provider of all) {
      for (const { path, dialect } of provider.routes) {
        expect(checkPathPattern(path)).toBeUndefined();
        const called = path.replaceAll('*', 'x');
        expect(checkCallPath(called)).toBeUndefined();
        expect(dialectOf(provider, called)).toBe(dialect);
      }
    }
  });
});

describe('what is known of a path', () => {
  it('is its dialect, and nothing for other endpoints', () => {
    expect(dialectOf(known('openai'), '/v1/chat/completions')?.id).toBe('openai-chat');
    expect(dialectOf(known('google'), '/v1beta/models/g-1.5:streamGenerateContent')?.id).toBe(
      'gemini-generate',
    );
    expect(dialectOf(known('openai'), '/v1/images/edits')).toBeUndefined();
    expect(dialectOf(known('openai'), '/v1/chat/completions/abc')).toBeUndefined();
  });

  it('is its credential: a bearer key where Google follows OpenAI, its own header elsewhere', () => {
    expect(credentialOf(known('google'), '/v1beta/openai/chat/completions')).toEqual({
      header: 'authorization',
      scheme: 'Bearer',
    });
    expect(credentialOf(known('google'), '/v1beta/models')).toEqual({ header: 'x-goog-api-key' });
  });

  it('never has a credential key in upper case, since keys are compared in lower case', () => {
    for (const key of CREDENTIAL_QUERY_KEYS) expect(key).toBe(key.toLowerCase());
    for (const key of ['key', 'api_key', 'access_token']) expect(CREDENTIAL_QUERY_KEYS).toContain(key);
  });
});

describe('a config and the paths of its grant', () => {
  const gemini = (model: string) => `/v1beta/models/${model}:generateContent`;

  it.each([
    ['google', 'b', [gemini('*')]],
    ['google', 'b', [gemini('b')]],
    ['google', 'models/b', [gemini('a'), gemini('b')]],
    ['google', 'gemini-2.5-pro', ['/v1beta/models/gemini-2*']],
    ['google', 'b', ['/v1beta/models/*']],
    ['google', 'b', ['/v1beta/*/*']],
    ['google', 'b', ['/v1beta/openai/chat/completions', '/v1beta/models']],
    ['azure-openai', 'b', ['/openai/deployments/*/chat/completions']],
    ['openai', 'any/thing', ['/v1/chat/completions']],
  ])('fit together: %s, model %s, paths %j', (provider, model, paths) => {
    expect(configMatchesPaths(known(provider), { model }, paths)).toBe(true);
  });

  it.each([
    ['google', 'b', [gemini('a')], gemini('a')],
    ['google', 'b', [gemini('b'), '/v1beta/models/a:countTokens'], '/v1beta/models/a:countTokens'],
    ['google', '../x', [gemini('*')], gemini('*')],
    ['google', 'a/b', [gemini('*')], gemini('*')],
    ['google', 'a?key=1', [gemini('*')], gemini('*')],
    ['google', '', [gemini('*')], gemini('*')],
    ['google', 7, [gemini('*')], gemini('*')],
    ['google', null, [gemini('*')], gemini('*')],
    ['google', 'tunedModels/x', [gemini('*')], gemini('*')],
    ['google', 'gemini-3', ['/v1beta/models/gemini-2*'], '/v1beta/models/gemini-2*'],
    [
      'azure-openai',
      '..',
      ['/openai/deployments/*/chat/completions'],
      '/openai/deployments/*/chat/completions',
    ],
    ['azure-openai', 'b', ['/openai/deployments/a/embeddings'], '/openai/deployments/a/embeddings'],
  ])('do not: %s, model %j, paths %j', (provider, model, paths, path) => {
    expect(configMatchesPaths(known(provider), { model }, paths)).toEqual({ path });
  });

  it('need no model', () => {
    expect(configMatchesPaths(known('google'), { max_tokens: 1 }, [gemini('a')])).toBe(true);
  });
});
