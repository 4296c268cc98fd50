import { describe, expect, test } from 'vitest';
import { type JsonObject, statesTwice } from '../../src/index.ts';
import { SHAPES } from './usage-shapes.ts';

/** The names of all numbers within an object, and of the objects that have them. */
function countNames(value: unknown, within: readonly string[] = []): readonly string[] {
  if (typeof value === 'number') return within;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([name, each]) => countNames(each, [...within, name]));
}

/** The text with the member of this name once more behind it, with a value of its own. */
const twice = (text: string, name: string): string => {
  const at = text.indexOf(`"${name}":`);
  return `${text.slice(0, at)}"${name}":1,${text.slice(at)}`;
};

const usageOf = (answer: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(answer).filter(([name]) => /^(usage|usageMetadata|meta)$/.test(name)));

describe.each(SHAPES)('$name', (shape) => {
  const answer = shape.answer(1_000, shape.isInputOnly ? undefined : 20, true);
  const text = JSON.stringify(answer);

  test('does not report a duplicate in a correct answer', () => {
    expect(statesTwice(text)).toBe(false);
  });

  test('detects a duplicate name of the usage or of a count in it', () => {
    const names = new Set(countNames(usageOf(answer)));
    expect(names.size).toBeGreaterThan(0);
    const missed = [...names].filter((name) => !statesTwice(twice(text, name)));
    expect(missed).toEqual([]);
  });
});

test('a usage that appears once in each of two parts is not a duplicate', () => {
  expect(statesTwice('{"usage":{"a":1},"parts":[{"usage":{"a":1}},{"usage":{"a":2}}]}')).toBe(false);
  expect(statesTwice('{"text":"\\"usage\\": 1, \\"usage\\": 2","usage":{"a":1}}')).toBe(false);
});
