import { expect, test } from 'vitest';
import { bodyBudget } from '../src/http/body-memory.ts';

const KIB = 1024;

test('large bodies leave an eighth to small ones, and all together never hold more', () => {
  const { open } = bodyBudget(800 * KIB);
  const [large, second, small, third] = [open(), open(), open(), open()];
  expect(large.take(700 * KIB)).toBe(true);
  expect(large.take(1)).toBe(false);
  expect(second.take(64 * KIB + 1)).toBe(false);
  expect(second.take(64 * KIB)).toBe(true);
  expect(second.take(1)).toBe(false);
  expect(small.take(36 * KIB)).toBe(true);
  expect(third.take(1)).toBe(false);
});

test('what is given back, once or twice, others can have once', () => {
  const { open } = bodyBudget(800 * KIB);
  const [first, second] = [open(), open()];
  expect(first.take(700 * KIB)).toBe(true);
  first.giveBack();
  first.giveBack();
  expect(second.take(700 * KIB)).toBe(true);
  expect(first.take(65 * KIB)).toBe(false);
});
