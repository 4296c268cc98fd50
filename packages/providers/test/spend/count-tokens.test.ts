import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { get_encoding } from 'tiktoken';
import { describe, expect, it } from 'vitest';
import { tokenCounter } from '../../src/openai/count-tokens.ts';

const resolve = createRequire(import.meta.url).resolve;
const fileOf = (encoding: string) => readFileSync(resolve(`gpt-tokenizer/data/${encoding}.tiktoken`));

const RUNS = process.env.TEST_ALL ? 1_000 : 300;

/** Texts on which readers of Unicode, patterns and normal forms differ, or where merges depend on what is near. */
const snags = fc.constantFrom(
  ...[
    'Hello',
    'world',
    "don't",
    "'s",
    "'ſ",
    'ſ',
    'K',
    'ß',
    'İ',
    'ı',
    'ǅ',
    'ª',
    '²',
    '½',
    '٣',
    'é',
    'e\u0301',
    '\u0301',
  ],
  ...[' ', '  ', '\n', '\r\n', '\t', '\u0085', '\ufeff', '\u00a0', '\u2028', '\u3000', '\u200b', '\0'],
  ...[
    '<|endoftext|>',
    '<|im_start|>',
    '<|fim_prefix|>',
    '|>',
    '<|',
    '你好世界',
    '，',
    'こんにちは',
    'カタカナ',
    '한국어',
  ],
  ...[
    'ไทย',
    'العربية',
    'हिन्दी',
    '123',
    '4567890',
    '!!!',
    '====',
    'a'.repeat(40),
    'ABC',
    'AbC',
    '/',
    '{"a":1}',
    '_x',
  ],
  ...['👍', '👩‍👩‍👧', '😀', '𝒳', '’', 'ʼ', 'ﷺ'],
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.string({ unit: 'grapheme', maxLength: 80 }),
  fc.string({ maxLength: 80 }),
  fc.array(snags, { maxLength: 40 }).map((all) => all.join('')),
  fc.array(snags, { maxLength: 40 }).map((all) => all.join(' ')),
);

describe.each([
  // The digests that tiktoken itself demands (tiktoken_ext/openai_public.py).
  ['o200k_base', '446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d'],
  ['cl100k_base', '223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7'],
] as const)('counting in %s', (encoding, digest) => {
  const file = fileOf(encoding);
  const count = tokenCounter(encoding, file);
  const tiktoken = get_encoding(encoding);
  const tokens = (of: string) => tiktoken.encode(of, [], []).length;

  it('uses the ranks that OpenAI publishes', () => {
    expect(createHash('sha256').update(file).digest('hex')).toBe(digest);
  });

  it('is never below what tiktoken counts, whatever stands before and after the text', () => {
    fc.assert(
      fc.property(text, text, text, (before, one, after) => {
        const counted = count(one);
        expect(counted).toBeGreaterThanOrEqual(tokens(one));
        expect(tokens(before + one + after)).toBeLessThanOrEqual(
          Buffer.byteLength(before) + counted + Buffer.byteLength(after),
        );
      }),
      { numRuns: 3 * RUNS },
    );
  });

  it('is never below what tiktoken counts when the provider reads special tokens, or cuts the text at them', () => {
    fc.assert(
      fc.property(text, (one) => {
        const special = tiktoken.encode(one, 'all').length;
        const cut = one.split(/<\|[a-z_]+\|>/).reduce((sum, part) => sum + tokens(part) + 1, -1);
        expect(count(one)).toBeGreaterThanOrEqual(Math.max(special, cut));
      }),
      { numRuns: RUNS },
    );
  });

  it('is never above one token for each byte', () => {
    fc.assert(
      fc.property(text, (one) => {
        expect(count(one)).toBeLessThanOrEqual(Buffer.byteLength(one));
      }),
      { numRuns: RUNS },
    );
  });

  it.each([
    ['prose', readFileSync(new URL('../../../../docs/adr/0007-hard-cap.md', import.meta.url), 'utf8')],
    ['code', readFileSync(new URL('../../src/openai/chat.ts', import.meta.url), 'utf8')],
    ['JSON', readFileSync(new URL('../../package.json', import.meta.url), 'utf8')],
    ['Chinese', '人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心。'.repeat(20)],
    ['Cyrillic', 'Все люди рождаются свободными и равными в своём достоинстве и правах. '.repeat(20)],
  ])('is within 4 %% of tiktoken, plus a few tokens at its ends: %s', (_, one) => {
    expect(count(one)).toBeLessThanOrEqual(tokens(one) * 1.04 + 20);
  });

  it('counts pieces too long to merge, and pieces of the greatest length that is merged, no lower than tiktoken', () => {
    for (const length of [2_046, 2_047, 2_048, 2_049, 5_000]) {
      for (const unit of ['a', 'A', 'ab', '的', ' ', '=', '7']) {
        const one = `x ${unit.repeat(Math.ceil(length / unit.length))} y.`;
        expect(count(one)).toBeGreaterThanOrEqual(tokens(one));
      }
    }
  });
});
