import { expect, test } from 'vitest';
import { lastWeek } from '../src/data/forecast.ts';
import {
  daysOf,
  instantOf,
  monthOf,
  type Range,
  rangeBefore,
  rangeOf,
  rangeOfDay,
  wallOf,
} from '../src/data/format/range.ts';
import { questionOf } from '../src/data/usage.ts';

const zone = 'UTC';
const at = (text: string) => Date.parse(text) / 1000;
const iso = (seconds: number) => new Date(seconds * 1000).toISOString().slice(0, 16);
const shown = ({ from, to }: Range) => [iso(from), iso(to)];

test.each([
  ['today', '2026-11-01T06:00Z', ['2026-10-31T18:00', '2026-11-01T00:00']],
  ['7d', '2026-11-07T12:00Z', ['2026-10-25T12:00', '2026-11-01T00:00']],
  ['90d', '2026-11-29T00:00Z', ['2026-06-04T00:00', '2026-09-01T00:00']],
  ['month', '2026-11-29T12:00Z', ['2026-10-01T00:00', '2026-10-29T12:00']],
  ['last-month', '2026-11-29T12:00Z', ['2026-09-01T00:00', '2026-10-01T00:00']],
  ['2026-03', '2026-11-29T12:00Z', ['2026-02-01T00:00', '2026-03-01T00:00']],
])(
  'the period before %s at %s is as long as that period, and only a month is compared with a calendar month',
  (time, now, before) => {
    expect(shown(rangeBefore(rangeOf({ time, zone }, at(now))))).toEqual(before);
  },
);

test('the period before a typed half year is as long as it, even if it begins with a month', () => {
  const range = rangeOf(
    { from: '2026-01-01T00:00Z', to: '2026-07-01T00:00Z', zone },
    at('2026-11-29T12:00Z'),
  );
  expect(shown(rangeBefore(range))).toEqual(['2025-07-04T00:00', '2026-01-01T00:00']);
});

test('a range with no start or an invalid start is compared with the 30 days before its end', () => {
  const days = ['2026-02-01T00:00', '2026-03-03T00:00'];
  const to = '2026-03-03T00:00Z';
  expect(shown(rangeOf({ to, zone }, at('2026-11-29T12:00Z')))).toEqual(days);
  expect(shown(rangeOf({ from: 'soon', to, zone }, at('2026-11-29T12:00Z')))).toEqual(days);
});

test('a range that ends in the future ends there, and a range wholly in the future keeps both ends', () => {
  const [from, to] = ['2026-11-29T00:00Z', '2026-11-30T00:00Z'];
  const now = at('2026-11-29T12:00Z');
  expect(rangeOf({ from, to, zone }, now)).toMatchObject({ from: at(from), to: now });
  expect(rangeOf({ from, to, zone }, at(to) + 60)).toMatchObject({ from: at(from), to: at(to) });
  expect(rangeOf({ from, to, zone }, at(from) - 60)).toMatchObject({ from: at(from), to: at(to) });
  const asked = (end: string, moment: number) =>
    questionOf({ range: rangeOf({ from, to: end, zone }, moment), groupBy: [] });
  // A day and its first hour are two questions, also while one of them goes on.
  expect(asked('2026-11-29T01:00Z', now)).not.toEqual(asked(to, now));
  expect(asked(to, now + 30)).toEqual(asked(to, now));
});

/** Zones whose clocks skip or repeat midnight, and others. */
const ZONES = [
  ...['America/Santiago', 'America/Havana', 'America/Nuuk', 'Africa/Cairo', 'Asia/Beirut', 'Atlantic/Azores'],
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu'],
];

test.each(ZONES)('each day of 2026 in %s begins at its first moment', (name) => {
  const day = new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeZone: name });
  for (let ms = Date.UTC(2026, 0, 1); ms < Date.UTC(2027, 0, 1); ms += 86_400_000) {
    const asked = new Date(ms).toISOString().slice(0, 10);
    const { from } = rangeOfDay(asked, name);
    expect(day.format(from * 1000), asked).toBe(asked);
    expect(day.format(from * 1000 - 1) < asked, asked).toBe(true);
  }
});

