import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkCallPath,
  checkPathPattern,
  compilePaths,
  doubledVersionPrefix,
  repeatedEnd,
} from '../src/index.ts';
import { patternsMeet } from '../src/path.ts';

const matchPath = (patterns: readonly string[], path: string) => compilePaths(patterns)(path);

const REFUSED = [
  '',
  'v1/chat',
  'https://api.openai.com/v1',
  '//v1',
  '/v1//chat',
  '/v1/chat//',
  '/v1/../admin',
  '/..',
  '/v1/..',
  '/v1/a..b',
  '/v1/./chat',
  '/.',
  '/v1/.',
  '/v1\\chat',
  '/v1/chat?key=1',
  '/v1/chat#x',
  '/v1/ch at',
  '/v1/\tchat',
  '/v1/\nchat',
  '/v1/\r\nHost: x',
  '/v1/\0',
  '/v1/\x7f',
  '/v1/\x80',
  '/v1/é',
  '/v1/．．/admin',
  '/v1/😀',
  '/v1/\ud800',
  '/v1/"x"',
  '/v1/<x>',
  '/v1/{x}',
  '/v1/[x]',
  '/v1/x|y',
  '/v1/x^y',
  '/v1/`x`',
  '/v1/%',
  '/v1/%2',
  '/v1/%zz',
  '/v1/%u002e',
  '/v1/%2e%2e/admin',
  '/v1/%2E%2E/admin',
  '/v1/.%2e/admin',
  '/v1/%2e./admin',
  '/v1/%2e/chat',
  '/v1/a%2eb',
  '/v1%2fchat',
  '/v1%2Fchat',
  '/v1/%2f',
  '/v1%5cchat',
  '/v1%5Cchat',
  '/v1/chat%3fkey=1',
  '/v1/chat%3Fkey=1',
  '/v1/chat%23x',
  '/v1/%00',
  '/v1/%0a',
  '/v1/%0d%0aHost:x',
  '/v1/%1f',
  '/v1/%7f',
  '/v1/%20chat',
  '/v1/%25',
  '/v1/%252e%252e/admin',
  '/v1/%25252e',
  '/v1/%252f',
  '/v1/ch%61t',
  '/v1/%5fx',
  '/v1/%2dx',
  '/v1/%7Ex',
  '/v1/%c0%ae%c0%ae/admin',
  '/v1/%c0%af',
  '/v1/%e0%80%af',
  '/v1/%ff',
  '/v1/%c2%85',
  '/v1/%ed%a0%80',
];

const PASSED = [
  '/',
  '/v1/chat/completions',
  '/v1beta/models/gemini-2.5-flash:generateContent',
  '/v1beta/models/*:generateContent',
  '/openai/deployments/my_gpt-4o.1/chat/completions',
  '/v1/models/ft%3Agpt-4o%3Aacme',
  "/v1/a!$&'()*+,;=:@b~c",
  '/v1/files/%C3%A9',
  '/v1/models/',
];

