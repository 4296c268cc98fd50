import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../src/index.ts';
import { apply } from './apply.ts';

const GEMINI = '/v1beta/models/gemini-2.5-flash:generateContent';

describe('config against any body', () => {
  const name = fc.constantFrom(
    'max_tokens',
    'max_completion_tokens',
    'maxOutputTokens',
    'generationConfig',
    'generation_config',
    'model',
    'stop',
    'n',
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'a',
    'hasOwnProperty',
  );
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.integer(),
      fc.constant(null),
      fc.array(fc.integer(), { maxLength: 2 }),
      tie('object'),
    ),
    object: fc
      .array(fc.tuple(name, tie('any')), { maxLength: 5 })
      .map((entries) => Object.fromEntries(entries)),
  }));
  const object = value.object as fc.Arbitrary<JsonObject>;
  const target = fc.constantFrom<[string, string]>(
    ['openai', '/v1/chat/completions'],
    ['openai', '/v1/moderations'],
    ['google', GEMINI],
    ['cohere', '/v2/chat'],
    ['anthropic', '/v1/messages'],
    ['azure-openai', '/openai/deployments/d/chat/completions'],
  );

  it('changes neither of them, nor a prototype', () => {
    fc.assert(
      fc.property(target, object, object, ([provider, path], config, sent) => {
        const before = JSON.stringify([config, sent]);
        const prototype = Reflect.ownKeys(Object.prototype).length;
        const { body } = apply(provider, path, config, sent);
        expect(JSON.stringify([config, sent])).toBe(before);
        expect(Reflect.ownKeys(Object.prototype).length).toBe(prototype);
        expect(Object.getPrototypeOf(body)).toBe(Object.prototype);
      }),
      { numRuns: 1000 },
    );
  });

  it("wins: the provider reads one bound, the config's, for any body of the holder", () => {
    const spellings = ['max_tokens', 'max_completion_tokens', 'max_output_tokens'];
    const sent = fc.dictionary(fc.constantFrom(...spellings), fc.integer({ min: 10 }));
    const nested = fc.dictionary(
      fc.constantFrom('maxOutputTokens', 'max_output_tokens'),
      fc.integer({ min: 10 }),
    );
    const boundsIn = (body: JsonObject): unknown[] =>
      Object.entries(body).flatMap(([key, held]) => {
        if (/^generation_?config$/i.test(key)) return boundsIn(held as JsonObject);
        return [...spellings, 'maxOutputTokens'].includes(key) ? [held] : [];
      });
    const endpoint = target.filter(([, path]) => path !== '/v1/moderations');
    fc.assert(
      fc.property(
        endpoint,
        fc.constantFrom(...spellings),
        sent,
        nested,
        nested,
        ([provider, path], bound, ...bodies) => {
          const [flat, camel, snake] = bodies;
          const body =
            provider === 'google' ? { ...flat, generationConfig: camel, generation_config: snake } : flat;
          expect(boundsIn(apply(provider, path, { [bound]: 5 }, body).body)).toEqual([5]);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it('wins: applying it twice gives the same body', () => {
    fc.assert(
      fc.property(target, object, object, ([provider, path], config, sent) => {
        const once = apply(provider, path, config, sent);
        expect(apply(provider, once.path, config, once.body)).toEqual(once);
      }),
      { numRuns: 1000 },
    );
  });

  it('wins: every field of the config is in the body unchanged, if no name moves', () => {
    const within = (over: unknown, body: unknown): boolean =>
      typeof over === 'object' && over !== null && !Array.isArray(over)
        ? Object.entries(over).every(
            ([key, inner]) => Object.hasOwn(body as object, key) && within(inner, (body as JsonObject)[key]),
          )
        : JSON.stringify(over) === JSON.stringify(body);
    fc.assert(
      fc.property(object, object, (config, sent) => {
        expect(within(config, apply('openai', '/v1/moderations', config, sent).body)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('keeps a field named __proto__ an ordinary one', () => {
    const hostile = JSON.parse(
      '{"__proto__": {"admin": true}, "constructor": {"prototype": {"admin": true}}}',
    ) as JsonObject;
    const { body } = apply('openai', '/v1/chat/completions', hostile, hostile);
    expect(JSON.stringify(body)).toBe(JSON.stringify(hostile));
    expect(({} as JsonObject).admin).toBeUndefined();
    expect(body.admin).toBeUndefined();
  });
});
