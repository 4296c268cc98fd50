import type { KeyPolicy } from '@presign/client';
import { describe, expect, test } from 'vitest';
import { readSpan, writeSpan } from '../src/data/format/span.ts';
import { draftOf, policyOf, problemOf } from '../src/keys/policy-draft.ts';
import { policyInWords } from '../src/keys/policy-words.ts';

/** A policy with every field. */
const EVERYTHING: Required<KeyPolicy> = {
  providers: ['openai', 'mcp'],
  models: ['gpt-4.1-mini', 'gpt-4.1-nano'],
  paths: ['/v1/chat/completions'],
  virtual_keys: ['vk_1'],
  mcp_hosts: ['mcp.example.com'],
  highest: {
    cost_limit: 250_001,
    max_uses: 100,
    calls_per_minute: 60,
    calls_per_day: 1,
    concurrent_calls: 2,
    tokens_per_minute: 1_000,
    expires_in: 900,
  },
  required: ['cost_limit', 'max_uses'],
  bind: { origins: ['https://app.example.com'], ip_ranges: ['203.0.113.0/24'] },
  sockets: false,
  external_user: 'adam, of the "blue" team',
  max_body_bytes: 65_536,
  allowed_fields: ['messages', 'a name, with a comma'],
  config: { max_tokens: 500, stop: ['\n'] },
  refuse_warnings: true,
};
const nameOf = () => 'Production';
const words = (policy: KeyPolicy | null) => policyInWords(policy, nameOf);

describe('a policy in the editor', () => {
  test('is unchanged after a round trip through the controls, with every field', () => {
    expect(policyOf(draftOf(EVERYTHING))).toEqual(EVERYTHING);
    expect(draftOf(EVERYTHING).others).toEqual({});
  });

  test('accepts the largest count, and refuses a larger one', () => {
    const largest = { highest: { max_uses: Number.MAX_SAFE_INTEGER } };
    expect(policyOf(draftOf(largest))).toEqual(largest);
    expect(problemOf('highest.max_uses', '9007199254740992')).toContain('whole number');
  });

  test('with one field is stored with that field alone', () => {
    for (const [name, value] of Object.entries(EVERYTHING))
      expect(policyOf(draftOf({ [name]: value }))).toEqual({ [name]: value });
  });

  test('keeps the JSON fields that have no control', () => {
    const odd = {
      ...{ providers: 'openai', models: [1], sockets: 'yes', unknown: { a: 1 }, allowed_fields: [] },
      ...{ highest: { cost_limit: -1, max_uses: 5, other: 'x' }, bind: [], config: 5, max_body_bytes: 1.5 },
    };
    expect(policyOf(draftOf(odd))).toEqual(odd);
  });

  test('without a field is stored as null, so that the key may issue everything', () => {
    expect(policyOf(draftOf({}))).toBeNull();
    expect(policyOf({ lists: { models: undefined }, texts: { external_user: ' ' }, others: {} })).toBeNull();
  });

  test('shows dollars and times as people write them', () => {
    const { texts } = draftOf(EVERYTHING);
    expect([texts['highest.cost_limit'], texts['highest.expires_in']]).toEqual(['0.250001', '15 minutes']);
  });

  test('says which value a field expects when a text does not fit', () => {
    expect(problemOf('highest.cost_limit', '1,5')).toContain('dollars');
    expect(problemOf('highest.expires_in', 'soon')).toContain('15 minutes');
    expect(problemOf('highest.max_uses', '1.5')).toContain('whole number');
    expect(problemOf('config', '[1]')).toContain('JSON object');
    for (const field of ['highest.cost_limit', 'config', 'sockets'] as const)
      expect(problemOf(field, '')).toBe('');
  });
});

describe('a policy in words', () => {
  test('is one sentence with every field', () => {
    expect(words(EVERYTHING)).toBe(
      'It issues only URLs for openai or MCP servers, to MCP servers on mcp.example.com, with the path /v1/chat/completions, ' +
        'with the models gpt-4.1-mini and gpt-4.1-nano alone, with the virtual key Production, ' +
        'of at most $0.250001, 100 uses, 60 calls a minute and 3 others each, that last at most 15 minutes, ' +
        'that limit cost and uses, for calls of pages of https://app.example.com, for calls from 203.0.113.0/24, ' +
        'that never open as sockets, with bodies of at most 65,536 bytes, ' +
        'with the fields messages and a name, with a comma alone, with max_tokens 500 and stop ["\\n"], ' +
        'for the user adam, of the "blue" team, and none that would get a warning.',
    );
  });

  test('with one field names that field alone', () => {
    expect(words({ providers: ['openai'] })).toBe('It issues only URLs for openai.');
    expect(words({ models: ['a'] })).toBe('It issues only URLs with the model a alone.');
    expect(words({ highest: { calls_per_day: 1 } })).toBe(
      'It issues only URLs of at most 1 call a day each.',
    );
    expect(words({ highest: { concurrent_calls: 1 } })).toBe(
      'It issues only URLs of at most 1 concurrent call each.',
    );
    expect(words({ highest: { expires_in: 86_400 } })).toBe('It issues only URLs that last at most 1 day.');
    expect(words({ sockets: true })).toBe('It issues only URLs that open as sockets.');
    expect(words({ allowed_fields: [] })).toBe('It issues only URLs with the fields of their config alone.');
    expect(words({ refuse_warnings: true })).toBe('It issues any URL, but none that would get a warning.');
  });

  test('without restrictions says that it has none', () => {
    for (const policy of [null, { refuse_warnings: false }])
      expect(words(policy)).toBe('It may issue any URL.');
  });

  test('names a few entries of a long list, and how many more there are', () => {
    const models = Array.from({ length: 50 }, (_, at) => `m${at}`);
    expect(words({ models })).toBe('It issues only URLs with the models m0, m1, m2 and 47 others alone.');
  });
});

test('a time is read as the user writes it, in any unit', () => {
  for (const seconds of [1, 59, 60, 90, 3_600, 5_400, 86_400, 7_776_000, 31_536_000])
    expect(readSpan(writeSpan(seconds))).toBe(seconds);
  expect(['90', '90 s', '2h', '2 hours', '1 Day', '15 m'].map(readSpan)).toEqual([
    90, 90, 7_200, 7_200, 86_400, 900,
  ]);
  for (const text of ['', 'soon', '1 month', '-5', '1.5 h', '1 d 2 h'])
    expect(readSpan(text)).toBeUndefined();
});