describe('a path in a grant or a call', () => {
  it.each(REFUSED)('is refused as %j', (path) => {
    expect(checkCallPath(path)).toMatch(/^(must|contains)/);
    expect(checkPathPattern(path)).toMatch(/^(must|contains)/);
  });

  it.each(PASSED)('passes as %j', (path) => {
    expect(checkCallPath(path)).toBeUndefined();
    expect(checkPathPattern(path)).toBeUndefined();
  });

  it('survives a URL parser and any number of decodings unchanged, if it passes', () => {
    const hostile = fc.constantFrom(
      '/',
      '.',
      '..',
      '%2e',
      '%2F',
      '%25',
      '%3A',
      '\\',
      '?',
      'a',
      'é',
      '%C3%A9',
      ' ',
      '*',
    );
    fc.assert(
      fc.property(fc.array(hostile, { maxLength: 8 }), (parts) => {
        const path = `/${parts.join('')}`;
        if (checkCallPath(path) !== undefined) return;
        expect(new URL(`http://host${path}`).pathname).toBe(path);
        const once = decodeURIComponent(path);
        expect(decodeURIComponent(once)).toBe(once);
        expect(once.split('/').length).toBe(path.split('/').length);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('matching a path', () => {
  const asRegex = (pattern: string) =>
    new RegExp(
      `^${pattern
        .split('*')
        .map((text) => text.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
        .join('[^/]+')}$`,
    );

  it('agrees with a regular expression in which a star is one or more characters but /', () => {
    const near = fc.string({ unit: fc.constantFrom('a', 'b', '/', ':', '.'), maxLength: 12 });
    const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '/', '*', ':', '.'), maxLength: 8 });
    fc.assert(
      fc.property(pattern, near, (a, b) => {
        expect(matchPath([a], b)).toBe(asRegex(a).test(b));
      }),
      { numRuns: 20_000 },
    );
  });

  it('matches a path that fills the stars', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', ':'), minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(text, fc.boolean()), { minLength: 1, maxLength: 10 }),
        text,
        (parts, filling) => {
          const pattern = `/${parts.map(([piece, star]) => piece + (star ? '*' : '/')).join('')}`;
          expect(matchPath(['/other', pattern], pattern.replaceAll('*', filling))).toBe(true);
        },
      ),
    );
  });

  it('needs at least one character for a star and never crosses a slash', () => {
    const matches = compilePaths(['/v1beta/models/*:generateContent']);
    expect(matches('/v1beta/models/gemini-2.5-flash:generateContent')).toBe(true);
    expect(matches('/v1beta/models/:generateContent')).toBe(false);
    expect(matches('/v1beta/models/a/b:generateContent')).toBe(false);
    expect(matches('/v1beta/models/gemini:streamGenerateContent')).toBe(false);
    expect(matches('/v1beta/models/gemini:generateContent/x')).toBe(false);
  });

  it('compares the bytes of every character of a pattern', () => {
    expect(matchPath(['/v1/a.c'], '/v1/abc')).toBe(false);
    expect(matchPath(['/v1/(a|b)'], '/v1/a')).toBe(false);
    expect(matchPath(['/v1/chat'], '/v1/Chat')).toBe(false);
  });

  it('ends on the longest pattern of stars, on which a backtracking match does not end', () => {
    const stars = `/${'*a'.repeat(767)}b`;
    expect(matchPath([stars], `/${'a'.repeat(6000)}`)).toBe(false);
    expect(matchPath([stars], `/${'a'.repeat(6000)}b`)).toBe(true);
  });
});

describe('the hint on a doubled version prefix', () => {
  it.each([
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/v1beta/v1beta/models/g:generateContent', '/v1beta/models/*:generateContent'],
    ['/openai/v1/openai/v1/chat/completions', '/openai/v1/chat/completions'],
    ['/openai/v1/v1/chat/completions', '/openai/v1/chat/completions'],
    ['/inference/v1/inference/v1/messages', '/inference/v1/messages'],
    ['/openai/deployments/x/openai/deployments/x/chat/completions', '/openai/deployments/*/chat/completions'],
  ])('is given for %s where %s is allowed', (path, pattern) => {
    expect(doubledVersionPrefix(path, ['/other', pattern])).toBe(true);
  });

  it.each([
    ['/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/v1/embeddings', '/v1/chat/completions'],
    ['/v1/v2/chat/completions', '/v1/chat/completions'],
    ['/', '/v1'],
  ])('is not given for %s where %s is allowed', (path, pattern) => {
    expect(doubledVersionPrefix(path, [pattern])).toBe(false);
  });
});

describe('the hint on a base URL that is the whole URL', () => {
  it.each([
    ['/v1/chat/completions', '/chat/completions', '/v1/chat/completions'],
    ['/v1/responses', '/responses', '/v1/responses'],
    ['/openai/v1/chat/completions', '/openai/v1/chat/completions', '/openai/v1/chat/*'],
    ['/v1/messages', '/v1/messages', '/v1/messages'],
    ['/v1/embeddings', '/embeddings', '/v1/*'],
    ['/v2/chat', '/v2/chat', '/v2/chat'],
    ['/v1beta/models/g:generateContent', '/v1beta/models/g:generateContent', '/v1beta/models/*'],
    ['/chat/completions', '/chat/completions', '/chat/completions'],
  ])('is given for %s with %s after it', (base, added, pattern) => {
    expect(repeatedEnd(base + added, ['/other', pattern])).toBe(added);
  });

  it.each([
    ['/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions/completions', '/v1/embeddings'],
    ['/v1/chat/completions/messages', '/v1/chat/completions'],
    ['/', '/v1'],
    ['/v1', '/v1'],
  ])('is not given for %s where %s is allowed', (path, pattern) => {
    expect(repeatedEnd(path, [pattern])).toBeUndefined();
  });

  it('ends on a path of many equal parts', () => {
    expect(repeatedEnd('/a'.repeat(3_000), ['/v1/chat/completions'])).toBeUndefined();
  });
});

describe('two patterns', () => {
  const pattern = fc
    .string({ unit: fc.constantFrom('a', 'b', '*', '/'), maxLength: 8 })
    .map((text) => `/${text}`);
  /** Paths that a pattern matches: every star as `a`, `b`, `ab` or `ba`. */
  const filled = (text: string) => ['a', 'b', 'ab', 'ba', 'bab'].map((piece) => text.replaceAll('*', piece));

  it('meet if a path matches both', () => {
    fc.assert(
      fc.property(pattern, pattern, (a, b) => {
        const both = [...filled(a), ...filled(b)].some(
          (path) => matchPath([a], path) && matchPath([b], path),
        );
        if (both) expect(patternsMeet(a, b)).toBe(true);
        expect(patternsMeet(a, b)).toBe(patternsMeet(b, a));
      }),
      { numRuns: 2_000 },
    );
  });

  it('of which one has no star meet exactly if the other matches it', () => {
    fc.assert(
      fc.property(pattern, pattern, (a, text) => {
        const path = text.replaceAll('*', 'b');
        expect(patternsMeet(a, path)).toBe(matchPath([a], path));
      }),
      { numRuns: 2_000 },
    );
  });

  it.each([
    ['/v1/*', '/v1/models/*', false],
    ['/v1/*', '/*/chat', true],
    ['/v1/a*', '/v1/*b', true],
    ['/v1/a*b', '/v1/b*a', false],
    ['/models/*:generate', '/models/gemini-*', true],
    ['/models/*:generate', '/models/*:embed', false],
  ])('%s and %s: %s', (a, b, meet) => expect(patternsMeet(a, b)).toBe(meet));
});
