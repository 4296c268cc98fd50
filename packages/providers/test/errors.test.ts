import { describe, expect, test } from 'vitest';
import { BUILT_IN_PROVIDERS, errorShapeOf, loadProviders } from '../src/index.ts';

const REFUSAL = {
  status: 403,
  code: 'uses_exhausted',
  message: 'uses_exhausted: This URL has no uses left (max_uses 3). Issue a new URL.',
  type: 'permission_error',
  param: null,
  requestId: 'r1',
  details: { limit_of: 'url', limit: 3, allowed: ['/a'] },
};
const { code, message, details } = REFUSAL;

const OPENAI = {
  error: { code, message, type: 'permission_error', param: null, request_id: 'r1', ...details },
};
const ANTHROPIC = {
  type: 'error',
  error: { type: 'permission_error', message, code, details: { error_code: code, ...details } },
  request_id: 'r1',
};
const GOOGLE = {
  error: {
    code: 403,
    message,
    status: 'PERMISSION_DENIED',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'USES_EXHAUSTED',
        domain: 'presign',
        metadata: { code, request_id: 'r1', limit_of: 'url', limit: '3', allowed: '["/a"]' },
      },
    ],
  },
};
const COHERE = { message, code, request_id: 'r1', ...details };

const MISTRAL = { object: 'error', message, type: 'permission_error', param: null, code, ...OPENAI };

const provider = (id: string) => BUILT_IN_PROVIDERS.get(id);

test.each([
  ['openai', '/v1/chat/completions', OPENAI],
  ['openai', '/v1/unknown', OPENAI],
  ['anthropic', '/v1/messages', ANTHROPIC],
  ['anthropic', '/v1/messages/count_tokens', ANTHROPIC],
  ['anthropic', '/v1/models', ANTHROPIC],
  ['google', '/v1beta/models/gemini-2.5-flash:generateContent', GOOGLE],
  ['google', '/v1beta/models/gemini-2.5-flash:streamGenerateContent', GOOGLE],
  ['google', '/v1beta/files', GOOGLE],
  ['google', '/v1beta/openai/chat/completions', OPENAI],
  ['google', '/v1beta/openai/models', OPENAI],
  ['cohere', '/v2/chat', COHERE],
  ['cohere', '/v1/rerank', COHERE],
  ['cohere', '/v1/models', COHERE],
  ['cohere', '/compatibility/v1/chat/completions', OPENAI],
  ['cohere', '/compatibility/v1/models', OPENAI],
  ['mistral', '/v1/chat/completions', MISTRAL],
  ['mistral', '/v1/embeddings', MISTRAL],
  ['mistral', '/v1/models', MISTRAL],
  ['groq', '/openai/v1/chat/completions', OPENAI],
  ['openrouter', '/api/v1/messages', ANTHROPIC],
  ['together', '/v1/rerank', COHERE],
  ['azure-openai', '/openai/deployments/d/chat/completions', OPENAI],
])('%s writes an error at %s as its own', (id, path, expected) => {
  expect(errorShapeOf(provider(id), path)(REFUSAL)).toEqual(expected);
});

test.each([
  ['/v1/chat/completions', OPENAI],
  ['/v1/messages', ANTHROPIC],
  ['/v1beta/models/m:generateContent', GOOGLE],
  ['/v2/chat', COHERE],
  ['/anything', OPENAI],
  ['', OPENAI],
])('without a provider, the path %s decides', (path, expected) => {
  expect(errorShapeOf(undefined, path)(REFUSAL)).toEqual(expected);
});

test("a provider of the operator's file has the form of the provider that it extends", () => {
  const file = { acme: { extends: 'anthropic', base_url: 'https://acme.example' } };
  const acme = loadProviders(JSON.stringify(file)).get('acme');
  expect(errorShapeOf(acme, '/unknown')(REFUSAL)).toEqual(ANTHROPIC);
});

test.each([
  ['deepseek', '/anthropic/v1/messages', ANTHROPIC],
  ['deepseek', '/chat/completions', OPENAI],
  ['openrouter', '/api/v1/messages', ANTHROPIC],
  ['anthropic', '/v1/messages', ANTHROPIC],
  ['openai', '/v1/chat/completions', OPENAI],
])('a path that %s does not have gets the form of %s, for which its URL was issued', (id, path, expected) => {
  expect(errorShapeOf(provider(id), path + path, path)(REFUSAL)).toEqual(expected);
});

describe('the class of an error', () => {
  const shaped = (id: string, path: string, status: number, code = 'x') =>
    errorShapeOf(provider(id), path)({ ...REFUSAL, status, code });

  test.each([
    [400, 'invalid_request_error', 'INVALID_ARGUMENT'],
    [401, 'authentication_error', 'UNAUTHENTICATED'],
    [402, 'billing_error', 'RESOURCE_EXHAUSTED'],
    [403, 'permission_error', 'PERMISSION_DENIED'],
    [404, 'not_found_error', 'NOT_FOUND'],
    [413, 'request_too_large', 'INVALID_ARGUMENT'],
    [415, 'invalid_request_error', 'INVALID_ARGUMENT'],
    [422, 'invalid_request_error', 'FAILED_PRECONDITION'],
    [429, 'rate_limit_error', 'RESOURCE_EXHAUSTED'],
    [500, 'api_error', 'INTERNAL'],
    [502, 'api_error', 'UNAVAILABLE'],
    [503, 'api_error', 'UNAVAILABLE'],
    [504, 'timeout_error', 'DEADLINE_EXCEEDED'],
  ])('of status %i is %s for Anthropic and %s for Google', (status, type, name) => {
    expect(shaped('anthropic', '/v1/messages', status)).toMatchObject({ error: { type } });
    const google = { error: { code: status, status: name } };
    expect(shaped('google', '/v1beta/models/m:generateContent', status)).toMatchObject(google);
  });

  test('of an overloaded gateway is overloaded_error for Anthropic', () => {
    const error = { type: 'overloaded_error' };
    expect(shaped('anthropic', '/v1/messages', 503, 'overloaded')).toMatchObject({ error });
  });
});

test('the field at fault is named in every form', () => {
  const named = (id: string, path: string) => errorShapeOf(provider(id), path)({ ...REFUSAL, param: 'n' });
  expect(named('openai', '/v1/chat/completions')).toMatchObject({ error: { param: 'n' } });
  expect(named('anthropic', '/v1/messages')).toMatchObject({ error: { details: { param: 'n' } } });
  expect(named('cohere', '/v2/chat')).toMatchObject({ param: 'n' });
  const metadata = { param: 'n' };
  expect(named('google', '/v1beta/models/m:generateContent')).toMatchObject({
    error: { details: [{ metadata }] },
  });
});

test("a thread that cannot go on is named in Anthropic's word for it, so that the SDK goes on without it", () => {
  const refused = errorShapeOf(provider('anthropic'), '/v1/messages')({ ...REFUSAL, param: 'thread.type' });
  expect(refused).toMatchObject({
    error: { details: { error_code: 'thread_unsupported_request', unsupported: ['thread.type'] } },
  });
});

test('no form has a `detail`, which the SDKs of Mistral expect to be a list', () => {
  for (const each of BUILT_IN_PROVIDERS.values()) {
    expect(errorShapeOf(each, '/unknown')({ ...REFUSAL, status: 422 })).not.toHaveProperty('detail');
  }
});
