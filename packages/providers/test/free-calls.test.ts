import { describe, expect, it } from 'vitest';
import { BUILT_IN_PROVIDERS, checkPathPattern, costsNothing, spendOf } from '../src/index.ts';
import { known } from './apply.ts';

describe('free calls', () => {
  it.each([
    ['openai', 'GET', '/v1/models'],
    ['openai', 'GET', '/v1/models/gpt-4o'],
    ['openai', 'GET', '/v1/responses/resp_1'],
    ['openai', 'GET', '/v1/responses/resp_1/input_items'],
    ['openai', 'POST', '/v1/responses/resp_1/cancel'],
    ['openai', 'POST', '/v1/responses/input_tokens'],
    ['openai', 'POST', '/v1/moderations'],
    ['openai', 'DELETE', '/v1/chat/completions/chatcmpl-1'],
    ['groq', 'GET', '/openai/v1/models'],
    ['azure-openai', 'GET', '/openai/v1/responses/resp_1'],
  ])('are known: %s %s %s', (provider, method, path) => {
    expect(costsNothing(known(provider), method, path)).toBe(true);
  });

  it.each([
    ['openai', 'POST', '/v1/chat/completions'],
    ['openai', 'POST', '/v1/chat/completions/'],
    ['openai', 'POST', '/v1/chat/completions/;x'],
    ['openai', 'POST', '/v1/chat/completions/%20'],
    ['openai', 'POST', '/V1/RESPONSES/INPUT_TOKENS'],
    ['openai', 'POST', '/v1/responses/compact'],
    ['openai', 'POST', '/v1/models'],
    // Mistral bills moderations by token (https://mistral.ai/pricing).
    ['mistral', 'POST', '/v1/moderations'],
    ['openai', 'GET', '/v1/videos/video_1/content'],
    ['groq', 'GET', '/v1/models'],
  ])('are not other spellings, methods or endpoints: %s %s %s', (provider, method, path) => {
    expect(costsNothing(known(provider), method, path)).toBe(false);
  });

  it('never share path and method with a call that writes text', () => {
    for (const provider of BUILT_IN_PROVIDERS.values()) {
      for (const { method, path } of provider.free ?? []) {
        expect(checkPathPattern(path)).toBeUndefined();
        if (method === 'POST') {
          expect(spendOf(provider, path.replaceAll('*', 'x'))?.withOutputBound, path).toBeUndefined();
        }
      }
    }
  });
});
