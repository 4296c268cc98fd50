import { expect, test } from 'vitest';
import { type Range, rangeOf } from '../src/data/format/range.ts';
import { refusedIn, utcDaysOf } from '../src/data/refusals.ts';

const now = Date.parse('2026-11-29T12:00Z') / 1000;
const refused = (day: string) => ({ day, code: 'rate_limited', calls: 3, names: [] });
const all = {
  ...{ from: '2026-09-01', to: '2026-11-29' },
  data: ['2026-10-31', '2026-11-01', '2026-11-28', '2026-11-29'].map(refused),
};
const isLive = (range: Range) => range.to === now;
const read = (range: Range) => refusedIn(all, range, isLive(range));
const days = (range: Range) => read(range).data.map(({ day }) => day);

test.each([
  ['month', ['2026-11-01', '2026-11-28', '2026-11-29']],
  ['today', ['2026-11-29']],
  ['2026-10', ['2026-10-31']],
])('the period %s in UTC has exactly the refusals of its days', (time, expected) => {
  const range = rangeOf({ time, zone: 'UTC' }, now);
  expect(days(range)).toEqual(expected);
  expect(read(range)).toMatchObject({ isExact: true, keptFrom: undefined });
});

test('a period of part days in UTC shows the refusals of the whole days, and says that they are not exact', () => {
  const ofTokyo = rangeOf({ time: 'month', zone: 'Asia/Tokyo' }, now);
  expect(days(ofTokyo)).toEqual(['2026-10-31', '2026-11-01', '2026-11-28', '2026-11-29']);
  expect(read(ofTokyo).isExact).toBe(false);
  const typed = { from: '2026-11-28T00:00Z', to: '2026-11-28T18:00Z', zone: 'UTC' };
  expect(days(rangeOf(typed, now))).toEqual(['2026-11-28']);
  expect(read(rangeOf(typed, now)).isExact).toBe(false);
});

test('a month older than the stored refusals shows no exact number, and not zero', () => {
  expect(read(rangeOf({ time: '2026-08', zone: 'UTC' }, now))).toEqual({
    ...{ data: [], isExact: false, keptFrom: '2026-09-01' },
  });
});

test.each([
  ['Asia/Tokyo', 'month', ['2026-10-31T00:00', '2026-11-29T12:00']],
  ['America/New_York', '2026-10', ['2026-10-01T00:00', '2026-11-02T00:00']],
  ['UTC', 'today', ['2026-11-29T00:00', '2026-11-29T12:00']],
])(
  'the days of UTC that the period of %s in %s touches end now or with the last of them',
  (zone, time, ends) => {
    const { from, to, ...days } = utcDaysOf(rangeOf({ time, zone }, now), now);
    expect([from, to].map((at) => new Date(at * 1000).toISOString().slice(0, 16))).toEqual(ends);
    expect(days).toEqual({ zone: 'UTC', name: `days of UTC in ${time} ${zone}` });
  },
);
