import {
  ANSWER_HEADERS_OF_ALL,
  answerHeadersOf,
  BUILT_IN_PROVIDERS,
  loadProviders,
} from '@presign/providers';
import { describe, expect, test } from 'vitest';
import { ACTED_ON, OF_VENDORS, PASSED } from './answer-headers.ts';

const dangerous = ACTED_ON.map((line) => line.slice(0, line.indexOf(':')).toLowerCase());
/** These pass nowhere because they are on no list. An operator may list them. */
const HARMLESS = ['server', 'x-unknown'];

test.each([...BUILT_IN_PROVIDERS])(
  "%s' own headers pass, and no header that browsers act on",
  (id, provider) => {
    const passes = answerHeadersOf(provider);
    for (const name of [...(OF_VENDORS[id] ?? []), ...PASSED.map(([each]) => each.toLowerCase())])
      expect([name, passes(name)]).toEqual([name, true]);
    for (const name of dangerous) expect([name, passes(name)]).toEqual([name, false]);
    expect(() => load(provider.answerHeaders ?? [])).not.toThrow();
  },
);

test('MCP servers pass only the shared headers', () => {
  for (const name of dangerous) expect(ANSWER_HEADERS_OF_ALL(name)).toBe(false);
  for (const name of ['mcp-session-id', 'mcp-protocol-version'])
    expect(ANSWER_HEADERS_OF_ALL(name)).toBe(true);
});

const load = (answer_headers: unknown, id = 'acme') =>
  loadProviders(
    JSON.stringify({
      [id]: { ...(id === 'acme' && { extends: 'openai' }), base_url: 'https://a.example', answer_headers },
    }),
  );

describe('answer_headers of a providers file', () => {
  test('adds to the headers of the provider that it extends, or of a built-in one', () => {
    for (const id of ['acme', 'openai']) {
      const acme = load(['X-LiteLLM-*', 'server'], id).get(id);
      const passes = acme && answerHeadersOf(acme);
      for (const name of ['x-litellm-model-id', 'server', 'openai-version', 'x-request-id'])
        expect([name, passes?.(name)]).toEqual([name, true]);
      for (const name of dangerous.filter((each) => each !== 'server'))
        expect([name, passes?.(name)]).toEqual([name, false]);
    }
  });

  test.each(dangerous.filter((name) => !HARMLESS.includes(name)))(
    'cannot have %s, and the error names it',
    (name) => {
      expect(() => load([name])).toThrow(`acme.answer_headers.0: "${name}" would let`);
      expect(() => load([name.toUpperCase()])).toThrow(`"${name}" would let`);
    },
  );

  test.each(
    [
      ...[
        'content-*',
        'content-security-*',
        'report-*',
        'reporting-*',
        'set-*',
        'access-*',
        'accept-*',
        'clear-*',
      ],
      ...[
        'cross-*',
        'source-*',
        'x-dns-*',
        'x-content-*',
        'x-accel-*',
        'x-frame-*',
        'x-presign-*',
        'sec-*',
        'www-*',
      ],
    ].filter((entry) => entry !== 'source-*'),
  )('cannot have %s, a prefix of a header that browsers act on', (entry) => {
    expect(() => load([entry])).toThrow(`acme.answer_headers.0: "${entry}" would let`);
  });

  test.each([
    ...['*', 'x-*', 'a-*', 'x*', 'acme*', '-acme', 'a b', 'a:b', 'acme\n', 'x-acme-*-*', '*-acme', '', 'é'],
    ...['a'.repeat(65), `${'a'.repeat(40)}-*`],
  ])('cannot have %j', (entry) => {
    expect(() => load([entry])).toThrow('acme.answer_headers.0: expected the name of a header');
  });

  test.each([
    ['no list', 'x-acme'],
    ['a number', [7]],
    ['65 names', Array.from({ length: 65 }, (_, i) => `acme-${i}`)],
  ])('cannot be %s', (_what, answerHeaders) => {
    expect(() => load(answerHeaders)).toThrow(/^PROVIDERS_FILE: acme\.answer_headers/);
  });
});
