import { describe, expect, it } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  BUNDLED_KNOWLEDGE,
  costsNothing,
  loadProviders,
  modelFacts,
  ProvidersFileError,
} from '../src/index.ts';

const BUNDLED = `bundled:${BUNDLED_KNOWLEDGE.id}`;

import { patternsMeet } from '../src/path.ts';

const load = (file: unknown) => loadProviders(JSON.stringify(file));

describe('a providers file', () => {
  it('may be absent', () => {
    const known = [...BUILT_IN_PROVIDERS].map(([id, provider]) => [id, { ...provider, knowledge: BUNDLED }]);
    expect([...loadProviders(undefined)]).toEqual(known);
  });

  it('adds a provider that has the API of another at its own address', () => {
    const pricing = {
      'model-x': { input: 150000, output: 600000, cache_read: 0 },
      y: { input: 1, output: 2, cache_write: 3 },
    };
    const providers = load({
      acme: { extends: 'anthropic', base_url: 'https://api.acme.example/llm/', pricing },
    });
    expect(providers.get('acme')).toEqual({
      ...BUILT_IN_PROVIDERS.get('anthropic'),
      id: 'acme',
      baseUrl: 'https://api.acme.example/llm',
      models: undefined,
      makerNames: undefined,
      priceList: undefined,
      isOwnHost: undefined,
      slashedIds: [],
      outside: [],
      knowledge: BUNDLED,
      pricing: new Map([
        ['model-x', { input: 150000, output: 600000, cache_read: 0 }],
        ['y', { input: 1, output: 2, cache_write: 3 }],
      ]),
    });
    expect(providers.size).toBe(BUILT_IN_PROVIDERS.size + 1);
  });

  it('states the context windows of models that are its own, so that input outside of a body has a bound', () => {
    const [row, thinking] = [
      { window: 32_000, output: 4_000, thinks: false },
      { window: 9, output: 8 },
    ];
    const windows = { 'model-x': 32_000, 'model-z': row, 'model-t': thinking };
    const provider = load({
      acme: { extends: 'openai', base_url: 'https://a.example', context_windows: windows },
    }).get('acme');
    if (!provider) throw new Error('no provider');
    const unknown = { contextWindow: undefined, maxOutput: undefined, reasoning: true };
    expect(modelFacts(provider, 'model-x')).toEqual({ ...unknown, contextWindow: 32_000 });
    const known = { contextWindow: 32_000, maxOutput: 4_000, reasoning: false };
    expect(modelFacts(provider, 'model-z')).toEqual(known);
    expect(modelFacts(provider, 'model-t')).toEqual({ contextWindow: 9, maxOutput: 8, reasoning: true });
    for (const other of ['gpt-4o', 'model-y', 'constructor'])
      expect(modelFacts(provider, other)).toEqual(unknown);
  });

  it.each([
    ['without an address', {}, true],
    ["at the vendor's own address", { base_url: 'https://api.anthropic.com/' }, true],
    ["at a path of the vendor's own address", { base_url: 'https://api.anthropic.com/eu' }, true],
    ['at another address', { base_url: 'https://proxy.example' }, undefined],
    ['in plain HTTP', { base_url: 'http://api.anthropic.com' }, undefined],
    ['at an address that only begins alike', { base_url: 'https://api.anthropic.com.example' }, undefined],
  ])('a vendor %s states its input only if the server is its own', (_, entry, states) => {
    expect(load({ anthropic: { ...entry, answer_headers: [] } }).get('anthropic')?.isOwnHost).toBe(states);
  });

  it('has the strictest rules of the providers that it extends, in whatever order they are', () => {
    const orders = [
      ['anthropic', 'openai', 'groq'],
      ['groq', 'openai', 'anthropic'],
    ];
    for (const names of orders) {
      const { rules } = load({ acme: { extends: names, base_url: 'https://a.example' } }).get('acme') ?? {};
      for (const name of names) {
        const own = BUILT_IN_PROVIDERS.get(name)?.rules;
        for (const model of ['gpt-4o', 'llama-3.3-70b-versatile', 'claude-sonnet-4-5']) {
          const [all, one] = [rules, own].map((each) =>
            typeof each?.addedInput === 'function' ? each.addedInput(model) : each?.addedInput,
          );
          expect(all === 'whole window' || (one !== 'whole window' && Number(all) >= Number(one))).toBe(true);
        }
      }
      for (const model of ['groq/compound', 'gpt-4o-search-preview'])
        expect(rules?.refusedModels?.test(model)).toBe(true);
      expect(rules?.refusedModels?.test('gpt-4o')).toBe(false);
    }
  });

  it('bills the errors that any provider it extends bills, and takes no other error for free', () => {
    const base_url = 'https://api.acme.example';
    const billedBy = (extended: string | string[]) =>
      load({ acme: { extends: extended, base_url } }).get('acme')?.refusals;
    const xai = BUILT_IN_PROVIDERS.get('xai')?.refusals;
    expect(billedBy(['openai', 'xai'])).toEqual(xai);
    expect(billedBy(['azure-openai', 'xai'])).toHaveLength(4);
    expect(billedBy('openrouter')).toBe('undocumented');
  });

  it('has the free calls of all providers that it extends, in whatever order they are', () => {
    for (const names of [
      ['openai', 'anthropic'],
      ['anthropic', 'openai'],
    ]) {
      const acme = load({ acme: { extends: names, base_url: 'https://a.example' } }).get('acme');
      for (const { method, path } of names.flatMap((name) => BUILT_IN_PROVIDERS.get(name)?.free ?? []))
        expect(acme && costsNothing(acme, method, path.replaceAll('*', 'x')), `${method} ${path}`).toBe(true);
    }
  });

  it('extends no two providers of which one bills a POST that is free at the other', () => {
    const all = [...BUILT_IN_PROVIDERS.values()];
    const billed = all.flatMap(({ routes }) => routes.filter(({ dialect }) => dialect.spend));
    const free = all.flatMap((each) => (each.free ?? []).filter(({ method }) => method === 'POST'));
    expect(free.length).toBeGreaterThan(0);
    for (const { path } of free)
      expect(billed.filter((route) => patternsMeet(path, route.path)).map((route) => route.path)).toEqual([]);
  });

  it('changes a built-in provider for itself alone', () => {
    const providers = load({
      openai: { base_url: 'http://localhost:9000' },
      'azure-openai': { base_url: 'https://n.openai.azure.com' },
    });
    expect(providers.get('openai')?.baseUrl).toBe('http://localhost:9000');
    expect(providers.get('azure-openai')?.baseUrl).toBe('https://n.openai.azure.com');
    expect(providers.get('openai')?.routes).toBe(BUILT_IN_PROVIDERS.get('openai')?.routes);
    expect(BUILT_IN_PROVIDERS.get('openai')?.baseUrl).toBe('https://api.openai.com');
  });

  const acme = (fields: object) => ({
    acme: { extends: 'openai', base_url: 'https://a.example', ...fields },
  });
  const priced = (price: object) => acme({ pricing: { x: { input: 1, output: 1, ...price } } });

  it.each([
    ['an array', [], 'expected an object'],
    ['a string', 'x', 'expected an object'],
    ['an entry that is no object', { acme: 1 }, 'acme'],
    ['a null entry', { acme: null }, 'acme'],
    ['an unknown field', acme({ baseUrl: 'x' }), 'acme.baseUrl'],
    ['a new name without extends', { acme: { base_url: 'https://a.example' } }, 'acme.extends is missing'],
    ['a new name without base_url', { acme: { extends: 'openai' } }, 'acme.base_url is missing'],
    ['an unknown extends', acme({ extends: 'nobody' }), 'acme.extends: expected one of openai'],
    ['an extends of an inherited name', acme({ extends: 'constructor' }), 'acme.extends'],
    ['an extends that is no text', acme({ extends: 1 }), 'acme.extends'],
    ['an extends of itself', acme({ extends: 'acme' }), 'acme.extends'],
    ['a built-in that extends', { groq: { extends: 'openai' } }, 'groq.extends'],
    ['a name with a space', { 'a b': { extends: 'openai', base_url: 'https://a.example' } }, '"a b"'],
    ['an upper-case name', { Acme: { extends: 'openai', base_url: 'https://a.example' } }, '"Acme"'],
    ['a name with a line break', { 'a\nb': {} }, '"a\\nb"'],
    ['an empty name', { '': {} }, '""'],
    ['a price that is no whole number', priced({ input: 0.5 }), 'acme.pricing.x.input'],
    ['a negative price', priced({ output: -1 }), 'acme.pricing.x.output'],
    ['a price beyond exact integers', priced({ output: 2 ** 53 }), 'acme.pricing.x.output'],
    ['a window of a built-in', { groq: { context_windows: { x: 1 } } }, 'groq.context_windows'],
    [
      'an output above its window',
      acme({ context_windows: { x: { window: 8, output: 9 } } }),
      'acme.context_windows.x.output: expected at most the window',
    ],
    ['a window of nothing', acme({ context_windows: { x: 0 } }), 'acme.context_windows.x'],
    [
      'a window that is no count',
      acme({ context_windows: { x: { window: '1', output: 1 } } }),
      'acme.context_windows.x',
    ],
    ['a price as text', priced({ cache_read: '1' }), 'acme.pricing.x.cache_read'],
    ['an unknown rate', priced({ cached: 1 }), 'acme.pricing.x.cached'],
    ['a price without a rate', acme({ pricing: { x: {} } }), 'acme.pricing.x: expected at least one rate'],
    ['a unit that no dialect bounds', priced({ audio_hours: 1 }), 'acme.pricing.x.audio_hours'],
    ['a fee that is no whole number', priced({ rerank_searches: 0.5 }), 'acme.pricing.x.rerank_searches'],
    ['a model with a line break', acme({ pricing: { 'a\nb': { input: -1 } } }), 'acme.pricing.a b.input'],
  ])('is refused in one line that names the entry: %s', (_what, file, place) => {
    expect(() => load(file)).toThrow(ProvidersFileError);
    expect(() => load(file)).toThrow(place);
    expect(() => load(file)).toThrow(/^PROVIDERS_FILE: .*for example \{"acme"/);
    expect(() => load(file)).not.toThrow(/\n/);
  });

  it.each([
    'a.example',
    '',
    'ftp://a.example',
    'javascript:1',
    'https:a.example',
    'https://',
    'https:///a',
    'https://u@a.example',
    'https://u:p@a.example',
    'https://a.example?x',
    'https://a.example/?',
    'https://a.example/#',
    'https://a.example/a b',
    'https://a.example\\b',
    'https://a.example//b',
    'https://a.example/%2f',
    'https://a.example/\n',
    ' https://a.example',
  ])('is refused with base_url %j, which the message does not repeat', (base_url) => {
    expect(() => load(acme({ base_url }))).toThrow('acme.base_url: expected an http or https address');
    if (base_url.includes('u:p')) expect(() => load(acme({ base_url }))).not.toThrow('u:p');
  });

  it('is refused if it is not JSON, in a message that does not quote it', () => {
    expect(() => loadProviders('{"acme": secret}')).toThrow('PROVIDERS_FILE: is not valid JSON');
    expect(() => loadProviders('{"acme": secret}')).not.toThrow('secret');
    expect(() => loadProviders('')).toThrow(ProvidersFileError);
  });

  it('cannot name a provider __proto__', () => {
    expect(() =>
      loadProviders('{"__proto__": {"extends": "openai", "base_url": "https://a.example"}}'),
    ).toThrow('__proto__');
  });
});
