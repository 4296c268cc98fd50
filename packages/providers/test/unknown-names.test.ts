import { expect, test } from 'vitest';
import { type JsonObject, loadProviders, nameOfPlace, readKnowledge, spendOf } from '../src/index.ts';
import { endpoint, FACTS } from './spend/native-call.ts';

const user = (content: unknown) => ({ role: 'user', content });
const chat = { model: 'm', max_tokens: 5, messages: [user('Hi')] };
const turns = [{ role: 'user', parts: [{ text: 'Hi' }] }];
const converse = { messages: [user([{ text: 'Hi' }])] };
const NEW = { type: 'new' };

const OPENAI = ['openai', '/v1/chat/completions'] as const;
const RESPONSES = ['openai', '/v1/responses'] as const;
const ANTHROPIC = ['anthropic', '/v1/messages'] as const;
const VERTEX = [
  'vertex',
  '/v1/projects/p/locations/global/publishers/anthropic/models/claude-opus-5:rawPredict',
] as const;
const INVOKE = ['bedrock', '/model/us.anthropic.claude-opus-5/invoke'] as const;
const CONVERSE = ['bedrock', '/model/us.anthropic.claude-opus-5/converse'] as const;
const GEMINI = ['google', '/v1beta/models/gemini-2.5-flash:generateContent'] as const;
const COHERE = ['cohere', '/v2/chat'] as const;

const response = { model: 'm', max_output_tokens: 16, input: 'Hi' };
const claude = { max_tokens: 5, messages: [user('Hi')] };

/** A field or a kind that no list has, in each dialect, and the name under which it is counted and declared. */
const UNKNOWN: readonly (readonly [string, string, object, string])[] = [
  [...OPENAI, { ...chat, note: 1 }, 'note'],
  [...OPENAI, { ...chat, messages: [{ ...user('Hi'), note: 1 }] }, 'messages[].note'],
  [...OPENAI, { ...chat, messages: [user([NEW])] }, 'messages[].content[].type=new'],
  [...OPENAI, { ...chat, tools: [NEW] }, 'tools[].type=new'],
  [...RESPONSES, { ...response, note: 1 }, 'note'],
  [...RESPONSES, { ...response, input: [NEW] }, 'input[].type=new'],
  [...RESPONSES, { ...response, tools: [NEW] }, 'tools[].type=new'],
  [...RESPONSES, { ...response, input: [user([NEW])] }, 'input[].content[].type=new'],
  ['openai', '/v1/completions', { model: 'm', max_tokens: 5, prompt: 'x', note: 1 }, 'note'],
  ['openai', '/v1/embeddings', { model: 'm', input: 'x', note: 1 }, 'note'],
  ['openai', '/v1/images/generations', { model: 'gpt-image-1', prompt: 'x', note: 1 }, 'note'],
  ['openai', '/v1/audio/speech', { model: 'tts-1', input: 'x', note: 1 }, 'note'],
  ...[ANTHROPIC, VERTEX, INVOKE].flatMap(([id, path]) => {
    const body = id === 'anthropic' ? { ...claude, model: 'claude-opus-5' } : claude;
    return [
      [id, path, { ...body, note: 1 }, 'note'] as const,
      [id, path, { ...body, messages: [{ ...user('Hi'), note: 1 }] }, 'messages[].note'] as const,
      [id, path, { ...body, messages: [user([NEW])] }, 'messages[].content[].type=new'] as const,
      [id, path, { ...body, tools: [NEW] }, 'tools[].type=new'] as const,
    ];
  }),
  [...CONVERSE, { ...converse, note: 1 }, 'note'],
  [...CONVERSE, { ...converse, inferenceConfig: { note: 1 } }, 'inferenceConfig.note'],
  [...CONVERSE, { messages: [user([{ new: {} }])] }, 'messages[].content[].new'],
  [...CONVERSE, { ...converse, toolConfig: { tools: [{ new: {} }] } }, 'toolConfig.tools[].new'],
  [...GEMINI, { contents: turns, note: 1 }, 'note'],
  [...GEMINI, { contents: turns, generationConfig: { note: 1 } }, 'generationConfig.note'],
  [...GEMINI, { contents: [{ role: 'user', parts: [{ new: {} }] }] }, 'contents[].parts[].new'],
  [...GEMINI, { contents: turns, tools: [{ new: {} }] }, 'tools[].new'],
  [
    'google',
    '/v1beta/models/imagen-4.0-generate-001:predict',
    { instances: [{ prompt: 'x' }], note: 1 },
    'note',
  ],
  ['google', '/v1beta/models/gemini-embedding-001:embedContent', { content: turns[0], note: 1 }, 'note'],
  [...COHERE, { ...chat, note: 1 }, 'note'],
  [...COHERE, { ...chat, messages: [user([NEW])] }, 'messages[].content[].type=new'],
  ['cohere', '/v2/embed', { model: 'm', texts: ['x'], note: 1 }, 'note'],
  ['cohere', '/v2/rerank', { model: 'm', query: 'x', documents: ['x'], note: 1 }, 'note'],
];

