import fc from 'fast-check';
import * as cl100k from 'gpt-tokenizer/encoding/cl100k_base';
import * as o200k from 'gpt-tokenizer/encoding/o200k_base';
import { describe, expect, it } from 'vitest';
import { grownByNormalising, grownByRewriting } from '../../src/bounds/count-text.ts';
import type { JsonObject } from '../../src/index.ts';
import { boundOf, FACTS } from './openai-call.ts';

/** Wide enough that nothing here is cut down to it. */
const facts = { ...FACTS, contextWindow: 10 ** 9 };
const PROVIDERS = [
  ['openai', '/v1/chat/completions'],
  ['groq', '/openai/v1/chat/completions'],
] as const;

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.string({ maxLength: 60 }),
  fc
    .array(
      fc.constantFrom('ﷺ', '\u0958', '𝅘𝅥𝅮', '👩‍👩‍👧', '\u0301', '<', '\n', '\u0000', 'é', '한', '  ', '\t'),
      { maxLength: 30 },
    )
    .map((all) => all.join('')),
);
const message = fc.record(
  { role: fc.constantFrom('system', 'user', 'assistant'), content: text },
  { requiredKeys: ['role', 'content'] },
);
const tool = fc.record({
  type: fc.constant('function'),
  function: fc.record({
    name: fc.string({ minLength: 1, maxLength: 8 }),
    description: text,
    parameters: fc.dictionary(text, fc.jsonValue({ maxDepth: 4 }), { maxKeys: 4 }),
  }),
});
const body = fc.record({
  model: fc.constant('gpt-4o'),
  messages: fc.array(message, { maxLength: 12 }),
  tools: fc.array(tool, { maxLength: 3 }),
});

