import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Abridger } from '../src/json/abridge.ts';

function abridged(text: string, cuts: readonly number[] = []): string | undefined {
  const bytes = Buffer.from(text);
  const abridger = new Abridger();
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  for (let i = 1; i < at.length; i++) abridger.push(bytes.subarray(at[i - 1], at[i]));
  return abridger.end()?.toString();
}

test('a short text is unchanged, wherever its bytes are cut', () => {
  fc.assert(
    fc.property(jsonOf(fc.double()), fc.array(fc.nat()), fc.nat(4), (value, cuts, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(JSON.parse(abridged(text, cuts) ?? '')).toEqual(JSON.parse(text));
    }),
    { numRuns: 2_000 },
  );
});

test('a long string becomes a space and a long list of numbers loses its tail, wherever the bytes are cut', () => {
  const long = fc.constantFrom('x'.repeat(2_000), '\\"'.repeat(900), '\\'.repeat(1_500), 'é"\\'.repeat(700));
  const numbers = fc.constantFrom(Array.from({ length: 500 }, (_, i) => i / 7));
  fc.assert(
    fc.property(jsonOf(long, numbers), fc.array(fc.nat()), (written, cuts) => {
      expect(JSON.parse(abridged(JSON.stringify(written), cuts) ?? '')).toEqual(shortened(written));
    }),
    { numRuns: 2_000 },
  );
});

/** JSON with short lists, and with these values in it. */
function jsonOf(...values: fc.Arbitrary<unknown>[]): fc.Arbitrary<unknown> {
  return fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'binary' }),
      fc.integer(),
      fc.constantFrom(true, false, null),
      ...values,
      fc.array(tie('node'), { maxLength: 4 }),
      fc.dictionary(fc.string(), tie('node'), { maxKeys: 4 }),
    ),
  })).node;
}

function shortened(value: unknown): unknown {
  if (typeof value === 'string') {
    return Buffer.byteLength(JSON.stringify(value)) - 2 > 1_024 ? ' ' : value;
  }
  if (Array.isArray(value)) {
    const isNumbers = value.length > 8 && value.every((each) => typeof each === 'number');
    return isNumbers ? value.slice(0, 9) : value.map(shortened);
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shortened(each)]));
}

test('usage after 60 MB of embeddings is read with little memory', () => {
  const abridger = new Abridger();
  const embedding = Buffer.from(`{"embedding":[${'-0.0123456789,'.repeat(2_000)}1],"index":1},`);
  abridger.push(Buffer.from('{"data":['));
  for (let i = 0; i < 2_048; i++) abridger.push(embedding);
  abridger.push(Buffer.from('{}],"usage":{"prompt_tokens":7}}'));
  const text = String(abridger.end());
  expect(text.length).toBeLessThan(1_000_000);
  expect(JSON.parse(text)).toMatchObject({ usage: { prompt_tokens: 7 } });
});

test('a text that cannot be shortened enough is abandoned', () => {
  const abridger = new Abridger();
  const chunk = Buffer.from('{},'.repeat(10_000));
  let taken = 0;
  while (abridger.push(chunk)) taken += chunk.length;
  expect(taken).toBeLessThanOrEqual(1024 * 1024);
  expect(abridger.end()).toBeUndefined();
});
