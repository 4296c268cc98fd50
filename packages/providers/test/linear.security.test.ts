import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AllowList, allow, judge, judgeEach } from '../src/bounds/allow-list.ts';
import { grownByNormalising, hasLongMarkRun } from '../src/bounds/count-text.ts';
import { namedTwice } from '../src/gemini/proto-names.ts';
import { modelFacts, tokenCounter } from '../src/index.ts';
import { known } from './apply.ts';

/** Repeats of a piece of text. Work that grew with their square would take hours for either number. */
const LONG = process.env.TEST_ALL ? 1_000_000 : 200_000;

/**
 * Each input here kept one process busy for seconds when the work grew with the square of its length, or faster.
 * Were it so again, these tests would not end within their time.
 */
describe('work on hostile input is linear', () => {
  test('a long run of combining marks is never sorted: its growth counts at its maximum', () => {
    const marks = '\u0315\u0316'.repeat(500_000);
    expect(grownByNormalising(marks)).toBe(Buffer.byteLength(marks) * 10);
  });

  test('halfwidth voiced sound marks, and marks beyond the BMP, count as combining marks', () => {
    expect(hasLongMarkRun('\uff9e\u0315'.repeat(40))).toBe(true);
    expect(hasLongMarkRun('\u{1d165}\u{1d16e}'.repeat(40))).toBe(true);
  });

  test('texts that are slow to merge or to match are counted in linear time', () => {
    const file = createRequire(import.meta.url).resolve('gpt-tokenizer/data/o200k_base.tiktoken');
    const count = tokenCounter('o200k_base', readFileSync(file));
    const run = (unit: string) => unit.repeat(Math.ceil(2_000 / unit.length));
    for (const piece of ['a', 'A', 'ab', ' ', '\n', '=', '的', "a'", '\u0301', '<|', '7', 'x\u0085']) {
      expect(count(piece.repeat(LONG))).toBeGreaterThan(0);
      expect(count(`${run(piece)}x, `.repeat(500))).toBeGreaterThan(0);
    }
  });

  test('ordinary text, emoji and stacked accents are normalised exactly', () => {
    for (const text of [
      '😀'.repeat(500),
      'नमस्ते'.repeat(500),
      '안녕'.repeat(500),
      `Z${'\u0301'.repeat(30)}`.repeat(99),
    ])
      expect(hasLongMarkRun(text)).toBe(false);
    expect(grownByNormalising('世界'.repeat(1_000))).toBe(0);
    expect(grownByNormalising('\ufdfa')).toBe(30);
  });

  test('the growth is never below what NFC and NFKC add', () => {
    const unit = fc.constantFrom(
      'a',
      'é',
      '\u0315',
      '\u0316',
      '\u0344',
      '\uff9e',
      '\ufdfa',
      '가',
      '\u{1d15e}',
      '😀',
    );
    const text = fc.array(unit, { maxLength: 200 }).map((units) => units.join(''));
    fc.assert(
      fc.property(text, (value) => {
        const added = (form: string) => Buffer.byteLength(value.normalize(form)) - Buffer.byteLength(value);
        expect(grownByNormalising(value)).toBeGreaterThanOrEqual(Math.max(added('NFC'), added('NFKC')));
      }),
    );
  });

  test.each([
    ['a name with many dates', `claude-sonnet-4-5${'-1234-12-12'.repeat(21)}x`],
    ['a name with many builds', `gpt-4o${'-12-12'.repeat(40)}x`],
    ['a very long name', `gpt-4o${'-latest'.repeat(1_000_000)}`],
  ])('%s is no known model', (_what, name) => {
    for (const provider of ['anthropic', 'openai', 'openrouter'])
      expect(modelFacts(known(provider), name).contextWindow).toBeUndefined();
  });

  test('several suffixes in a row are still one model', () => {
    expect(modelFacts(known('openai'), 'gpt-4o-2024-11-20-preview-latest').contextWindow).toBe(128_000);
    expect(modelFacts(known('openai'), 'gpt-4o-1234-12').contextWindow).toBeUndefined();
  });

  test('a repeated name is found among 300,000 names', () => {
    const names = Object.fromEntries(Array.from({ length: 300_000 }, (_, i) => [`n${i}`, 1]));
    expect(namedTwice({ contents: [names] })).toBeUndefined();
    expect(namedTwice({ contents: [{ ...names, top_k: 1, topK: 2 }] })).toBe('topK');
  });
});

describe('judging ends at the first field that is unbounded', () => {
  /** A list of allowed fields that counts how many fields it is asked for. */
  class Counted extends Map<string, 'harmless'> implements AllowList {
    asked = 0;
    override get(field: string) {
      this.asked++;
      return super.get(field);
    }
  }
  const counted = () => new Counted([['known', 'harmless']]);

  test('of an object', () => {
    const list = counted();
    const body = {
      known: 1,
      unknown: 1,
      ...Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`f${i}`, 1])),
    };
    expect(judge(list, body)).toMatchObject({ at: 'unknown' });
    expect(list.asked).toBe(2);
  });

  test('of a list of objects', () => {
    const list = counted();
    const objects = Array.from({ length: 1_000 }, () => ({ unknown: 1 }));
    expect(judgeEach(objects, (each) => judge(list, each))).toMatchObject({ at: '[0].unknown' });
    expect(list.asked).toBe(1);
  });

  test('and its steps double when the input doubles', () => {
    const stepsFor = (count: number) => {
      const names = Array.from({ length: count }, (_, i) => `f${i}`);
      const list = new Counted(names.map((name) => [name, 'harmless'] as const));
      const body = Object.fromEntries(names.map((name) => [name, 1]));
      expect(judgeEach([body, body], (each) => judge(list, each))).toBe('harmless');
      return list.asked;
    };
    expect(stepsFor(1_000)).toBe(2_000);
    expect(stepsFor(2_000)).toBe(4_000);
  });

  test('and not at a field that brings the whole window', () => {
    const list = allow({ brings: 'whole window', known: 'harmless' });
    expect(judge(list, { brings: 1, known: 1 })).toBe('whole window');
    expect(judge(list, { brings: 1, known: 1, other: 1 })).toMatchObject({ at: 'other' });
  });
});
