import type { Refusals } from '@presign/client';
import { daysOf, type Range } from './format/range.ts';

const DAY = 86_400;

/** The days of UTC that a range touches, until now. Calls of these days can be compared with their refusals. */
export const utcDaysOf = ({ from, to, zone, name = `${from}` }: Range, now: number): Range => ({
  from: Math.floor(from / DAY) * DAY,
  to: Math.min(now, Math.ceil(to / DAY) * DAY),
  zone: 'UTC',
  name: `days of UTC in ${name} ${zone}`,
});

export type Refused = {
  /** The refusals of all UTC days that the range touches. */
  readonly data: Refusals['data'];
  /** Whether these are exactly the refusals of the range. */
  readonly isExact: boolean;
  /** The first day with stored refusals, if the range begins before it. */
  readonly keptFrom: string | undefined;
};

/** The refusals of a range. They are counted by whole UTC days, and stored for a limited time. */
export function refusedIn({ from, data }: Refusals, range: Range, isLive: boolean): Refused {
  const days = daysOf({ ...range, zone: 'UTC' });
  const isKept = (days[0] ?? '') >= from;
  const isWhole = range.from % DAY === 0 && (isLive || range.to % DAY === 0);
  return {
    data: data.filter(({ day }) => days.includes(day)),
    isExact: isKept && isWhole,
    keptFrom: isKept ? undefined : from,
  };
}