test.each([
  // Skipped: it moves on by the skipped time.
  ['2026-03-29T02:30', 'Europe/Berlin', '2026-03-29T01:30', '2026-03-29T03:30'],
  ['2026-03-08T02:30', 'America/New_York', '2026-03-08T07:30', '2026-03-08T03:30'],
  ['2026-10-04T02:15', 'Australia/Lord_Howe', '2026-10-03T15:45', '2026-10-04T02:45'],
  ['2026-09-06T00:30', 'America/Santiago', '2026-09-06T04:30', '2026-09-06T01:30'],
  // Shown twice: the first of the two.
  ['2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30', '2026-10-25T02:30'],
  ['2026-11-01T01:30', 'America/New_York', '2026-11-01T05:30', '2026-11-01T01:30'],
  // Shown once, next to a change.
  ['2026-03-29T01:59', 'Europe/Berlin', '2026-03-29T00:59', '2026-03-29T01:59'],
  ['2026-03-29T03:00', 'Europe/Berlin', '2026-03-29T01:00', '2026-03-29T03:00'],
  ['2026-10-25T03:00', 'Europe/Berlin', '2026-10-25T02:00', '2026-10-25T03:00'],
])('the clock time %s in %s is %s of UTC, and is shown as %s', (wall, name, instant, shownAs) => {
  expect(iso(instantOf(wall, name) / 1000)).toBe(instant);
  expect(wallOf(instantOf(wall, name), name)).toBe(shownAs);
});

test('a year that is being typed has a time', () => {
  expect(instantOf('0020-03-29T02:30', 'Europe/Berlin')).toBe(Date.parse('0020-03-29T02:30Z'));
});

test.each([
  ['2026-03', 'Europe/Berlin', 31, 31 * 24 - 1],
  ['2026-10', 'Europe/Berlin', 31, 31 * 24 + 1],
  ['2026-11', 'America/New_York', 30, 30 * 24 + 1],
  ['2026-09', 'America/Santiago', 30, 30 * 24 - 1],
  ['2026-02', 'Europe/Berlin', 28, 28 * 24],
])('%s in %s has %i days and %i hours', (month, name, days, hours) => {
  const range = rangeOf({ time: month, zone: name }, at('2027-01-15T12:00Z'));
  expect(daysOf(range)).toHaveLength(days);
  expect(new Set(daysOf(range)).size).toBe(days);
  expect((range.to - range.from) / 3_600).toBe(hours);
  expect(monthOf(range.from, name)).toMatchObject({ from: range.from, to: range.to });
});

test.each(['today', '7d', 'month', '2026-03'])(
  '30 seconds later, the queries for %s, the period before it and the last week are unchanged',
  (time) => {
    const asked = (now: number) => {
      const range = rangeOf({ time, zone }, now);
      const ranges = [range, rangeBefore(range), lastWeek(now, zone)];
      return ranges.map((each) => questionOf({ range: each, groupBy: ['external_user'] }));
    };
    const now = at('2026-11-07T12:00Z');
    expect(asked(now + 30)).toEqual(asked(now));
    expect(new Set(asked(now).map((each) => JSON.stringify(each))).size).toBe(3);
  },
);

test('periods with other names, time zones or groups have other queries', () => {
  const now = at('2026-11-07T12:00Z');
  const ask = (time: string, of = zone, by: 'model' | 'day' = 'model') =>
    JSON.stringify(questionOf({ range: rangeOf({ time, zone: of }, now), groupBy: [by] }));
  const asked = [ask('today'), ask('7d'), ask('month'), ask('7d', 'Asia/Tokyo'), ask('7d', zone, 'day')];
  expect(new Set(asked).size).toBe(5);
});
