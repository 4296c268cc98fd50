import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  BUILT_IN_PROVIDERS,
  type JsonObject,
  loadProviders,
  modelFacts,
  ProvidersFileError,
  readKnowledge,
  spendOf,
} from '../src/index.ts';
import { readSource } from '../src/kept/keep-list.ts';
import { loosenedEntries, together } from '../src/knowledge/knowledge.ts';

/** A knowledge file is data from elsewhere. Here it is written by one who wants calls to cost more than they hold. */

const CITED = { source: 'https://example.com/changelog', date: '2026-11-28' };
const ORIGIN = { source: 'file', date: '2026-11-28' } as const;
const HARMLESS = { ...CITED, effect: 'harmless' };
const WHOLE = { ...CITED, effect: 'whole window' };
const FEE = { ...CITED, effect: 'fee', unit: 'web_searches', most: 3, runs: 4 };

const textOf = (providers: object) => JSON.stringify({ date: '2026-11-28', providers });
const read = (providers: object) => readKnowledge(textOf(providers), ORIGIN);

/** The message with which a text is refused. */
function refusalOf(attempt: () => unknown): string {
  try {
    attempt();
  } catch (error) {
    return (error as Error).message;
  }
  throw new Error('was not refused');
}

const ESC = '\u001b[2J\u001b]0;owned\u0007\r\n\u2028\u202egnp';
const LONG = 'x'.repeat(100_000);

describe.each([
  ['a provider', (name: string) => ({ [name]: {} })],
  ['a field', (name: string) => ({ openai: { fields: { [name]: HARMLESS } } })],
  ['a beta', (name: string) => ({ anthropic: { betas: { [name]: HARMLESS } } })],
  ['a model', (name: string) => ({ openai: { models: { [name]: { ...CITED, thinks: true } } } })],
  ['a count', (name: string) => ({ openai: { free_usage: { [name]: CITED } } })],
  ['a part', (name: string) => ({ openai: { [name]: {} } })],
  ['an effect', (name: string) => ({ openai: { fields: { note: { ...CITED, effect: name } } } })],
  [
    'a source',
    (name: string) => ({ openai: { fields: { note: { ...HARMLESS, source: name.repeat(60) } } } }),
  ],
  ['a date', (name: string) => ({ openai: { fields: { note: { ...HARMLESS, date: name } } } })],
  [
    'a reason',
    (name: string) => ({ openai: { fields: { note: { ...CITED, effect: 'refused', reason: name } } } }),
  ],
])('%s of a knowledge file', (_what, providers) => {
  test.each([
    ['that steers a terminal', ESC],
    ['of 100,000 characters', LONG],
  ])('%s is refused in one short line of plain text', (_how, name) => {
    const message = refusalOf(() => read(providers(name)));
    expect(message).toMatch(/^is no knowledge file/);
    expect(message).not.toMatch(/[\p{C}\u2028\u2029]/u);
    expect(message.length).toBeLessThanOrEqual(400);
  });
});

test.each([
  ['that steers a terminal', ESC],
  ['of 100,000 characters', LONG],
])('a name in PROVIDERS_FILE %s is refused in one short line of plain text', (_how, name) => {
  const files = [{ [name]: {} }, { openai: { [name]: 1 } }, { openai: { fields: { [name]: HARMLESS } } }];
  for (const file of files) {
    const message = refusalOf(() => loadProviders(JSON.stringify(file)));
    expect(message).not.toMatch(/[\p{C}\u2028\u2029]/u);
    expect(message.length).toBeLessThan(1_500);
  }
});

test('a provider that this version does not have is refused by name: its entries would count nowhere', () => {
  expect(refusalOf(() => read({ antropic: { fields: { note: { ...WHOLE } } } }))).toContain(
    'providers.antropic',
  );
});

const COSTLY = [
  'context-1m-2025-08-07',
  'fast-mode-2026-02-01',
  'code-execution-2025-05-22',
  'mcp-client-2025-11-20',
];

test.each(COSTLY)('no file makes %s harmless, which is known to change a price', (beta) => {
  expect(refusalOf(() => read({ anthropic: { betas: { [beta]: HARMLESS } } }))).toContain('change a price');
  const file = JSON.stringify({ anthropic: { harmless_betas: [beta] } });
  expect(() => loadProviders(file)).toThrow(ProvidersFileError);
  expect(read({ anthropic: { betas: { [beta]: { ...CITED, effect: 'refused' } } } })).toBeDefined();
});

