import { describe, expect, test } from 'vitest';
import { allow, asUnbounded, below, harmless, judge, judgeEach } from '../../src/bounds/allow-list.ts';
import { boundBeyond, compilePlaces } from '../../src/bounds/beyond-lists.ts';
import { type JsonObject, loadProviders, nameOfPlace, spendOf } from '../../src/index.ts';

const BASES: Readonly<Record<string, string>> = {
  '/v1/chat/completions': 'openai',
  '/v1/responses': 'openai',
  '/v1/messages': 'anthropic',
  '/v2/chat': 'cohere',
  '/v1beta/models/gemini-2.5-flash:generateContent': 'google',
};
type Path = keyof typeof BASES & string;

/** The bound of a call at a server that speaks the API of its path, with these names declared. */
function boundOf(path: Path, body: object, harmless_fields: readonly string[]) {
  const entry = { extends: BASES[path], base_url: 'https://a.example', harmless_fields };
  const provider = loadProviders(JSON.stringify({ acme: entry })).get('acme');
  const spend = provider && spendOf(provider, path);
  if (!spend) throw new Error('no such endpoint');
  const facts = { contextWindow: 1_000_000, maxOutput: 8_000, reasoning: false };
  const bytes = Buffer.byteLength(JSON.stringify(body));
  return { ...spend.bound(body as JsonObject, { path, bytes, facts }), bytes };
}

const messages = [{ role: 'user', content: 'Hi' }];
const CHAT = { model: 'm', max_tokens: 5, messages };
const parts = (...content: object[]) => ({ ...CHAT, messages: [{ role: 'user', content }] });
const RESPONSES = { model: 'm', max_output_tokens: 5, input: 'Hi' };
const TEXT = { type: 'text', text: 'Hi' };

describe('a field or a kind that no list has passes with its bytes where the operator declares it', () => {
  test.each<[Path, string, object]>([
    ['/v1/chat/completions', 'note', { ...CHAT, note: 'x'.repeat(1_000) }],
    [
      '/v1/chat/completions',
      'messages[].note',
      { ...CHAT, messages: [{ ...messages[0], note: ['y'] }, messages[0]] },
    ],
    [
      '/v1/chat/completions',
      'messages[].content[].type=sketch',
      parts(TEXT, { type: 'sketch', text: 'x'.repeat(500) }),
    ],
    ['/v1/chat/completions', 'tools[].type=browser', { ...CHAT, tools: [{ type: 'browser', depth: 3 }] }],
    ['/v1/responses', 'note', { ...RESPONSES, note: { deep: [1, 2] } }],
    ['/v1/responses', 'input[].type=sketch', { ...RESPONSES, input: [{ type: 'sketch', text: 'Hi' }] }],
    [
      '/v1/responses',
      'tools[].type=browser',
      { ...RESPONSES, tools: [{ type: 'browser' }, { type: 'function' }] },
    ],
    ['/v1/messages', 'note', { ...CHAT, note: 'z' }],
    ['/v1/messages', 'messages[].note', { ...CHAT, messages: [{ ...messages[0], note: 1 }] }],
    ['/v1/messages', 'output_config.depth', { ...CHAT, output_config: { effort: 'low', depth: 2 } }],
    ['/v1/messages', 'messages[].content[].type=sketch', parts(TEXT, { type: 'sketch', text: 'Hi' })],
    ['/v1/messages', 'system[].type=sketch', { ...CHAT, system: [{ type: 'sketch', text: 'Hi' }] }],
    ['/v2/chat', 'note', { ...CHAT, note: 'z' }],
    ['/v2/chat', 'messages[].content[].type=sketch', parts({ type: 'sketch', text: 'Hi' })],
    [
      '/v1beta/models/gemini-2.5-flash:generateContent',
      'note',
      { contents: [{ parts: [{ text: 'Hi' }] }], note: 'z' },
    ],
  ])('%s: %s', (path, name, body) => {
    const refused = boundOf(path, body, []);
    expect(refused).toMatchObject({ unbounded: { isUnknown: true } });
    if ('unbounded' in refused) expect(nameOfPlace(refused.unbounded, body as JsonObject)).toBe(name);
    const passed = boundOf(path, body, ['other', name]);
    expect(passed).toHaveProperty('bound');
    // Every byte counts, those of the declared part, too.
    if ('bound' in passed) expect(passed.bound.inputTokens).toBeGreaterThanOrEqual(passed.bytes);
  });
});

