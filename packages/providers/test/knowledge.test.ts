import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  BUNDLED_KNOWLEDGE,
  type JsonObject,
  loadProviders,
  modelFacts,
  type Provider,
  readKnowledge,
  spendOf,
} from '../src/index.ts';
import { loosenedEntries, together } from '../src/knowledge/knowledge.ts';

const CITED = { source: 'https://example.com/changelog', date: '2026-11-27' };
const ORIGIN = { source: 'file', date: '2026-11-27' } as const;

type Entries = {
  readonly fields?: object;
  readonly betas?: object;
  readonly models?: object;
  readonly free_usage?: object;
};

const textOf = (providers: Readonly<Record<string, Entries>>) =>
  JSON.stringify({ date: '2026-11-27', providers });
const knowledgeOf = (providers: Readonly<Record<string, Entries>>) =>
  readKnowledge(textOf(providers), ORIGIN);

const PATHS = {
  openai: '/v1/chat/completions',
  anthropic: '/v1/messages',
  cohere: '/v2/chat',
  mistral: '/v1/chat/completions',
} as const;
const WINDOW = 100_000;

/** The bound of a call at a provider that a knowledge file adds to. */
function boundOf(provider: keyof typeof PATHS, fields: object, body: object, more = '{}') {
  const known = loadProviders(more, knowledgeOf({ [provider]: { fields } })).get(provider);
  const path = PATHS[provider];
  const spend = known && spendOf(known, path);
  if (!spend) throw new Error('no such endpoint');
  const facts = { contextWindow: WINDOW, maxOutput: 8_000, reasoning: false };
  const call = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }], ...body };
  const bytes = Buffer.byteLength(JSON.stringify(call));
  return spend.bound(call as JsonObject, { path, bytes, facts });
}

const HARMLESS = { ...CITED, effect: 'harmless' };
const WHOLE = { ...CITED, effect: 'whole window' };
const FEE = { ...CITED, effect: 'fee', unit: 'web_searches', most: 3, runs: 4 };
const REFUSED = { ...CITED, effect: 'refused', reason: 'has a fee since yesterday' };

test.each(Object.keys(PATHS) as (keyof typeof PATHS)[])(
  'an entry of PROVIDERS_FILE has the effects of a knowledge file at %s, and the stricter of both counts',
  (provider) => {
    const note = { note: 'x'.repeat(500) };
    const by = (effect: object, ofFile: object = {}) =>
      boundOf(provider, ofFile, note, JSON.stringify({ [provider]: { fields: { note: effect } } }));
    for (const entry of [HARMLESS, WHOLE, FEE, REFUSED]) {
      const { source: _, date: __, ...uncited } = entry;
      expect(by(uncited)).toEqual(boundOf(provider, { note: entry }, note));
      expect(by(entry, { note: HARMLESS })).toEqual(by(entry));
      expect(by(HARMLESS, { note: entry })).toEqual(by(entry));
    }
    // A field that this version knows keeps its bound.
    const free = JSON.stringify({ [provider]: { fields: { thread: { effect: 'harmless' } } } });
    const known = { type: 'continue' };
    if (provider === 'anthropic')
      expect(boundOf(provider, {}, { thread: known }, free)).toMatchObject({
        unbounded: { param: 'thread.type' },
      });
  },
);

