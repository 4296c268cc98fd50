import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PAGE } from '../src/api/pages.ts';
import {
  EVERYTHING,
  MOST_PAGES,
  MOST_SELECTED,
  NOTHING,
  readsOn,
  selectedOf,
  some,
  withRows,
} from '../src/data/selection.ts';

const rows = (amount: number) => Array.from({ length: amount }, (_, at) => ({ id: `${at}` }));
const ids = (of: readonly { readonly id: string }[]) => of.map(({ id }) => id);

test('"select all" of a filter selects the rows of each page that arrives, including the last', () => {
  for (const amount of [20, 40]) expect(selectedOf(EVERYTHING, rows(amount))).toHaveLength(amount);
});

test('a row deselected from "select all" stays deselected when more rows arrive, and can be selected again', () => {
  const left = withRows(EVERYTHING, ['3'], false);
  expect(ids(selectedOf(left, rows(40)))).not.toContain('3');
  expect(selectedOf(withRows(left, ['3'], true), rows(40))).toHaveLength(40);
});

test('rows selected one by one do not include rows that arrive later', () => {
  const two = withRows(withRows(NOTHING, ['1', '2', '5'], true), ['5'], false);
  expect(ids(selectedOf(two, rows(40)))).toEqual(['1', '2']);
  expect(ids(selectedOf(some(['7']), rows(40)))).toEqual(['7']);
});

test('a selection has at most as many URLs as one change allows', () => {
  expect(selectedOf(EVERYTHING, rows(MOST_SELECTED + 20))).toHaveLength(MOST_SELECTED);
});

test('a list is read to its end or to a bound only while all of it is selected', () => {
  const list = { hasNextPage: true, pages: 1, rows: 20 };
  expect(readsOn(EVERYTHING, list)).toBe(true);
  expect(readsOn(withRows(EVERYTHING, ['3'], false), list)).toBe(true);
  expect(readsOn(NOTHING, list)).toBe(false);
  expect(readsOn(EVERYTHING, { ...list, hasNextPage: false })).toBe(false);
  expect(readsOn(EVERYTHING, { ...list, pages: MOST_PAGES, rows: 0 })).toBe(false);
  expect(readsOn(EVERYTHING, { ...list, rows: MOST_SELECTED })).toBe(false);
});

test('the guide names the bounds of a selection', () => {
  const guide = readFileSync(new URL('../../../docs/guides/console.md', import.meta.url), 'utf8');
  expect(guide).toContain(
    `up to ${MOST_SELECTED.toLocaleString('en-US')} active or exhausted URLs. **All of this filter** reads at most ${MOST_PAGES} pages of ${PAGE}.`,
  );
});