describe('what is known to have a fee or no maximum is refused, whatever is declared', () => {
  test.each<[Path, string, object]>([
    ['/v1/chat/completions', 'prediction', { ...CHAT, prediction: { type: 'content', content: 'Hi' } }],
    ['/v1/chat/completions', 'n', { ...CHAT, n: 'many' }],
    ['/v1/chat/completions', 'max_tokens', { ...CHAT, max_tokens: 'many' }],
    [
      '/v1/chat/completions',
      'messages[].content[].type=input_audio',
      parts({ type: 'input_audio', input_audio: {} }),
    ],
    ['/v1/responses', 'tools[].type=web_search', { ...RESPONSES, tools: [{ type: 'web_search' }] }],
    ['/v1/responses', 'prompt', { ...RESPONSES, prompt: { id: 'p' } }],
    ['/v1/messages', 'mcp_servers', { ...CHAT, mcp_servers: [{}] }],
    [
      '/v1/messages',
      'tools[].max_uses',
      { ...CHAT, tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    ],
    ['/v1/messages', 'thread.type=continue', { ...CHAT, thread: { type: 'continue' } }],
    ['/v2/chat', 'connectors', { ...CHAT, connectors: [{}] }],
  ])('%s: %s', (path, name, body) => {
    expect(boundOf(path, body, [name])).toMatchObject({ unbounded: { reason: expect.any(String) } });
  });
});

test('a part is not left out for one of another kind that has the same name', () => {
  const part = (body: JsonObject) =>
    below(
      'parts',
      judgeEach(body.parts, (each) =>
        each.type === 'film'
          ? judge(allow(harmless('type'), { note: { unbounded: 'notes of films have a fee' } }), each)
          : judge(harmless('type'), each),
      ),
    );
  const boundBody = (body: JsonObject) => {
    const effect = part(body);
    if (typeof effect === 'object') return { unbounded: asUnbounded(effect) };
    return { bound: { inputTokens: 1, fees: {}, output: undefined } };
  };
  const bound = (...all: object[]) => {
    const facts = { contextWindow: undefined, maxOutput: undefined, reasoning: false };
    const call = { path: '/', bytes: 9, facts };
    const declared = compilePlaces(new Map([['parts[].note', { effect: 'harmless' }]]));
    return boundBeyond(declared, boundBody, { parts: all as JsonObject[] }, call);
  };
  const note = { note: 'x' };
  expect(bound({ type: 'a', ...note }, { type: 'b', ...note }, { type: 'a' })).toHaveProperty('bound');
  expect(bound({ type: 'a', ...note }, { type: 'film', ...note })).toHaveProperty('unbounded');
  // Each kind takes a turn, and their number is bounded.
  const kinds = Array.from({ length: 40 }, (_, i) => ({ type: `k${i}`, ...note }));
  expect(bound(...kinds)).toMatchObject({ unbounded: { reason: expect.stringContaining('too many') } });
});

test.each([
  ['harmless_fields', 'note'],
  ['harmless_fields.0', ['a b']],
  ['harmless_fields.0', ['']],
  ['harmless_fields.0', ['a..b']],
  ['harmless_fields.0', ['a[0]']],
  ['harmless_fields.0', ['model=x']],
  ['harmless_fields.0', ['tools[].name=x']],
  ['harmless_fields', Array.from({ length: 33 }, (_, i) => `f${i}`)],
  ['fields', ['note']],
  ['fields.a b', { 'a b': { effect: 'harmless' } }],
  ['fields.note.effect', { note: { effect: 'free' } }],
  ['fields.note.unit', { note: { effect: 'fee', unit: 'input', most: 1, runs: 0 } }],
  ['fields.note.reason', { note: { effect: 'refused' } }],
  ['fields', Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`f${i}`, { effect: 'harmless' }]))],
  ['harmless_betas', 'note'],
  ['harmless_betas.0', ['a,b']],
  ['harmless_betas.0', ['']],
])('a wrong %s (%j) is refused when PROVIDERS_FILE is read', (field, value) => {
  const [name = ''] = field.split('.');
  const entry = { extends: 'openai', base_url: 'https://a.example', [name]: value };
  expect(() => loadProviders(JSON.stringify({ acme: entry }))).toThrow(`acme.${field}`);
});
