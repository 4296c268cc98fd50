import { describe, expect, test } from 'vitest';
import { anthropicOptions, googleOptions, mcpConfig, openaiOptions } from '../src/index.ts';

const TOKEN = 'https://gateway.example.com/llm/t/v4.public.a-b_c.d';

describe('the OpenAI SDK adds the path after the version', () => {
  test.each([
    ['/v1/chat/completions', '/v1'],
    ['/v1/responses', '/v1'],
    ['/v1/models/gpt-4.1/v2/x', '/v1'],
    ['/openai/v1/chat/completions', '/openai/v1'],
    ['/v1beta/openai/chat/completions', '/v1beta/openai'],
    ['/compatibility/v1/chat/completions', '/compatibility/v1'],
    ['/inference/v1/chat/completions', '/inference/v1'],
    ['/api/v1/chat/completions', '/api/v1'],
    ['/chat/completions', ''],
    ['/v1/llm/t/chat/completions', '/v1'],
  ])('%s', (path, prefix) => {
    expect(openaiOptions({ url: TOKEN + path })).toEqual({ baseURL: TOKEN + prefix, apiKey: 'presigned' });
  });
});

describe('the Anthropic SDK adds the version and the path', () => {
  test.each([
    ['/v1/messages', ''],
    ['/anthropic/v1/messages', '/anthropic'],
  ])('%s', (path, prefix) => {
    expect(anthropicOptions({ url: TOKEN + path })).toEqual({ baseURL: TOKEN + prefix, apiKey: 'presigned' });
  });

  test('a path of another API is refused', () => {
    expect(() => anthropicOptions({ url: `${TOKEN}/chat/completions` })).toThrow(TypeError);
  });
});

describe('the Google SDK gets the version as an option', () => {
  test.each(['v1beta', 'v1', 'v1alpha', 'v1beta2'])('%s', (apiVersion) => {
    const url = `${TOKEN}/${apiVersion}/models/gemini-2.5-flash:generateContent`;
    expect(googleOptions({ url })).toEqual({
      apiKey: 'presigned',
      httpOptions: { baseUrl: TOKEN, apiVersion },
    });
  });

  test('a path of another API is refused', () => {
    expect(() => googleOptions({ url: `${TOKEN}/openai/v1/chat/completions` })).toThrow(TypeError);
  });
});

test('a gateway below a path, or with a name like a version, is split at the end of the token', () => {
  const url = 'http://v1.example/v1/gateway/llm/t/v4.public.a/v1/chat/completions';
  expect(openaiOptions({ url }).baseURL).toBe('http://v1.example/v1/gateway/llm/t/v4.public.a/v1');
  const { baseURL } = anthropicOptions({ url: url.replace('chat/completions', 'messages') });
  expect(baseURL).toBe('http://v1.example/v1/gateway/llm/t/v4.public.a');
});

test.each([
  'https://api.example.com/v1/chat/completions',
  'https://gateway.example.com/llm/t/v4.public.secret',
  'https://gateway.example.com/mcp/mcp?url=/llm/t/v4.public.secret/v1/x',
  'llm/t/v4.public.secret/v1/x',
])('%s is not an issued URL, and is not quoted', (url) => {
  for (const options of [openaiOptions, anthropicOptions, googleOptions]) {
    expect(() => options({ url })).toThrow(new TypeError('url: expected the answer of `presign`.'));
  }
});

test('the configuration for MCP clients has the servers, and is a copy', () => {
  const servers = {
    docs: { url: 'https://gateway.example.com/mcp/mcp?url=x&token=y', transport: 'http' as const },
  };
  const config = mcpConfig({ servers });
  expect(config).toEqual({ mcpServers: servers });
  expect(config.mcpServers.docs).not.toBe(servers.docs);
});
