import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Calendar, windowsFrom } from '../src/budgets/calendars.ts';

const calendar = (kind: Calendar['kind'], timeZone = 'UTC', anchor?: string): Calendar => ({
  kind,
  timeZone,
  anchorMs: anchor === undefined ? undefined : Date.parse(anchor),
});
/** The beginnings of the next windows from a time on, in UTC. */
function starts(of: Calendar, at: string, count: number): string[] {
  const found: string[] = [];
  for (const { startsMs } of windowsFrom(of, Date.parse(at))) {
    found.push(new Date(startsMs).toISOString().replace('.000Z', 'Z'));
    if (found.length === count) break;
  }
  return found;
}

describe('windows of budgets', () => {
  test.each<[string, Calendar, string, string[]]>([
    ['hours', calendar('hour'), '2026-03-01T10:59:59Z', ['2026-03-01T10:00:00Z', '2026-03-01T11:00:00Z']],
    ['days', calendar('day'), '2026-02-28T23:00:00Z', ['2026-02-28T00:00:00Z', '2026-03-01T00:00:00Z']],
    [
      'weeks from Monday',
      calendar('week'),
      '2026-03-01T12:00:00Z',
      ['2026-02-23T00:00:00Z', '2026-03-02T00:00:00Z'],
    ],
    ['months', calendar('month'), '2028-02-29T12:00:00Z', ['2028-02-01T00:00:00Z', '2028-03-01T00:00:00Z']],
    [
      'days of Berlin, of 23 hours in March',
      calendar('day', 'Europe/Berlin'),
      '2026-03-28T23:30:00Z',
      ['2026-03-28T23:00:00Z', '2026-03-29T22:00:00Z', '2026-03-30T22:00:00Z'],
    ],
    [
      'days of Berlin, of 25 hours in October',
      calendar('day', 'Europe/Berlin'),
      '2026-10-25T12:00:00Z',
      ['2026-10-24T22:00:00Z', '2026-10-25T23:00:00Z'],
    ],
    [
      'hours of Kathmandu, which begin at a quarter to',
      calendar('hour', 'Asia/Kathmandu'),
      '2026-03-01T10:50:00Z',
      ['2026-03-01T10:15:00Z', '2026-03-01T11:15:00Z'],
    ],
    [
      'days of Beirut, where a midnight is skipped',
      calendar('day', 'Asia/Beirut'),
      '2026-03-28T12:00:00Z',
      ['2026-03-27T22:00:00Z', '2026-03-28T22:00:00Z', '2026-03-29T21:00:00Z'],
    ],
    [
      'days of Samoa, where a whole day was skipped',
      calendar('day', 'Pacific/Apia'),
      '2011-12-29T12:00:00Z',
      ['2011-12-29T10:00:00Z', '2011-12-30T10:00:00Z', '2011-12-31T10:00:00Z'],
    ],
    [
      'months from the 31st, which come back to it',
      calendar('month', 'UTC', '2026-01-31T09:00:00Z'),
      '2026-02-10T00:00:00Z',
      ['2026-01-31T09:00:00Z', '2026-02-28T09:00:00Z', '2026-03-31T09:00:00Z', '2026-04-30T09:00:00Z'],
    ],
    [
      'months before their anchor',
      calendar('month', 'UTC', '2026-05-15T09:00:00Z'),
      '2026-02-10T00:00:00Z',
      ['2026-01-15T09:00:00Z', '2026-02-15T09:00:00Z'],
    ],
    [
      'weeks from an anchor, at the same local time all year',
      calendar('week', 'Europe/Berlin', '2026-03-25T08:00:00Z'),
      '2026-03-26T00:00:00Z',
      ['2026-03-25T08:00:00Z', '2026-04-01T07:00:00Z'],
    ],
  ])('are %s', (_what, of, at, expected) => {
    expect(starts(of, at, expected.length)).toEqual(expected);
  });

  test('for a lifetime are a single window without an end', () => {
    expect([...windowsFrom(calendar('lifetime'), Date.now())]).toEqual([{ startsMs: 0, endsMs: undefined }]);
  });

  test('have no gaps or overlaps, and the first contains the given moment, in any zone, from any anchor', () => {
    const zones = Intl.supportedValuesOf('timeZone');
    const moment = fc.integer({ min: Date.parse('1990-01-01'), max: Date.parse('2060-01-01') });
    fc.assert(
      fc.property(
        fc.constantFrom('hour' as const, 'day' as const, 'week' as const, 'month' as const),
        fc.constantFrom(...zones),
        fc.option(moment, { nil: undefined }),
        moment,
        (kind, timeZone, anchorMs, atMs) => {
          let until: number | undefined;
          let count = 0;
          for (const { startsMs, endsMs = Number.NaN } of windowsFrom({ kind, timeZone, anchorMs }, atMs)) {
            if (until === undefined) expect(startsMs <= atMs && atMs < endsMs).toBe(true);
            else expect(startsMs).toBe(until);
            expect(endsMs).toBeGreaterThan(startsMs);
            until = endsMs;
            if (++count === 15) break;
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
