import { expect, test } from 'vitest';
import { readAll } from '../src/api/read-all.ts';

/** A list of pages with one row each. */
const listOf =
  (pages: number) =>
  async ({ cursor = '0' }: { readonly cursor?: string }) => {
    const next = Number(cursor) + 1;
    return { data: [cursor], next_cursor: next < pages ? String(next) : null };
  };

test('a list is read to its last page', async () => {
  expect(await readAll(listOf(1))).toEqual({ rows: ['0'], isCut: false });
  expect(await readAll(listOf(3))).toEqual({ rows: ['0', '1', '2'], isCut: false });
  expect((await readAll(listOf(10))).isCut).toBe(false);
});

test('a list that is longer than the bound says so', async () => {
  const { rows, isCut } = await readAll(listOf(11));
  expect([rows.length, isCut]).toEqual([10, true]);
});
