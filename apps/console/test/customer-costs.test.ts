import type { UsageReport } from '@presign/client';
import { expect, test } from 'vitest';
import { customerCosts } from '../src/data/customer-costs.ts';
import { report } from './report.ts';

const DAY = 86_400;
/** Two days after the month began, and seven before it ends. */
const costsOf = (month: UsageReport, week: UsageReport) => customerCosts({ month, week }, 2 * DAY, 9 * DAY);

test('a customer with calls last week and none this month has a row with a forecast, and the rows add up to the total', () => {
  const { rows, total, cut } = costsOf(report({ adam: 100 }), report({ adam: 70, grace: 700 }));
  expect(rows.map(({ user, spent, forecast }) => [user, spent, forecast])).toEqual([
    ['grace', 0, 700],
    ['adam', 100, 170],
  ]);
  expect(total.forecast).toBe(870);
  expect(cut).toBeUndefined();
});

test('a list that was cut says so, and omits customers whose month was not read', () => {
  const { rows, cut } = costsOf(report({ adam: 100 }, 3), report({ adam: 70, grace: 700 }));
  expect(rows.map(({ user }) => user)).toEqual(['adam']);
  expect(cut).toEqual({ of: 'month', shown: 1, all: 4 });
});

test('a customer whose last week was not read has an unknown forecast', () => {
  const { rows, cut } = costsOf(report({ adam: 100, grace: 5 }), report({ adam: 70 }, 2));
  expect(rows.map(({ user, forecast }) => [user, forecast])).toEqual([
    ['adam', 170],
    ['grace', null],
  ]);
  expect(cut).toEqual({ of: 'week', shown: 1, all: 3 });
});
