import { expect, test } from 'vitest';
import { CountMemory } from '../src/workers/count-memory.ts';

/** A counter that notes what it counts. */
function noting() {
  const counted: string[] = [];
  const count = (text: string) => {
    counted.push(text);
    return text.length;
  };
  return { counted, count };
}
const long = (word: string) => word.repeat(200);

test('in a growing conversation each text is counted once', () => {
  const memory = new CountMemory();
  const { counted, count } = noting();
  const texts = ['a', 'b', 'c', 'd'].map(long);
  for (let turn = 1; turn <= texts.length; turn++)
    for (const text of texts.slice(0, turn))
      expect(memory.of('acc', 'o200k_base', count)(text)).toBe(text.length);
  expect(counted).toEqual(texts);
});

test('accounts and encodings do not share counts', () => {
  const memory = new CountMemory();
  const { counted, count } = noting();
  memory.of('one', 'o200k_base', count)(long('a'));
  memory.of('two', 'o200k_base', count)(long('a'));
  memory.of('one', 'cl100k_base', count)(long('a'));
  memory.of('one', 'cl100k_base', () => 0)(long('a'));
  expect(counted).toHaveLength(3);
});

test('a short text, and a text whose hash collides with others, is counted each time', () => {
  const memory = new CountMemory();
  const { counted, count } = noting();
  const counter = memory.of('acc', 'o200k_base', count);
  for (const text of ['short', `${long('a')}\ud800`, `${long('a')}\ufffd`, `${long('a')}\ud800`, 'short'])
    counter(text);
  expect(counted).toHaveLength(5);
});
