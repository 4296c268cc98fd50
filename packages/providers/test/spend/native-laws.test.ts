import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { costsNothing, type JsonObject } from '../../src/index.ts';
import { known } from '../apply.ts';
import { boundOf, endpoint, FACTS, refusedField } from './native-call.ts';

const text = (said: string) => [{ role: 'user', content: said }];
const ENDPOINTS: readonly [string, string, (said: string) => JsonObject][] = [
  [
    'anthropic',
    '/v1/messages',
    (said) => ({ model: 'claude-haiku-4-5', max_tokens: 9, messages: text(said) }),
  ],
  [
    'google',
    '/v1/models/gemini-2.5-pro:generateContent',
    (said) => ({ contents: [{ parts: [{ text: said }] }] }),
  ],
  [
    'google',
    '/v1/models/gemini-embedding-001:embedContent',
    (said) => ({ content: { parts: [{ text: said }] } }),
  ],
  [
    'bedrock',
    '/model/us.anthropic.claude-opus-5/converse',
    (said) => ({ messages: [{ role: 'user', content: [{ text: said }] }] }),
  ],
  [
    'bedrock',
    '/model/us.anthropic.claude-opus-5/invoke',
    (said) => ({ anthropic_version: 'bedrock-2023-05-31', max_tokens: 9, messages: text(said) }),
  ],
  ['cohere', '/v2/chat', (said) => ({ model: 'command-a-03-2025', messages: text(said) })],
  ['cohere', '/v1/chat', (said) => ({ model: 'command-r', message: said })],
  ['cohere', '/v2/embed', (said) => ({ model: 'embed-v4.0', input_type: 'classification', texts: [said] })],
  ['cohere', '/v2/rerank', (said) => ({ model: 'rerank-v3.5', query: 'q', documents: [said] })],
];

/** Under these APIs, any other name of the bound is an unknown field. */
const NAMES_ONE_BOUND = /:generateContent$|\/converse$/;

const NEW_FIELD = fc.string({ minLength: 3 }).map((name) => `x${name}x`);
const SAID = fc.string({ unit: 'binary', maxLength: 200 });

describe.each(ENDPOINTS)('%s %s', (provider, path, saying) => {
  const at = endpoint(provider, path);

  it('refuses any unknown field', () => {
    fc.assert(
      fc.property(NEW_FIELD, fc.jsonValue({ maxDepth: 2 }), (field, value) => {
        expect(refusedField(at, { ...saying('hi'), [field]: value ?? 1 })).toBeDefined();
      }),
    );
  });

  it('never bounds more text by fewer tokens, nor any text below its bytes', () => {
    fc.assert(
      fc.property(SAID, SAID, (said, more) => {
        const short = boundOf(at, saying(said)).inputTokens;
        expect(short).toBeGreaterThanOrEqual(Buffer.byteLength(said));
        expect(boundOf(at, saying(said + more)).inputTokens).toBeGreaterThanOrEqual(
          Math.max(Buffer.byteLength(said + more), Buffer.byteLength((said + more).normalize('NFKC'))),
        );
        expect(boundOf(at, saying(`${said} and more`)).inputTokens).toBeGreaterThan(short);
      }),
    );
  });

  it('does not change its arguments', () => {
    const body = deepFrozen({ ...saying('hi'), service_tier: 'auto' });
    at.spend.bound(body, { path, bytes: 100, facts: FACTS });
    at.spend.atStandardPrice?.(body);
    at.spend.withOutputBound?.(body, 5);
    expect(body).toEqual({ ...saying('hi'), service_tier: 'auto' });
  });

  it('reads the bound that it writes, under one name', () => {
    const spend = at.spend;
    if (spend.withOutputBound === undefined) return expect(boundOf(at, saying('hi')).output).toBeUndefined();
    const before = { ...saying('hi'), max_tokens: 1, max_completion_tokens: 2, max_output_tokens: 3 };
    const written = spend.withOutputBound(NAMES_ONE_BOUND.test(path) ? saying('hi') : before, 77);
    expect(boundOf(at, written).output).toMatchObject({ asked: 77, least: 77 });
    expect(JSON.stringify(written).match(/max_?\w*tokens/gi)).toHaveLength(1);
  });
});

function deepFrozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.values(value).forEach(deepFrozen);
    Object.freeze(value);
  }
  return value;
}

describe('free calls', () => {
  it.each([
    ['anthropic', 'POST', '/v1/messages/count_tokens', true],
    ['anthropic', 'GET', '/v1/models/claude-opus-4-8', true],
    ['anthropic', 'POST', '/v1/messages', false],
    ['google', 'POST', '/v1beta/models/gemini-2.5-pro:countTokens', true],
    ['google', 'GET', '/v1beta/models', true],
    ['google', 'POST', '/v1beta/models/gemini-2.5-pro:generateContent', false],
    ['google', 'POST', '/v1beta/models/gemini-2.5-pro:generateContent%3AcountTokens', false],
    ['cohere', 'GET', '/v1/models', true],
    ['cohere', 'POST', '/v2/chat', false],
  ])('%s %s %s: %s', (provider, method, path, free) => {
    expect(costsNothing(known(provider), method, path)).toBe(free);
  });
});
