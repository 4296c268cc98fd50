import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/index.ts';
import { boundOf, FACTS, refusedIn, spendOf } from './openai-call.ts';

const PATH = '/v1/responses';
const WINDOW = 128_000;
const call = (more: JsonObject = {}): JsonObject => ({ model: 'gpt-4o', input: 'Hi', ...more });
const item = (...input: unknown[]): JsonObject => call({ input });

describe('responses', () => {
  it('are bounded by their bytes if the body contains all their input', () => {
    const messages = item(
      { role: 'user', content: 'Hi' },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'done' }] },
      {
        type: 'message',
        role: 'assistant',
        id: 'm',
        status: 'completed',
        content: [{ type: 'output_text', text: 'x', annotations: [] }],
      },
    );
    const { inputTokens } = boundOf('openai', PATH, messages);
    expect(inputTokens).toBeGreaterThan(JSON.stringify(messages).length);
    expect(inputTokens).toBeLessThan(2_000);
  });

  it('count by their bytes with the texts that Codex adds to its requests', () => {
    const { inputTokens } = boundOf('openai', PATH, call({ client_metadata: { originator: 'codex' } }));
    expect(inputTokens).toBeLessThan(2_000);
  });

  it('count by their bytes with the tools that Codex adds to its items', () => {
    const tool = { type: 'function', name: 'f', description: 'd', parameters: {} };
    const many = Array.from({ length: 100 }, (_, index) => ({ ...tool, name: `f${index}` }));
    const tools = (list: object[]) => [
      { type: 'additional_tools', role: 'developer', tools: list },
      { type: 'message', role: 'user', content: 'Hi' },
    ];
    const few = boundOf('openai', PATH, item(...tools([tool]))).inputTokens;
    expect(few).toBeLessThan(2_000);
    const inNamespace = boundOf(
      'openai',
      PATH,
      item(...tools([{ type: 'namespace', name: 'n', tools: many }])),
    );
    const atTop = boundOf('openai', PATH, item(...tools(many)));
    for (const { inputTokens } of [inNamespace, atTop]) expect(inputTokens).toBeGreaterThan(few + 100 * 32);
  });

  it('count by their bytes if the caller itself runs the tool search', () => {
    const found = { type: 'function', name: 'f', parameters: {} };
    const body = call({
      tools: [{ type: 'tool_search', execution: 'client', description: 'd', parameters: {} }],
      input: [
        { type: 'tool_search_call', call_id: 'c', execution: 'client', status: 'completed', arguments: {} },
        {
          type: 'tool_search_output',
          call_id: 'c',
          execution: 'client',
          status: 'completed',
          tools: [found],
        },
      ],
    });
    expect(boundOf('openai', PATH, body).inputTokens).toBeLessThan(2_000);
  });

  it.each([
    call({ previous_response_id: 'resp_1' }),
    call({ conversation: 'conv_1' }),
    item({ type: 'reasoning', id: 'r', encrypted_content: 'x' }),
    item({ type: 'item_reference', id: 'm' }),
    item({ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }),
    call({ tools: [{ type: 'apply_patch' }] }),
  ])('count as the whole window if they read input from outside the body: %j', (body) => {
    expect(boundOf('openai', PATH, body).inputTokens).toBe(WINDOW);
    expect(refusedIn('openai', PATH, body, { ...FACTS, contextWindow: undefined })).toBe('model');
  });

  it.each([
    [call({ background: true }), 'background'],
    [call({ prompt: { id: 'p' } }), 'prompt'],
    [call({ context_management: [{ type: 'compaction' }] }), 'context_management'],
    [call({ reasoning: { mode: 'pro' } }), 'reasoning.mode'],
    [call({ moderation: {} }), 'moderation'],
    [call({ client_metadata: { tools: [{ type: 'web_search' }] } }), 'client_metadata'],
    [call({ max_tool_calls: -1 }), 'max_tool_calls'],
    [call({ max_tool_calls: 10 ** 15 }), 'max_tool_calls'],
    [item({ type: 'additional_tools', tools: [{ type: 'web_search' }] }), 'input[0].tools[0].type'],
    [item({ type: 'additional_tools', tools: [], prompt: 'p' }), 'input[0].prompt'],
    [item({ type: 'tool_search_output', tools: [{ type: 'mcp' }] }), 'input[0].tools[0].type'],
    [call({ tools: [{ type: 'tool_search', execution: 'server' }] }), 'tools[0].type'],
    [item({ type: 'message', role: 'user', content: [{ type: 'input_audio' }] }), 'input[0].content[0]'],
    [item({ role: 'user', content: 'x', tools: [] }), 'input[0].tools'],
    [call({ input: 7 }), 'input'],
  ])('have no bound: %j', (body, param) => {
    expect(refusedIn('openai', PATH, body)).toBe(param);
  });

  it('have no bound if it is below the minimum of OpenAI', () => {
    expect(boundOf('openai', PATH, call({ max_output_tokens: 16 })).output).toMatchObject({
      asked: 16,
      least: 16,
    });
    expect(boundOf('openai', PATH, call({ max_output_tokens: 9_000 })).output).toMatchObject({
      asked: 9_000,
      least: 256,
    });
  });
});

