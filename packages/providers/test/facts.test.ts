import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { HARMLESS_NAME } from '../src/bounds/beyond-lists.ts';
import { compileGroup } from '../src/bounds/compile-group.ts';
import * as ANTHROPIC from '../src/facts/anthropic.ts';
import * as BEDROCK from '../src/facts/bedrock.ts';
import * as COHERE from '../src/facts/cohere.ts';
import type { Group } from '../src/facts/fact.ts';
import * as GEMINI from '../src/facts/gemini.ts';
import * as CHAT from '../src/facts/openai/chat.ts';
import * as COMPLETIONS from '../src/facts/openai/completions.ts';
import * as IMAGES from '../src/facts/openai/images.ts';
import * as RESPONSES from '../src/facts/openai/responses.ts';
import { BUILT_IN_PROVIDERS } from '../src/index.ts';
import { isJsonObject, type JsonObject } from '../src/json.ts';
import { endpoint } from './spend/native-call.ts';

const FOLDER = new URL('../src/facts/', import.meta.url);

/** The types of facts, and the names of units. */
const TYPES = ['fact.ts', 'rates.ts'];

/** Every list of every file, by file and name. */
const lists = await Promise.all(
  readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !TYPES.includes(file))
    .map(async (file) => {
      const found = (await import(new URL(file, FOLDER).href)) as Readonly<Record<string, unknown>>;
      return Object.entries(found).map(([name, list]): [string, unknown] => [`${file} ${name}`, list]);
    }),
).then((all) => all.flat());

/** Everything in a list that may have a source of its own: the list, its entries, and their parts. */
const partsOf = (value: unknown): readonly JsonObject[] => {
  if (Array.isArray(value)) return value.flatMap(partsOf);
  return isJsonObject(value) ? [value, ...Object.values(value).flatMap(partsOf)] : [];
};

const groups = lists.filter((each): each is [string, Group] => isJsonObject(each[1]) && 'entries' in each[1]);

/** Some APIs read a name in several spellings. A leading underscore makes another name of it (`_responseJsonSchema`). */
const spelling = (name: string) => name.replaceAll(/(?<=[^_])_+/g, '').toLowerCase();

const repeated = (names: readonly string[]) => names.filter((name, i) => names.indexOf(name) !== i);

describe('facts about the world', () => {
  it('are all found', () => {
    expect(lists.length).toBeGreaterThan(100);
    expect(groups.length).toBeGreaterThan(60);
  });

  it.each(lists)('%s has a source, and a day on which it was read', (_, list) => {
    expect(list).toMatchObject({ source: expect.any(String), date: expect.any(String) });
    for (const { source = 'its list', date = '2026-11-01' } of partsOf(list)) {
      expect(source).toMatch(/\S/);
      expect(date).toMatch(/^\d{4}-\d\d-\d\d$/);
      const day = new Date(String(date));
      expect(day.toISOString().slice(0, 10)).toBe(date);
      expect(day.getTime()).toBeLessThanOrEqual(Date.now());
    }
  });

  it.each(groups)('%s names places as a refusal does, each in one spelling', (_, { at, of, entries }) => {
    const names = Object.keys(entries);
    expect(repeated(names.map(spelling))).toEqual([]);
    for (const name of names) {
      const place = of === 'fields' ? [at, name].filter(Boolean).join('.') : `${at}.type=${name}`;
      expect(place).toMatch(HARMLESS_NAME);
    }
  });

  it.each(lists)('%s has each name of a list and each model once', (_, list) => {
    const { names = [], models = {} } = list as { names?: readonly string[]; models?: JsonObject };
    expect(repeated(names)).toEqual([]);
    expect(repeated(Object.keys(models).map((name) => name.toLowerCase()))).toEqual([]);
  });
});

