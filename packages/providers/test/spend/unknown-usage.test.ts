import { describe, expect, test } from 'vitest';
import { loadProviders, spendOf } from '../../src/index.ts';
import { endpoint } from './native-call.ts';

const CHAT = '/v1/chat/completions';
const chatAnswer = (usage: object, message: object = { content: 'Hi' }) => ({
  model: 'm',
  choices: [{ message, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, ...usage },
});
const RESPONSE = { status: 'completed', output: [], usage: { input_tokens: 10, output_tokens: 5 } };
const MESSAGE = { type: 'message', content: [], usage: { input_tokens: 10, output_tokens: 5 } };
const CONTENT = {
  candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
};
const GEMINI = '/v1beta/models/gemini-x:generateContent';

describe('an unknown count or a billed part makes the usage unknown', () => {
  test.each<[string, string, object, string]>([
    ['openai', CHAT, chatAnswer({ new_tokens: 3 }), 'new_tokens'],
    [
      'openai',
      CHAT,
      chatAnswer({ prompt_tokens_details: { film_tokens: 3 } }),
      'prompt_tokens_details.film_tokens',
    ],
    ['openai', CHAT, chatAnswer({ tools: [{ calls: 0 }, { calls: 2 }] }), 'tools.calls'],
    ['openai', CHAT, chatAnswer({ big: '12345678901234567890' }), 'big'],
    ['openai', CHAT, chatAnswer({ fee: 0.02 }), 'fee'],
    ['openai', CHAT, chatAnswer({ credit: -1 }), 'credit'],
    [
      'openai',
      CHAT,
      chatAnswer({}, { content: 'Hi', annotations: [{ type: 'url_citation' }] }),
      'url_citation',
    ],
    [
      'groq',
      `/openai${CHAT}`,
      chatAnswer({}, { content: 'Hi', executed_tools: [{ type: 'search' }] }),
      'executed_tools',
    ],
    ['mistral', CHAT, chatAnswer({ prompt_audio_seconds: 4 }), 'prompt_audio_seconds'],
    ['xai', CHAT, chatAnswer({ num_sources_used: 4 }), 'num_sources_used'],
    [
      'openrouter',
      `/api${CHAT}`,
      chatAnswer({ server_tool_use_details: { web_search_requests: 1 } }),
      'server_tool_use_details.web_search_requests',
    ],
    [
      'openai',
      '/v1/responses',
      { ...RESPONSE, usage: { ...RESPONSE.usage, input_tokens_details: { film_tokens: 1 } } },
      'input_tokens_details.film_tokens',
    ],
    ...['code_interpreter_call', 'image_generation_call', 'shell_call', 'program', 'deep_search_call'].map(
      (type): [string, string, object, string] => [
        'openai',
        '/v1/responses',
        { ...RESPONSE, output: [{ type: 'message', content: [] }, { type }] },
        type,
      ],
    ),
    ['openai', '/v1/embeddings', { data: [{}], usage: { prompt_tokens: 4, pages: 1 } }, 'pages'],
    [
      'openai',
      '/v1/images/generations',
      { data: [{}], usage: { input_tokens: 1, output_tokens: 2, upscales: 1 } },
      'upscales',
    ],
    [
      'anthropic',
      '/v1/messages',
      { ...MESSAGE, usage: { ...MESSAGE.usage, server_tool_use: { maps_requests: 1 } } },
      'server_tool_use.maps_requests',
    ],
    [
      'anthropic',
      '/v1/messages',
      { ...MESSAGE, usage: { ...MESSAGE.usage, iterations: [{ type: 'compaction' }] } },
      'iterations.compaction',
    ],
    ['anthropic', '/v1/messages', { ...MESSAGE, container: { id: 'c' } }, 'container'],
    [
      'anthropic',
      '/v1/messages',
      { ...MESSAGE, content: [{ type: 'bash_code_execution_tool_result' }] },
      'container',
    ],
    [
      'google',
      GEMINI,
      { ...CONTENT, usageMetadata: { ...CONTENT.usageMetadata, filmTokenCount: 3 } },
      'filmTokenCount',
    ],
    [
      'bedrock',
      '/model/m/converse',
      { usage: { inputTokens: 1, outputTokens: 1, filmTokens: 1 } },
      'filmTokens',
    ],
    [
      'cohere',
      '/v2/chat',
      { usage: { billed_units: { input_tokens: 1, output_tokens: 1, pages: 2 } } },
      'billed_units.pages',
    ],
    [
      'cohere',
      '/v2/embed',
      { meta: { billed_units: { input_tokens: 1, images: 2 } } },
      'billed_units.images',
    ],
  ])('%s %s %j: %s', (provider, path, answer, name) => {
    const reported = endpoint(provider, path).spend.readAnswer(answer);
    expect(reported?.usage).toBeUndefined();
    expect(reported?.doubt).toEqual({ why: 'unknown', names: [name] });
  });

  test('also in a stream, in any event', () => {
    const read = (...events: readonly unknown[]) => {
      const reader = endpoint('openai', CHAT).spend.readStream?.();
      for (const event of events) {
        const text = typeof event === 'string' ? event : JSON.stringify(event);
        if (reader?.matters?.(Buffer.from(`data: ${text}\n\n`)) ?? true) reader?.event(text, undefined);
      }
      return reader?.end()?.doubt;
    };
    const delta = (more: object) => ({ choices: [{ delta: { content: 'Hi', ...more } }] });
    const end = (usage: object) => ({
      choices: [],
      usage: { prompt_tokens: 10, completion_tokens: 5, ...usage },
    });
    expect(read(delta({}), end({ new_tokens: 1 }), '[DONE]')).toEqual({
      why: 'unknown',
      names: ['new_tokens'],
    });
    const cites = delta({ annotations: [{ type: 'url_citation', url_citation: {} }] });
    expect(read(delta({}), cites, end({}), '[DONE]')).toEqual({ why: 'unknown', names: ['url_citation'] });
    expect(read(delta({ annotations: [] }), end({}), '[DONE]')).toBeUndefined();
  });

  test('and its name in the log has only letters, digits, _ and .', () => {
    const usage = { 'sk-secret key': 1, [`n${'x'.repeat(100)}`]: 2, ok_1: 3 };
    expect(endpoint('openai', CHAT).spend.readAnswer(chatAnswer(usage))?.doubt).toEqual({
      why: 'unknown',
      names: ['other', 'ok_1'],
    });
  });
});

describe('an unknown count or part is harmless', () => {
  test.each<[string, string, object]>([
    ...['function_call', 'custom_tool_call', 'mcp_call', 'computer_call', 'web_search_call'].map(
      (type): [string, string, object] => ['openai', '/v1/responses', { ...RESPONSE, output: [{ type }] }],
    ),
    [
      'openai',
      CHAT,
      chatAnswer({ new_tokens: 0, note: 'low', flag: true, none: null, list: [], details: { a: 0 } }),
    ],
    [
      'openai',
      CHAT,
      chatAnswer({
        completion_tokens_details: { accepted_prediction_tokens: 3, rejected_prediction_tokens: 1 },
      }),
    ],
    [
      'groq',
      `/openai${CHAT}`,
      chatAnswer({ queue_time: 0.1, prompt_time: 0.1, completion_time: 0.2, total_time: 0.4 }),
    ],
    ['xai', CHAT, chatAnswer({ cost_in_usd_ticks: 5 })],
    [
      'openrouter',
      `/api${CHAT}`,
      chatAnswer({ cost: 0.2, is_byok: true, cost_details: { upstream_inference_cost: 0.1 } }),
    ],
    ['perplexity', '/chat/completions', chatAnswer({ cost: { total_cost: 0.01, request_cost: 0.005 } })],
    [
      'deepseek',
      '/chat/completions',
      chatAnswer({ prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 2 }),
    ],
    [
      'cohere',
      '/v2/chat',
      { usage: { tokens: { input_tokens: 9 }, billed_units: { input_tokens: 1, output_tokens: 1 } } },
    ],
  ])('if a list has it, or it is no amount: %s %s %j', (provider, path, answer) => {
    const reported = endpoint(provider, path).spend.readAnswer(answer);
    expect(reported?.usage).toBeDefined();
    expect(reported?.doubt).toBeUndefined();
  });

  test('if the operator lists it for this provider', () => {
    const read = (freeUsage: readonly string[], answer: object) => {
      const file = { acme: { extends: 'openai', base_url: 'https://a.example', free_usage: freeUsage } };
      const provider = loadProviders(JSON.stringify(file)).get('acme');
      return provider && spendOf(provider, CHAT)?.readAnswer(answer)?.doubt;
    };
    expect(read([], chatAnswer({ energy: { wh: 1 } }))).toEqual({ why: 'unknown', names: ['energy.wh'] });
    expect(read(['energy.wh'], chatAnswer({ energy: { wh: 1 } }))).toBeUndefined();
    expect(read(['energy.*'], chatAnswer({ energy: { wh: 1, co2: { g: 2 } } }))).toBeUndefined();
    const cites = chatAnswer({}, { content: 'Hi', annotations: [{ type: 'sketch' }] });
    expect(read(['sketch'], cites)).toBeUndefined();
  });

  test.each([
    ['free_usage', 'energy'],
    ['free_usage.0', ['a b']],
    ['free_usage.0', ['*']],
  ])('a wrong %s is named: %j', (field, value) => {
    const file = { acme: { extends: 'openai', base_url: 'https://a.example', free_usage: value } };
    expect(() => loadProviders(JSON.stringify(file))).toThrow(`acme.${field}`);
  });
});