describe('tools that the provider runs', () => {
  const search = { tools: [{ type: 'web_search' }] };

  it('have no bound if the number of their calls has none', () => {
    expect(refusedIn('openai', PATH, call(search))).toBe('tools[0].type');
    expect(refusedIn('openai', PATH, call({ ...search, max_tool_calls: null }))).toBe('tools[0].type');
  });

  it('add a turn and a fee for each call, and one last turn; each turn has a window and the output bound', () => {
    const tools = [{ type: 'web_search' }, { type: 'file_search', vector_store_ids: ['v'] }];
    expect(boundOf('openai', PATH, call({ tools, max_tool_calls: 3, max_output_tokens: 100 }))).toEqual({
      inputTokens: 4 * WINDOW,
      fees: { web_searches: 3, storage_searches: 3 },
      output: { asked: 100, least: 100, times: 4, coversReasoning: true },
    });
  });

  it.each([
    'web_search_preview',
    'code_interpreter',
    'image_generation',
    'mcp',
    'shell',
    'tool_search',
    'programmatic_tool_calling',
  ])('of other kinds have no bound: %s', (type) => {
    expect(refusedIn('openai', PATH, call({ tools: [{ type }], max_tool_calls: 1 }))).toBe('tools[0].type');
  });

  it('have no bound if the provider documents no maximum', () => {
    for (const [provider, path] of [
      ['groq', '/openai/v1/responses'],
      ['xai', '/v1/responses'],
      ['azure-openai', '/openai/v1/responses'],
      ['openrouter', '/api/v1/responses'],
    ] as const) {
      expect(refusedIn(provider, path, call({ ...search, max_tool_calls: 1 }))).toBe('tools[0].type');
      expect(refusedIn(provider, path, call())).toBeUndefined();
    }
  });

  it('are found among the items of the input, too', () => {
    const items = [{ type: 'additional_tools', role: 'developer', tools: [{ type: 'web_search' }] }];
    const { fees, inputTokens } = boundOf('openai', PATH, call({ input: items, max_tool_calls: 2 }));
    expect(fees).toEqual({ web_searches: 2 });
    expect(inputTokens).toBe(3 * WINDOW);
  });

  it('are found in a namespace, too', () => {
    const namespace = (type: string) =>
      call({ tools: [{ type: 'namespace', name: 'n', tools: [{ type, name: 'f' }] }] });
    expect(refusedIn('openai', PATH, namespace('function'))).toBeUndefined();
    expect(refusedIn('openai', PATH, namespace('web_search'))).toBe('tools[0].tools[0].type');
  });
});

describe('usage of responses', () => {
  const usage = { input_tokens: 40, output_tokens: 9, total_tokens: 49 };
  const response = (more: JsonObject = {}) => ({
    model: 'gpt-5',
    status: 'completed',
    output: [],
    usage,
    ...more,
  });
  const read = (answer: unknown) => spendOf('openai', PATH).readAnswer(answer)?.usage;

  it('has the searches, and not the opened pages', () => {
    const output = [
      { type: 'web_search_call', action: { type: 'search', query: 'a' } },
      { type: 'web_search_call', action: { type: 'open_page', url: 'u' } },
      { type: 'web_search_call' },
      { type: 'file_search_call' },
      { type: 'message' },
    ];
    expect(read(response({ output }))).toMatchObject({ web_searches: 2, storage_searches: 1 });
    expect(read(response())).not.toHaveProperty('web_searches');
  });

  it.each([
    response({ output: [{ type: 'code_interpreter_call' }] }),
    response({ output: [{ type: 'image_generation_call' }] }),
    response({ usage: null }),
    response({ status: 'in_progress' }),
    response({ status: 'queued', usage: null }),
    response({ model: 'o3-deep-research' }),
    { error: { message: 'x' } },
    [],
    null,
  ])('is unknown: %j', (answer) => {
    expect(read(answer)).toBeUndefined();
  });

  it.each(['response.completed', 'response.incomplete', 'response.failed'])(
    'arrives in a stream’s %s',
    (type) => {
      const reader = spendOf('openai', PATH).readStream?.();
      reader?.event(
        JSON.stringify({ type: 'response.created', response: { usage: null } }),
        'response.created',
      );
      reader?.event(
        JSON.stringify({ type: 'response.output_text.delta', delta: 'response.completed' }),
        undefined,
      );
      expect(reader?.end()).toBeUndefined();
      reader?.event(JSON.stringify({ type, response: response() }), type);
      expect(reader?.end()).toEqual({ model: 'gpt-5', usage: { input_tokens: 40, output_tokens: 9 } });
    },
  );

  it('is unknown if the last event has no usage', () => {
    const reader = spendOf('openai', PATH).readStream?.();
    reader?.event(
      JSON.stringify({ type: 'response.failed', response: response({ usage: null }) }),
      undefined,
    );
    expect(reader?.end()).toBeUndefined();
  });
});
