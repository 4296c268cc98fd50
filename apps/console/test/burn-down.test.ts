import { expect, test } from 'vitest';
import { leftByDay } from '../src/data/burn-down.ts';
import { filtersOfScope } from '../src/data/shared-budget.ts';

const DAYS = ['2026-11-01', '2026-11-02', '2026-11-03', '2026-11-04'];
const rows = [
  { day: '2026-11-01', cost: 10 },
  { day: '2026-11-03', cost: 30 },
  { day: '2026-11-04', cost: 5 },
];

test('what was left at the end of each day is counted back from what is left now', () => {
  expect(leftByDay(rows, DAYS, 100, 45)).toEqual([90, 90, 60, 55]);
});

test('what was left is never below 0, and never above a limit that was lowered or that older URLs did not draw on', () => {
  expect(leftByDay(rows, DAYS, 40, 45)).toEqual([30, 30, 0, 0]);
  expect(leftByDay(rows, DAYS, 100, 5)).toEqual([100, 100, 100, 95]);
});

test.each([
  [{ account: true }, {}],
  [{ external_user: 'adam' }, { external_user: 'adam' }],
  [{ api_key: 'k' }, { api_key: 'k' }],
  [{ virtual_key: 'v' }, { virtual_key: 'v' }],
  [{ metadata: { team: 'red' } }, { 'metadata.team': 'red' }],
  [{ metadata: { place: 'here' } }, undefined],
  [{ metadata: { team: '*' } }, undefined],
  [{ external_user: '*' }, undefined],
] as const)('the calls of a budget over %j are filtered by %j', (scope, filters) => {
  expect(filtersOfScope(scope as Parameters<typeof filtersOfScope>[0], ['team'])).toEqual(filters);
});