describe.each(Object.keys(PATHS) as (keyof typeof PATHS)[])('at %s, a field that no list has', (provider) => {
  const note = { note: 'x'.repeat(500) };

  test('is refused by name without an entry', () => {
    expect(boundOf(provider, {}, note)).toMatchObject({ unbounded: { param: 'note', isUnknown: true } });
  });

  test('costs its bytes if the file says so, its window, or its fees and the runs that it brings', () => {
    const plain = boundOf(provider, {}, {});
    if ('unbounded' in plain) throw new Error('unbounded');
    const { inputTokens, output } = plain.bound;
    const harmless = boundOf(provider, { note: HARMLESS }, note);
    if ('unbounded' in harmless) throw new Error('unbounded');
    expect(harmless.bound.inputTokens).toBeGreaterThanOrEqual(inputTokens + 500);
    expect(harmless.bound.inputTokens).toBeLessThan(WINDOW);
    expect(boundOf(provider, { note: WHOLE }, note)).toMatchObject({ bound: { inputTokens: WINDOW } });
    const fee = boundOf(provider, { note: FEE }, note);
    if ('unbounded' in fee) throw new Error('unbounded');
    expect(fee.bound).toMatchObject({ inputTokens: 5 * WINDOW, fees: { web_searches: 3 } });
    expect(fee.bound.output?.times).toBe(5 * (output?.times ?? 0));
    expect(fee.bound.leastInput).toBeUndefined();
  });

  test('is refused with the reason of the file, and so is one that this version knows', () => {
    const reason = REFUSED.reason;
    expect(boundOf(provider, { note: REFUSED }, note)).toEqual({ unbounded: { param: 'note', reason } });
    expect(boundOf(provider, { temperature: REFUSED }, { temperature: 1 })).toEqual({
      unbounded: { param: 'temperature', reason },
    });
    expect(boundOf(provider, { temperature: REFUSED }, {})).toHaveProperty('bound');
  });

  test('costs the dearer of what the file and PROVIDERS_FILE say', () => {
    const more = JSON.stringify({ [provider]: { harmless_fields: ['note'] } });
    expect(boundOf(provider, { note: WHOLE }, note, more)).toMatchObject({ bound: { inputTokens: WINDOW } });
    expect(boundOf(provider, { note: REFUSED }, note, more)).toHaveProperty('unbounded');
    expect(boundOf(provider, {}, note, more)).toHaveProperty('bound');
  });
});

test.each([
  ['as it is named', { generationConfig: { seed: 1 } }],
  ['in the other spelling of protocol buffers', { generation_config: { seed: 1 } }],
  ['beside the other spelling', { generation_config: {}, generationConfig: { seed: 1 } }],
])('a field of Gemini is refused %s', (_how, more) => {
  const fields = { 'generationConfig.seed': REFUSED };
  const provider = loadProviders(undefined, knowledgeOf({ google: { fields } })).get('google');
  const path = '/v1beta/models/gemini-2.5-flash:generateContent';
  const facts = { contextWindow: WINDOW, maxOutput: 8_000, reasoning: false };
  const bound = (body: JsonObject) =>
    provider && spendOf(provider, path)?.bound(body, { path, bytes: 100, facts });
  const contents = [{ role: 'user', parts: [{ text: 'Hi' }] }];
  expect(bound({ contents })).toHaveProperty('bound');
  expect(bound({ contents, ...more })).toMatchObject({ unbounded: { reason: REFUSED.reason } });
});

test.each([
  ['a list', { parts: [{ text: 'Hi', videoMetadata: {} }] }],
  ['its only element', { parts: { text: 'Hi', videoMetadata: {} } }],
])('a field within %s is refused', (_what, content) => {
  const fields = { 'contents[].parts[].videoMetadata': REFUSED };
  const provider = loadProviders(undefined, knowledgeOf({ google: { fields } })).get('google');
  const path = '/v1beta/models/gemini-2.5-flash:generateContent';
  const facts = { contextWindow: WINDOW, maxOutput: 8_000, reasoning: false };
  const body = { contents: [content] };
  const bound = provider && spendOf(provider, path)?.bound(body, { path, bytes: 100, facts });
  expect(bound).toMatchObject({ unbounded: { reason: REFUSED.reason } });
});

test('each part that has a fee is held, in every place of its name', () => {
  const tools = Array.from({ length: 3 }, () => ({ type: 'browser' }));
  expect(boundOf('openai', { 'tools[].type=browser': FEE }, { tools })).toMatchObject({
    bound: { fees: { web_searches: 9 }, inputTokens: 13 * WINDOW },
  });
});

