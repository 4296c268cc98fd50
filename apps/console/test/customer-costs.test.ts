import type { UsageReport } from '@presign/client';
import { expect, test } from 'vitest';
import { customerCosts } from '../src/data/customer-costs.ts';

const DAY = 86_400;
const SUMS = {
  ...{ calls: 0, uses: 0, cost: 0, failed_calls: 0 },
  ...{ calls_of_unknown_cost: 0, input_tokens: 0, output_tokens: 0 },
};
const report = (costs: Readonly<Record<string, number>>, next: string | null = null): UsageReport => ({
  ...{ from: 0, to: 1, group_by: ['external_user'], next_cursor: next },
  groups: Object.keys(costs).length,
  data: Object.entries(costs).map(([user, cost]) => ({ ...SUMS, external_user: user, cost, calls: 1 })),
  total: { ...SUMS, cost: Object.values(costs).reduce((sum, cost) => sum + cost, 0) },
});
/** Two days after the month began, and seven before it ends. */
const costsOf = (month: UsageReport, week: UsageReport) => customerCosts({ month, week }, 2 * DAY, 9 * DAY);

test('a customer with calls last week and none this month has a row with a forecast, and the rows add up to the total', () => {
  const { rows, total, isCut } = costsOf(report({ ada: 100 }), report({ ada: 70, grace: 700 }));
  expect(rows.map(({ user, spent, forecast }) => [user, spent, forecast])).toEqual([
    ['grace', 0, 700],
    ['ada', 100, 170],
  ]);
  expect(total.forecast).toBe(870);
  expect(isCut).toBe(false);
});

test('a list that was cut says so, and omits customers whose month was not read', () => {
  const { rows, isCut } = costsOf(report({ ada: 100 }, 'more'), report({ ada: 70, grace: 700 }));
  expect(rows.map(({ user }) => user)).toEqual(['ada']);
  expect(isCut).toBe(true);
});

test('a customer whose last week was not read has an unknown forecast', () => {
  const { rows, isCut } = costsOf(report({ ada: 100, grace: 5 }), report({ ada: 70 }, 'more'));
  expect(rows.map(({ user, forecast }) => [user, forecast])).toEqual([
    ['ada', 170],
    ['grace', null],
  ]);
  expect(isCut).toBe(true);
});