test.each([
  'container',
  'iterations',
  'iterations.compaction',
  'iterations.*',
  'server_tool_use.*',
  'url_citation',
  'executed_tools',
])('no file frees %s, which is known to cost money', (name) => {
  for (const id of ['anthropic', 'openai', 'groq']) {
    expect(refusalOf(() => read({ [id]: { free_usage: { [name]: CITED } } }))).toContain('cost money');
    const entries = [
      { [id]: { free_usage: ['energy', name] } },
      { own: { extends: id, free_usage: [name] } },
    ];
    for (const entry of entries) expect(refusalOf(() => loadProviders(JSON.stringify(entry)))).toMatch(COSTS);
  }
});

const COSTS = /free_usage\.\d.*is known to cost money/;

const TINY = { ...CITED, window: 1, output: 1, thinks: false };

describe.each([...BUILT_IN_PROVIDERS.keys()])('at %s', (id) => {
  const before = BUILT_IN_PROVIDERS.get(id);
  if (!before) throw new Error('no provider');
  const known = Object.keys(before.models ?? {}).slice(0, 100);
  const suffixes = ['', '-2026-11-28', '-20261128', '-latest', '-preview-2026-01-01', ':free'];
  const names = known.flatMap((name) => suffixes.map((suffix) => name + suffix));

  test('a longer name of a known model takes no figure away from it', () => {
    const chosen = names.slice(0, 500);
    const file = read({ [id]: { models: Object.fromEntries(chosen.map((name) => [name, TINY])) } });
    const after = loadProviders(undefined, file).get(id);
    if (!after) throw new Error('no provider');
    for (const name of chosen) {
      const [was, is] = [modelFacts(before, name), modelFacts(after, name)];
      expect([name, is]).toEqual([name, was]);
    }
  });
});

test("a reseller's model keeps its maker's figures, and a file adds its window", () => {
  const name = 'anthropic/claude-sonnet-4.5';
  const before = BUILT_IN_PROVIDERS.get('openrouter');
  const after = loadProviders(
    undefined,
    read({ openrouter: { models: { [name]: { ...TINY, window: 200_000 } } } }),
  ).get('openrouter');
  if (!before || !after) throw new Error('no provider');
  expect(modelFacts(after, name)).toEqual({ ...modelFacts(before, name), contextWindow: 200_000 });
});

test.each([
  ['bedrock', '/model/us.anthropic.claude-opus-5/invoke'],
  ['vertex', '/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-5:rawPredict'],
])('at %s a file refuses and adds betas that are in the body', (id, path) => {
  const betas = {
    'effort-2025-11-24': { ...CITED, effect: 'refused' },
    'new-2026-12-01': HARMLESS,
  };
  const provider = loadProviders(undefined, read({ [id]: { betas } })).get(id);
  const facts = { contextWindow: undefined, maxOutput: undefined, reasoning: false };
  const judged = (anthropic_beta: unknown) =>
    provider &&
    spendOf(provider, path)?.bound({ max_tokens: 1, messages: [], anthropic_beta } as JsonObject, {
      ...{ path, bytes: 100, facts },
    });
  const refused = (param: string) => ({ unbounded: { param } });
  expect(judged(['new-2026-12-01', 'files-api-2025-04-14'])).toHaveProperty('bound');
  expect(judged(['new-2026-12-01', 'effort-2025-11-24'])).toMatchObject(refused('anthropic_beta[1]'));
  expect(judged(['x'])).toMatchObject(refused('anthropic_beta[0]'));
  expect(judged('new-2026-12-01')).toMatchObject(refused('anthropic_beta'));
});

test.each([
  ['a fee', FEE],
  ['a window', WHOLE],
])('%s does not come back cheaper by way of a file without it', (_what, entry) => {
  const first = read({ openai: { fields: { note: entry } } });
  const without = read({ openai: { fields: {} } });
  expect(loosenedEntries(first, without)).toEqual([{ provider: 'openai', entry: 'note' }]);
  const then = read({ openai: { fields: { note: HARMLESS } } });
  expect(loosenedEntries(together(first, without), then)).toHaveLength(1);
});

test('entries of any number are refused, and so is a file of any size', () => {
  const many = Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`f${i}`, HARMLESS]));
  expect(refusalOf(() => read({ openai: { fields: many } }))).toContain('at most 500');
  expect(refusalOf(() => readKnowledge(`"${'x'.repeat(9 * 1024 * 1024)}"`, ORIGIN))).toContain('larger than');
  expect(refusalOf(() => readKnowledge('['.repeat(1_000_000), ORIGIN))).toContain('is no knowledge file');
});

test('a pipe without a writer does not hold up the service that reads it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'presign-pipe-'));
  try {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    await expect(readSource({} as never, { is: 'file', path })).rejects.toThrow('is no file');
    await expect(readSource({} as never, { is: 'file', path: folder })).rejects.toThrow('is no file');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