test.each(UNKNOWN)(
  'at %s %s, %j is refused as %s, which a knowledge file can add',
  (id, path, body, name) => {
    const call = { path, bytes: Buffer.byteLength(JSON.stringify(body)), facts: FACTS };
    const judged = endpoint(id, path).spend.bound(body as JsonObject, call);
    if (!('unbounded' in judged)) throw new Error('was not refused');
    expect(judged.unbounded).toMatchObject({ isUnknown: true });
    expect(nameOfPlace(judged.unbounded, body as JsonObject)).toBe(name);

    const cited = { source: 'https://example.com/changelog', date: '2026-11-28' };
    const fields = { [name]: { ...cited, effect: 'harmless' } };
    const file = JSON.stringify({ date: '2026-11-28', providers: { [id]: { fields } } });
    const provider = loadProviders(
      undefined,
      readKnowledge(file, { source: 'file', date: '2026-11-28' }),
    ).get(id);
    expect(provider && spendOf(provider, path)?.bound(body as JsonObject, call)).toHaveProperty('bound');
  },
);

const NO_MAXIMUM = [
  ...['code_execution_20250825', 'code_execution_20270101', 'mcp_toolset', 'advisor_20260301'].map(
    (type) =>
      [
        ...ANTHROPIC,
        { ...claude, model: 'claude-opus-5', tools: [{ type }] },
        `tools[].type=${type}`,
      ] as const,
  ),
  ...['googleSearch', 'googleMaps', 'codeExecution', 'urlContext', 'fileSearch'].map(
    (name) => [...GEMINI, { contents: turns, tools: [{ [name]: {} }] }, `tools[].${name}`] as const,
  ),
  ...['code_interpreter', 'image_generation', 'mcp', 'web_search_preview', 'shell'].map(
    (type) => [...RESPONSES, { ...response, tools: [{ type }] }, `tools[].type=${type}`] as const,
  ),
  [
    ...CONVERSE,
    { ...converse, toolConfig: { tools: [{ systemTool: {} }] } },
    'toolConfig.tools[].systemTool',
  ],
] as const;

test.each(NO_MAXIMUM)(
  'at %s %s, %j has no maximum, and no knowledge file can give %s one',
  (id, path, body, name) => {
    const cited = { source: 'https://example.com/changelog', date: '2026-11-28' };
    const fields = { [name]: { ...cited, effect: 'harmless' } };
    const file = JSON.stringify({ date: '2026-11-28', providers: { [id]: { fields } } });
    const provider = loadProviders(
      undefined,
      readKnowledge(file, { source: 'file', date: '2026-11-28' }),
    ).get(id);
    const call = { path, bytes: Buffer.byteLength(JSON.stringify(body)), facts: FACTS };
    expect(provider && spendOf(provider, path)?.bound(body as JsonObject, call)).toHaveProperty('unbounded');
  },
);