test.each<[keyof typeof PATHS, string, object]>([
  ['openai', 'prediction', { prediction: { type: 'content', content: 'Hi' } }],
  ['openai', 'web_search_options', { web_search_options: {} }],
  ['openai', 'n', { n: 'many' }],
  ['anthropic', 'mcp_servers', { mcp_servers: [{}] }],
  ['anthropic', 'container', { container: { id: 'c' } }],
  ['anthropic', 'thread.type', { thread: { type: 'continue' } }],
  ['cohere', 'connectors', { connectors: [{}] }],
])('at %s no entry takes the bound from %s', (provider, name, body) => {
  for (const entry of [HARMLESS, WHOLE, FEE]) {
    expect(boundOf(provider, { [name]: entry }, body)).toMatchObject({
      unbounded: { reason: expect.any(String) },
    });
  }
});

test('a server that extends a provider has the knowledge of that provider', () => {
  const file = JSON.stringify({ acme: { extends: 'openai', base_url: 'https://a.example' } });
  const known = knowledgeOf({ openai: { fields: { note: HARMLESS } } });
  const acme = loadProviders(file, known).get('acme');
  const facts = { contextWindow: undefined, maxOutput: undefined, reasoning: false };
  const call = { path: PATHS.openai, bytes: 100, facts };
  const body = { model: 'm', max_tokens: 5, messages: [], note: 1 };
  expect(acme && spendOf(acme, call.path)?.bound(body, call)).toHaveProperty('bound');
  expect(acme?.knowledge).toBe(`file:${known.id}`);
});

/** Which betas pass under a limit. */
const betasOf =
  (provider: Provider | undefined, path: string) =>
  (beta: string): boolean => {
    const spend = provider && spendOf(provider, path);
    return spend !== undefined && spend.refusedBeta({ 'anthropic-beta': beta }) === undefined;
  };

test('betas are added and refused', () => {
  const betas = { 'new-2026-12-01': HARMLESS, 'effort-2025-11-24': { ...CITED, effect: 'refused' } };
  const provider = loadProviders(undefined, knowledgeOf({ anthropic: { betas } })).get('anthropic');
  const passes = betasOf(provider, '/v1/messages');
  expect(passes('new-2026-12-01')).toBe(true);
  expect(passes('files-api-2025-04-14')).toBe(true);
  expect(passes('effort-2025-11-24')).toBe(false);
});

test('models are added, and no figure of a known one gets smaller', () => {
  const models = {
    'claude-opus-7': { ...CITED, window: 2_000_000, output: 256_000, thinks: true },
    'claude-haiku-4-5': { ...CITED, window: 1_000, output: 999_999, thinks: false },
  };
  const provider = loadProviders(undefined, knowledgeOf({ anthropic: { models } })).get('anthropic');
  if (!provider) throw new Error('no provider');
  const row = { contextWindow: 2_000_000, maxOutput: 256_000, reasoning: true };
  expect(modelFacts(provider, 'claude-opus-7')).toEqual(row);
  expect(modelFacts(provider, 'claude-haiku-4-5')).toEqual({
    ...{ contextWindow: 200_000, maxOutput: 999_999, reasoning: true },
  });
});

test.each<[string, unknown, RegExp]>([
  ['no JSON', '{', /is no knowledge file/],
  ['a list', [], /is no knowledge file/],
  ['no date', { providers: {} }, /date/],
  ['an unknown part', { date: '2026-11-27', providers: {}, more: 1 }, /is no knowledge file/],
  [
    'an entry without its source',
    of({ fields: { note: { effect: 'harmless', date: '2026-11-27' } } }),
    /note/,
  ],
  ['an entry without its date', of({ fields: { note: { effect: 'harmless', source: 'x' } } }), /note/],
  ['an unknown effect', of({ fields: { note: { ...CITED, effect: 'free' } } }), /note/],
  ['a fee without its unit', of({ fields: { note: { ...CITED, effect: 'fee', most: 1, runs: 0 } } }), /note/],
  ['a fee without its most', of({ fields: { note: { ...FEE, most: undefined } } }), /note/],
  ['a fee without its runs', of({ fields: { note: { ...FEE, runs: undefined } } }), /note/],
  ['a fee of any number', of({ fields: { note: { ...FEE, most: 1_001 } } }), /note/],
  ['a name with an index', of({ fields: { 'a[0]': HARMLESS } }), /a\[0\]/],
  ['a name of nothing', of({ fields: { '': HARMLESS } }), /fields/],
  ['a beta with a comma', of({ betas: { 'a,b': HARMLESS } }), /a,b/],
  ['a beta that is a whole window', of({ betas: { b: WHOLE } }), /b/],
  ['a window below 0', of({ models: { m: { ...CITED, window: -1, thinks: false } } }), /window/],
  ['too many entries', of({ betas: many(501) }), /at most 500/],
])('a file with %s is not used, and the problem names it', (_what, content, problem) => {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  expect(() => readKnowledge(text, ORIGIN)).toThrow(problem);
});

