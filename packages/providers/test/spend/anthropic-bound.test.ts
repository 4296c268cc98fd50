import { describe, expect, it } from 'vitest';
import { boundOf, endpoint, FACTS, refusedField } from './native-call.ts';

const MESSAGES = endpoint('anthropic', '/v1/messages');
const MODEL = 'claude-sonnet-4-6';
const SAID = { model: MODEL, max_tokens: 1_000, messages: [{ role: 'user', content: 'Hello' }] };

const saying = (...content: object[]) => ({ ...SAID, messages: [{ role: 'user', content }] });
const input = (body: object) => boundOf(MESSAGES, { ...body }).inputTokens;

const TOOL = { name: 'f', input_schema: { type: 'object' } };
const adding = (tool: object) => ({ type: 'tool_addition', tool });
const systemWith = (fields: object) => ({ messages: [{ role: 'system', content: 'x', ...fields }] });
const SEARCH = { type: 'web_search_20250305', name: 'web_search', max_uses: 3 };

describe('the bound of Anthropic messages', () => {
  it('is at most a token for each byte and for the turns, and max_tokens', () => {
    const { inputTokens, fees, output } = boundOf(MESSAGES, SAID);
    expect(inputTokens).toBeGreaterThanOrEqual(JSON.stringify(SAID).length);
    expect(inputTokens).toBeLessThan(300);
    expect(fees).toEqual({});
    expect(output).toEqual({ asked: 1_000, least: 256, times: 1, coversReasoning: true });
  });

  it('is at most the context window for a text of any length', () => {
    expect(input(saying({ type: 'text', text: 'x'.repeat(1_000_000) }))).toBe(200_000);
  });

  it.each([
    ['two, whatever the prompt', {}, 2],
    [
      'a token for 256 characters of a string',
      { messages: [{ role: 'user', content: 'x'.repeat(25_601) }] },
      101,
    ],
    [
      'the same for blocks of text',
      saying({ type: 'text', text: 'x'.repeat(2_560) }, { type: 'text', text: 'y' }),
      11,
    ],
    ['the same for the system prompt', { system: [{ type: 'text', text: 'x'.repeat(2_560) }] }, 11],
    [
      'nothing for a result, which context editing may clear',
      saying({ type: 'tool_result', tool_use_id: 't', content: 'x'.repeat(9_999) }),
      2,
    ],
    [
      'nothing for thinking, which later turns leave out',
      saying({ type: 'thinking', thinking: 'x'.repeat(9_999), signature: 's' }),
      2,
    ],
    [
      'nothing for a system message, which later turns may leave out',
      systemWith({ content: 'x'.repeat(9_999) }),
      2,
    ],
    [
      'nothing for a picture',
      saying({ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(9_999) } }),
      2,
    ],
  ])('is at least %s', (_, body, least) => {
    expect(boundOf(MESSAGES, { ...SAID, ...body }).leastInput).toBe(least);
  });

  it('has no least where the provider runs the model more than once', () => {
    expect(boundOf(MESSAGES, { ...SAID, tools: [SEARCH] }).leastInput).toBeUndefined();
  });

  it('covers the growth of a text that is normalised', () => {
    const ligature = '\uFDFA'.repeat(100);
    expect(input(saying({ type: 'text', text: ligature }))).toBeGreaterThan(33 * 100);
  });

  it('covers the growth of names in the schema of a tool, which are text of the prompt, too', () => {
    const properties = { ['\uFDFA'.repeat(100)]: { type: 'string' } };
    const tools = [{ name: 't', input_schema: { type: 'object', properties } }];
    expect(input({ ...saying({ type: 'text', text: 'Hi' }), tools })).toBeGreaterThan(33 * 100);
  });

  it('holds an image at its published maximum, not by its bytes', () => {
    const image = (source: object) => ({ type: 'image', source });
    const bytes = { type: 'base64', media_type: 'image/png', data: 'A'.repeat(500_000) };
    for (const source of [
      bytes,
      { type: 'url', url: 'https://x.example/a.png' },
      { type: 'file', file_id: 'f' },
    ]) {
      expect(input(saying(image(source)))).toBeGreaterThan(4_784);
      expect(input(saying(image(source)))).toBeLessThan(5_300);
    }
    const inResult = { type: 'tool_result', tool_use_id: 't', content: [image(bytes)] };
    expect(input(saying(inResult))).toBeLessThan(5_300);
  });

  it("counts an image as the whole window if the model is another maker's", () => {
    const image = { type: 'image', source: { type: 'url', url: 'https://x.example/a.png' } };
    expect(input({ ...saying(image), model: 'deepseek-chat' })).toBe(200_000);
  });

  it.each([
    ['a PDF', { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' } }],
    [
      'a document by its address',
      { type: 'document', source: { type: 'url', url: 'https://x.example/a.pdf' } },
    ],
    ['a stored file', { type: 'document', source: { type: 'file', file_id: 'file_1' } }],
    ['search results that are encrypted', { type: 'web_search_tool_result', tool_use_id: 't', content: [] }],
  ])('counts %s as the whole window', (_what, block) => {
    expect(input(saying(block))).toBe(200_000);
    const unknown = { ...FACTS, contextWindow: undefined };
    expect(refusedField(MESSAGES, saying(block), unknown)).toBe('model');
  });

  it('adds the prompts that come with tools', () => {
    const plain = input(SAID);
    const custom = { ...SAID, tools: [{ name: 'f', input_schema: { type: 'object' } }] };
    expect(input(custom)).toBeGreaterThan(plain + 804);
    const bash = { ...SAID, tools: [{ type: 'bash_20250124', name: 'bash' }] };
    expect(input(bash)).toBeGreaterThan(input(custom) + 700);
    expect(input({ ...SAID, tools: [{ type: 'memory_20250818', name: 'memory' }] })).toBe(200_000);
  });

  it('has the fee of each search, and the window once for each turn that can follow', () => {
    const few = boundOf(MESSAGES, { ...SAID, tools: [SEARCH] });
    expect(few).toMatchObject({
      fees: { web_searches: 3 },
      inputTokens: 11 * 200_000,
      output: { times: 11 },
    });
    const many = boundOf(MESSAGES, { ...SAID, tools: [{ ...SEARCH, max_uses: 40 }] });
    expect(many).toMatchObject({ fees: { web_searches: 40 }, inputTokens: 41 * 200_000 });
    const fetch = { type: 'web_fetch_20260318', name: 'web_fetch', max_uses: 1, allowed_callers: ['direct'] };
    expect(boundOf(MESSAGES, { ...SAID, tools: [fetch] }).fees).toEqual({});
  });

  it.each([
    ['tools[0].max_uses', { tools: [{ ...SEARCH, max_uses: undefined }] }],
    ['tools[0].max_uses', { tools: [{ ...SEARCH, max_uses: null }] }],
    ['tools[0].allowed_callers', { tools: [{ ...SEARCH, allowed_callers: ['code_execution_20260120'] }] }],
    ['tools[0].allowed_callers', { tools: [{ ...SEARCH, type: 'web_search_20260318' }] }],
    ['tools[0].type', { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] }],
    ['tools[0].type', { tools: [{ type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }] }],
    ['tools[0].type', { tools: [{ type: 'mcp_toolset', mcp_server_name: 'x' }] }],
    ['container', { container: 'c_1' }],
    ['mcp_servers', { mcp_servers: [{ type: 'url', url: 'https://x.example', name: 'x' }] }],
    ['fallbacks', { fallbacks: [{ model: 'claude-opus-4-1' }] }],
    ['inference_geo', { inference_geo: 'us' }],
    ['context_management.edits[0].type', { context_management: { edits: [{ type: 'compact_20260112' }] } }],
    ['output_config.task_budget', { output_config: { task_budget: { type: 'tokens', total: 9 } } }],
    ['thinking.type', { thinking: { type: 'endless' } }],
    ['thread.type', { thread: { type: 'continue', previous_message_id: 'msg_1' } }],
    ['tools[0].allowed_callers', { tools: [{ ...TOOL, allowed_callers: ['code_execution_20260120'] }] }],
    ['messages[0].output_config.format', systemWith({ output_config: { format: {} } })],
    ['messages[0].content[0].tool.type', saying(adding({ type: 'mcp_toolset_reference', server_name: 's' }))],
    [
      'messages[0].content[0].tool.definition',
      saying(adding({ type: 'tool_definition', definition: SEARCH })),
    ],
    ['thinking.budget_tokens', { thinking: { type: 'enabled', budget_tokens: '9' } }],
    ['max_tokens', { max_tokens: 1.5 }],
    ['max_tokens', { max_tokens: '1000' }],
    ['messages[0].content[0].type', saying({ type: 'container_upload', file_id: 'f' })],
    ['messages[0].content[0].type', saying({ type: 'hologram' })],
    ['messages[0].budget', { messages: [{ role: 'user', content: 'x', budget: 1 }] }],
  ])('has no bound with this %s, and names it', (param, fields) => {
    expect(refusedField(MESSAGES, { ...SAID, ...fields })).toBe(param);
  });

  it('passes fields that only shorten or label a call', () => {
    const passes = {
      ...SAID,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      metadata: { user_id: 'u' },
      stop_sequences: ['x'],
      inference_geo: 'global',
      output_config: { effort: 'low' },
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      tool_choice: { type: 'auto' },
      container: null,
      thread: { type: 'create' },
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'system', content: 'x', clear_at: 'next_user_message', output_config: { effort: 'medium' } },
        { role: 'system', content: [adding({ type: 'tool_reference', name: 'f' })] },
        { role: 'system', content: [{ type: 'tool_removal', tool: { type: 'tool_reference', name: 'f' } }] },
        { role: 'system', content: [adding({ type: 'tool_definition', definition: TOOL })] },
      ],
    };
    expect(refusedField(MESSAGES, passes)).toBeUndefined();
  });

  it('holds the largest definition once more for each reference to a tool', () => {
    const large = { ...TOOL, description: 'x'.repeat(20_000) };
    const references = [
      { type: 'tool_reference', tool_name: 'f' },
      adding({ type: 'tool_reference', name: 'f' }),
    ];
    for (const reference of references) {
      const with_ = (count: number) =>
        input({ ...saying(...Array.from({ length: count }, () => reference)), tools: [large] });
      expect(with_(4)).toBeGreaterThan(with_(1) + 3 * 20_000);
      const defined = adding({ type: 'tool_definition', definition: large });
      expect(input(saying(defined, reference, reference))).toBeGreaterThan(3 * 20_000);
    }
  });

  it('refuses a body whose nesting would exhaust the stack', () => {
    const deep = JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`);
    const body = { ...SAID, metadata: deep };
    const judged = MESSAGES.spend.bound(body, { path: MESSAGES.path, bytes: 100_100, facts: FACTS });
    expect(judged).toMatchObject({ unbounded: { param: 'body' } });
  });
});

describe('the output of Anthropic messages', () => {
  const output = (fields: object, facts = FACTS) => boundOf(MESSAGES, { ...SAID, ...fields }, facts).output;

  it('keeps room for the requested thinking', () => {
    const thinking = { type: 'enabled', budget_tokens: 5_000 };
    expect(output({ max_tokens: 8_000, thinking })).toMatchObject({ asked: 8_000, least: 5_001 });
  });

  it('may be less than the thinking budget, which then spans the turns between tools', () => {
    const thinking = { type: 'enabled', budget_tokens: 5_000 };
    expect(output({ thinking })).toMatchObject({ asked: 1_000, least: 1_000 });
  });

  it("has a default when omitted, larger for models that reason, and never above the model's own", () => {
    const omitted = { max_tokens: undefined };
    expect(output(omitted)).toMatchObject({ asked: 4_096 });
    expect(output(omitted, { ...FACTS, reasoning: true })).toMatchObject({ asked: 32_768 });
    expect(output(omitted, { ...FACTS, reasoning: true, maxOutput: 8_192 })).toMatchObject({ asked: 8_192 });
    const thinking = { type: 'enabled', budget_tokens: 10_000 };
    expect(output({ ...omitted, thinking })).toMatchObject({ asked: 14_096, least: 10_001 });
  });

  it('may be 0, which only fills the cache', () => {
    expect(output({ max_tokens: 0 })).toMatchObject({ asked: 0, least: 0 });
  });
});

describe('the price of Anthropic messages', () => {
  it('is forced to the standard tier and speed', () => {
    const body = { ...SAID, service_tier: 'auto', speed: 'fast' };
    expect(MESSAGES.spend.atStandardPrice?.(body)).toEqual({ ...SAID, service_tier: 'standard_only' });
  });

  it('is the default of other providers of the dialect', () => {
    const body = { ...SAID, model: 'deepseek-chat', service_tier: 'priority' };
    expect(MESSAGES.spend.atStandardPrice?.(body)).toEqual({ ...SAID, model: 'deepseek-chat' });
  });
});