describe('a built-in provider', () => {
  const known = new Set(
    lists.flatMap(([, list]) => Object.values(list as { names?: unknown; matching?: unknown })),
  );
  it.each([...BUILT_IN_PROVIDERS.values()])('$id has its lists and patterns from the facts', (provider) => {
    const { answerHeaders, slashedIds, modelFields, listedModels, liteLlmModels, rules } = provider;
    const media = [...(provider.mediaAsWhole ?? [])];
    if (media.length > 0)
      expect(lists.map(([, list]) => (list as { names?: unknown }).names)).toContainEqual(media);
    const own = { answerHeaders, slashedIds, modelFields, listedModels, liteLlmModels };
    for (const [name, list] of Object.entries({ ...own, refusedModels: rules.refusedModels }))
      if (list !== undefined) expect([name, known.has(list)]).toEqual([name, true]);
  });
});

/** Names of models and vendors, and headers, which belong into a list. */
const OF_THE_WORLD =
  /\b(?:gpt|claude|gemini|grok|imagen|sonar|llama|qwen|command-|mistral-|deepseek-|web_search|reasoning-)|['"/^]x-[a-z]|\d{4}-\d\d-\d\d/i;

/** The texts and patterns of a line, without comments, imports, and the paths and ids that a route has. */
const literalsOf = (line: string): string =>
  (
    line.replace(/(?:^|\s)\/\/.*|^\s*\/?\*.*/, '').match(/'[^']*'|`[^`]*`|\/\^?[^/ ]+\/[a-z]*(?=[.,)])/g) ??
    []
  ).join(' ');

const SOURCE = new URL('../src/', import.meta.url);

/** A path of an API, the id of its dialect, and the names that a vendor has in lists of prices and models. */
const IDENTITY =
  /^\s*(?:\{ )?(?:path|id|dialect|credential|traceName|liteLlm|priceList|makerNames|import|export|\} from)\b|openai[A-Z]\w+\(|^\s*'mistral-fim',/;

/** Lines that name something of the world and stay code, because what the code computes is the meaning of the name. */
const JUDGEMENTS = [
  // The header of a key is a kind of credential.
  "readonly header: 'x-api-key'",
  // How searches are counted in an answer of each API.
  "item.type === 'web_search_call'",
  "? 'preview_searches' : 'web_searches'",
  "type === 'web_search_tool_result'",
  'const SEARCH_EVENT',
  "'web_search_requests'",
  "addTo(usage, 'web_searches'",
  // Every model of this endpoint is bounded as one of Claude's.
  "model: 'claude-' }",
  // The day of the built-in version, and of its prices.
  "  date: '2026-11-27',",
  'const OF_THE_VENDOR',
  // An example in a message.
  "'expected the name of a beta",
];

it('no code names a model, a header of a vendor or a version of an API', () => {
  const named = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.startsWith('facts/'))
    .flatMap((file) =>
      readFileSync(new URL(file, SOURCE), 'utf8')
        .split('\n')
        .filter((line) => !IDENTITY.test(line) && !JUDGEMENTS.some((judged) => line.includes(judged)))
        .filter((line) => OF_THE_WORLD.test(literalsOf(line)))
        .map((line) => `${file}: ${line.trim()}`),
    );
  expect(named).toEqual([]);
});

describe('a judgement', () => {
  const named = {
    at: 'tools[]',
    of: 'kinds',
    source: 'https://example.com',
    date: '2026-11-27',
    entries: { browser: { effect: 'judged', by: 'largestPage' } },
  } as const satisfies Group;

  it('exists for each name that an entry says', () => {
    expect(() => compileGroup(named, {} as never)).toThrow(
      'no judgement "largestPage" for browser at "tools[]"',
    );
    expect(compileGroup(named, { largestPage: 'whole window' }).get('browser')).toBe('whole window');
  });

  it('needs no second copy of a list: a list without judgements compiles alone', () => {
    expect(compileGroup(CHAT.SAMPLING).get('top_k')).toBe('harmless');
  });
});

type Case = readonly [name: string, group: Group, provider: string, path: string, body: JsonObject];

const chat = { model: 'gpt-4o', messages: [{ role: 'user', content: 'Hi' }] };
const at = (provider: string, path: string) => [provider, path] as const;
const OPENAI = at('openai', '/v1/chat/completions');
const RESPONSE = [...at('openai', '/v1/responses'), { model: 'gpt-4o', input: 'Hi' }] as const;

/** The lists of the fields of bodies, each with an endpoint that takes them. */
const BODIES: readonly Case[] = [
  ['shared fields of OpenAI', CHAT.SHARED_FIELDS, ...OPENAI, chat],
  ['chat completions', CHAT.CHAT_FIELDS, ...OPENAI, chat],
  ['records of OpenAI', CHAT.CACHE_AND_RECORDS, ...OPENAI, chat],
  ['sampling', CHAT.SAMPLING, ...at('together', '/v1/chat/completions'), chat],
  ['Responses', RESPONSES.RESPONSES_FIELDS, ...RESPONSE],
  ['embeddings', COMPLETIONS.EMBEDDING_FIELDS, ...at('openai', '/v1/embeddings'), { model: 'x', input: 'x' }],
  [
    'completions',
    COMPLETIONS.COMPLETION_FIELDS,
    ...at('cerebras', '/v1/completions'),
    { model: 'x', prompt: 'x' },
  ],
  [
    'messages of Anthropic',
    ANTHROPIC.MESSAGES_FIELDS,
    ...at('anthropic', '/v1/messages'),
    { model: 'claude-sonnet-5', max_tokens: 100, messages: [] },
  ],
  [
    'Gemini',
    GEMINI.GENERATE_FIELDS,
    ...at('google', '/v1beta/models/gemini-2.5-flash:generateContent'),
    { contents: [] },
  ],
  ['Cohere', COHERE.CHAT_FIELDS, ...at('cohere', '/v2/chat'), { model: 'command-a', messages: [] }],
  ['Cohere embed', COHERE.EMBED_FIELDS, ...at('cohere', '/v2/embed'), { model: 'embed-v4.0', texts: ['x'] }],
  ['Converse', BEDROCK.CONVERSE_FIELDS, ...at('bedrock', '/model/amazon.nova/converse'), { messages: [] }],
];

const WINDOW = 100_000;

/** The input of a body, or why it is refused. */
function judged(provider: string, path: string, body: JsonObject) {
  const { spend } = endpoint(provider, path);
  const bounded = spend.bound(body, {
    path,
    bytes: Buffer.byteLength(JSON.stringify(body)),
    facts: { contextWindow: WINDOW, maxOutput: 4_096, reasoning: false },
  });
  return 'unbounded' in bounded ? bounded.unbounded : { input: bounded.bound.inputTokens };
}

describe('the entries of a list mean what they say', () => {
  it.each(BODIES)('in %s', (_, { entries }, provider, path, body) => {
    for (const [field, entry] of Object.entries(entries)) {
      if (entry.effect === 'judged' || field in body) continue;
      const value = entry.effect === 'harmless' && entry.values ? entry.values[0] : 'x';
      const sent = { ...body, [field]: value };
      const added = JSON.stringify(sent).length - JSON.stringify(body).length;
      const before = judged(provider, path, body);
      const plain = 'input' in before ? before.input : Number.NaN;
      const found = judged(provider, path, sent);
      if (entry.effect === 'harmless') expect([field, found]).toEqual([field, { input: plain + added }]);
      else if (entry.effect === 'whole window') expect([field, found]).toEqual([field, { input: WINDOW }]);
      else expect(found).toMatchObject({ param: field, reason: entry.reason });
      if (entry.effect === 'harmless' && entry.values)
        expect(judged(provider, path, { ...body, [field]: 'other' })).toMatchObject({
          param: field,
          reason: entry.reason,
        });
    }
  });
});

it('each output size of GPT Image has tokens for each quality', () => {
  for (const { models } of [IMAGES.FIRST_MODELS, IMAGES.SECOND_MODEL])
    for (const tokens of Object.values(models)) expect(tokens).toHaveLength(IMAGES.SIZES.names.length);
});
