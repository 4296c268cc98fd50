import { expect, test } from 'vitest';
import { emptyAt, forecast, lastWeek } from '../src/data/forecast.ts';

const DAY = 86_400;
/** A window of ten days, two of which have passed. */
const WINDOW = { starts_at: 100 * DAY, ends_at: 110 * DAY };
const NOW = 102 * DAY;

test.each([
  ['at the moment at which the same pace spends it', WINDOW, 40, 100, 105 * DAY],
  ['now, if it is spent', WINDOW, 100, 100, NOW],
  ['now, if more than it is spent', WINDOW, 130, 100, NOW],
  ['also a year ahead, if its window never ends', { ...WINDOW, ends_at: null }, 1, 366 / 2 + 1, 468 * DAY],
])('a budget is empty %s', (_when, window, spent, most, expected) => {
  expect(emptyAt(window, spent, most, NOW)).toBe(expected);
});

test.each([
  ['its window ends first', WINDOW, 10, 100, NOW],
  ['its window ends at that very moment', WINDOW, 20, 100, NOW],
  ['nothing is spent', WINDOW, 0, 100, NOW],
  ['a refund gave back more than was spent', WINDOW, -1, 100, NOW],
  ['it has no limit of money', WINDOW, 40, null, NOW],
  ['its window begins now', WINDOW, 40, 100, WINDOW.starts_at],
])('the time when a budget is empty is unknown if %s', (_why, window, spent, most, now) => {
  expect(emptyAt(window, spent, most, now)).toBeUndefined();
});

test('a forecast adds the mean of the last seven days for the rest of the month, and nothing after its end', () => {
  const { from, to } = lastWeek(NOW, 'UTC');
  expect([from, to]).toEqual([95 * DAY, NOW]);
  expect(forecast(500, 70, NOW, 105 * DAY)).toBe(530);
  expect(forecast(500, 70, 105 * DAY, 105 * DAY)).toBe(500);
  expect(forecast(500, 70, 106 * DAY, 105 * DAY)).toBe(500);
});