/** As a chat template lays a call out at its longest: tools indented and escaped, markers around each message. */
function rendered({
  messages,
  tools,
}: {
  messages: readonly { role: string; content: string }[];
  tools: readonly unknown[];
}) {
  const escaped = JSON.stringify(tools, null, 4).replace(
    /[<>&'\u0080-\uffff]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  const turns = messages.map(
    ({ role, content }) => `<|start|>${role}<|message|>${content.normalize('NFKC')}<|end|>`,
  );
  return { tools: escaped, turns };
}

describe('the input bound', () => {
  it.each(PROVIDERS)('is never below the count of a tokenizer: %s', (provider, path) => {
    fc.assert(
      fc.property(body, (call) => {
        const { inputTokens } = boundOf(provider, path, call, facts);
        const plain = call.messages.map(({ content }) => content).join('') + JSON.stringify(call.tools);
        // Markers are one token each: 4 a message, as OpenAI's own are.
        for (const { countTokens } of [o200k, cl100k]) {
          expect(inputTokens).toBeGreaterThanOrEqual(countTokens(plain) + 4 * call.messages.length);
        }
      }),
      { numRuns: 150 },
    );
  });

  it('holds for the longest way a template can write a call', () => {
    fc.assert(
      fc.property(body, (call) => {
        const { inputTokens } = boundOf('groq', '/openai/v1/chat/completions', call, facts);
        const { tools, turns } = rendered(call);
        expect(inputTokens).toBeGreaterThanOrEqual(
          Buffer.byteLength(tools) +
            Buffer.byteLength(turns.map((turn) => turn.replace(/<\|\w+\|>/g, '')).join('')),
        );
      }),
      { numRuns: 150 },
    );
  });

  it('covers many tiny messages and tools', () => {
    const messages = Array.from({ length: 2_000 }, () => ({ role: 'user', content: 'a' }));
    const tools = Array.from({ length: 200 }, () => ({ type: 'function', function: { name: 'f' } }));
    const { inputTokens } = boundOf(
      'openai',
      '/v1/chat/completions',
      { model: 'gpt-4o', messages, tools },
      facts,
    );
    expect(inputTokens).toBeGreaterThanOrEqual(2_000 * (3 + 1 + 1) + 200 * 12);
  });

  it('covers text that grows when a tokenizer normalises it', () => {
    const call = { model: 'm', messages: [{ role: 'user', content: 'ﷺ'.repeat(1_000) }] };
    const normalised = Buffer.byteLength('ﷺ'.normalize('NFKC')) * 1_000;
    const { inputTokens } = boundOf('groq', '/openai/v1/chat/completions', call, facts);
    expect(inputTokens).toBeGreaterThanOrEqual(normalised);
    expect(boundOf('openai', '/v1/chat/completions', call, facts).inputTokens).toBeLessThan(4_000);
  });

  it('covers tools and schemas that grow when a template rewrites them', () => {
    const parameters = { description: '<'.repeat(1_000) };
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    const { inputTokens } = boundOf(
      'openai',
      '/v1/chat/completions',
      { model: 'm', messages: [], tools },
      facts,
    );
    expect(inputTokens).toBeGreaterThanOrEqual('\\u003c'.length * 1_000);
    const held = { text: { format: { type: 'json_schema', schema: parameters } }, input: 'Hi', model: 'm' };
    expect(boundOf('openai', '/v1/responses', held, facts).inputTokens).toBeGreaterThanOrEqual(6_000);
  });

  it('is at most the context window', () => {
    const call = (length: number): JsonObject => ({
      model: 'gpt-4o',
      messages: [{ role: 'user', content: 'a'.repeat(length) }],
    });
    expect(boundOf('openai', '/v1/chat/completions', call(10 ** 6)).inputTokens).toBe(128_000);
    expect(
      boundOf('openai', '/v1/chat/completions', call(10 ** 6), { ...facts, contextWindow: undefined })
        .inputTokens,
    ).toBeGreaterThan(10 ** 6);
  });

  it('is what is measured or the context window, whichever is less, also where images take the place of their bytes', () => {
    const image = fc.integer({ min: 0, max: 4_000 }).map((length) => ({
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${'A'.repeat(length)}` },
    }));
    const part = fc.oneof(
      image,
      text.map((value) => ({ type: 'text', text: value })),
    );
    const message = fc.record({ role: fc.constant('user'), content: fc.array(part, { maxLength: 4 }) });
    const call = fc.record({
      model: fc.constant('gpt-4o'),
      messages: fc.array(message, { maxLength: 4 }),
      tools: fc.array(tool, { maxLength: 3 }),
    });
    fc.assert(
      fc.property(call, fc.integer({ min: 1, max: 8_000 }), (sent, contextWindow) => {
        const path = '/v1/chat/completions';
        const { inputTokens } = boundOf('openai', path, sent, { ...facts, contextWindow });
        expect(inputTokens).toBe(Math.min(boundOf('openai', path, sent, facts).inputTokens, contextWindow));
      }),
    );
  });

  it('counts arguments of past calls as a template may rewrite them', () => {
    const call = (args: string): JsonObject => ({
      model: 'm',
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: args } }],
        },
      ],
    });
    const path = '/openai/v1/chat/completions';
    const nested = `${'['.repeat(50)}${']'.repeat(50)}`;
    const more =
      boundOf('groq', path, call(nested), facts).inputTokens -
      boundOf('groq', path, call('x'.repeat(100)), facts).inputTokens;
    expect(more).toBeGreaterThanOrEqual(JSON.stringify(JSON.parse(nested), null, 4).length - 100);
  });
});

describe('growth', () => {
  it('by normalising is at least that of any form in use', () => {
    fc.assert(
      fc.property(text, (value) => {
        for (const form of ['NFC', 'NFKC']) {
          expect(Buffer.byteLength(value) + grownByNormalising(value)).toBeGreaterThanOrEqual(
            Buffer.byteLength(value.normalize(form)),
          );
        }
      }),
    );
    expect(grownByNormalising('plain')).toBe(0);
    expect(grownByNormalising('ﷺ')).toBe(30);
  });

  it('by rewriting is at least that of indented JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        const pretty = JSON.stringify(value, null, 4);
        expect(Buffer.byteLength(json) + grownByRewriting(json)).toBeGreaterThanOrEqual(
          Buffer.byteLength(pretty),
        );
      }),
    );
  });

  it('by rewriting is at least that of escapes', () => {
    fc.assert(
      fc.property(text, (value) => {
        const json = JSON.stringify(value);
        const escaped = json
          .replace(/[<>&'\u0080-\uffff]/g, '\\uXXXX')
          // Two characters of an escape at a time: a backslash that is escaped begins no line.
          .replace(/\\./g, (each) => (each === '\\n' ? '# long' : each));
        expect(Buffer.byteLength(json) + grownByRewriting(json)).toBeGreaterThanOrEqual(escaped.length);
      }),
    );
  });

  it('by rewriting covers numbers that are written out', () => {
    expect('1e15'.length + grownByRewriting('1e15')).toBeGreaterThanOrEqual('1000000000000000.0'.length);
  });
});