function of(entries: Entries) {
  return { date: '2026-11-27', providers: { openai: entries } };
}

function many(count: number) {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`b${i}`, HARMLESS]));
}

const model = (window: number, thinks: boolean) => ({ ...CITED, window, output: 5, thinks });

test.each<[string, Entries, Entries, boolean]>([
  ['a new entry', {}, { fields: { a: HARMLESS } }, false],
  ['a harmless entry that is gone', { fields: { a: HARMLESS } }, {}, false],
  ['a refusal that is gone', { fields: { a: REFUSED } }, {}, true],
  ['a refusal that became harmless', { fields: { a: REFUSED } }, { fields: { a: HARMLESS } }, true],
  ['a window that became harmless', { fields: { a: WHOLE } }, { fields: { a: HARMLESS } }, true],
  ['a fee that became a window', { fields: { a: FEE } }, { fields: { a: WHOLE } }, true],
  ['a smaller fee', { fields: { a: FEE } }, { fields: { a: { ...FEE, most: 2 } } }, true],
  ['fewer runs', { fields: { a: FEE } }, { fields: { a: { ...FEE, runs: 3 } } }, true],
  ['a fee in another unit', { fields: { a: FEE } }, { fields: { a: { ...FEE, unit: 'images' } } }, true],
  ['a larger fee', { fields: { a: FEE } }, { fields: { a: { ...FEE, most: 4 } } }, false],
  ['a harmless entry that is refused', { fields: { a: HARMLESS } }, { fields: { a: REFUSED } }, false],
  ['a refused beta that is gone', { betas: { a: { ...CITED, effect: 'refused' } } }, {}, true],
  ['a smaller window', { models: { m: model(9, true) } }, { models: { m: model(8, true) } }, true],
  [
    'a model that no longer thinks',
    { models: { m: model(9, true) } },
    { models: { m: model(9, false) } },
    true,
  ],
  ['a larger window', { models: { m: model(9, false) } }, { models: { m: model(10, true) } }, false],
])('%s waits for the operator: %#', (_what, before, after, waits) => {
  const good = knowledgeOf({ openai: before });
  const offered = knowledgeOf({ openai: after });
  expect(loosenedEntries(good, offered)).toHaveLength(waits ? 1 : 0);
  // Until then both count: nothing in the merged file is looser than the old one.
  expect(loosenedEntries(good, together(good, offered))).toEqual([]);
});

test('the published file says what this version knows: an earlier version that reads it knows as much', () => {
  const text = readFileSync(new URL('../data/knowledge.json', import.meta.url), 'utf8');
  const published = readKnowledge(text, ORIGIN);
  expect(BUNDLED_KNOWLEDGE).toMatchObject({ source: 'bundled', id: published.id });
  const own = loadProviders(undefined);
  const read = loadProviders(undefined, published);
  for (const [id, provider] of read) {
    const before = own.get(id);
    expect({ ...provider.models }).toEqual({ ...before?.models });
    const passes = betasOf(before, '/v1/messages');
    for (const [beta] of published.providers.get(id)?.betas ?? []) expect(passes(beta)).toBe(true);
    expect([...(published.providers.get(id)?.places ?? [])]).toEqual([]);
  }
});
