import * as z from 'zod';

const DAY_MS = 86_400_000;
const ZONE = 'expected the name of a time zone, such as Europe/Berlin or UTC';

/** A time zone by its IANA name. Postgres reads an offset such as +02:00 with the other sign, so none is taken. */
export const timeZone = z
  .string(ZONE)
  .max(64, ZONE)
  .regex(/^[A-Za-z][\w+/-]*$/, ZONE)
  .refine(isZone, ZONE);

function isZone(zone: string): boolean {
  try {
    return wallClock(zone) !== undefined;
  } catch {
    return false;
  }
}

const wallClock = (timeZone: string) =>
  new Intl.DateTimeFormat('en-US', {
    timeZone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
  });

/** The time that clocks of a zone show at a moment, in milliseconds as clocks of UTC show it. */
function shownAt(clock: Intl.DateTimeFormat, ms: number): number {
  const parts = new Map(clock.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  const of = (type: Intl.DateTimeFormatPartTypes) => parts.get(type) ?? 0;
  return Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
}

/**
 * When a day begins in a zone. Clocks may be put forward over midnight, and back to before it.
 * @param day `2026-01-31`
 */
export const startOfDay = (day: string, zone: string): Date => new Date(startBy(wallClock(zone), day));

function startBy(clock: Intl.DateTimeFormat, day: string): number {
  const midnight = Date.parse(`${day}T00:00:00Z`);
  const offsets = [midnight - DAY_MS, midnight + DAY_MS].map((ms) => shownAt(clock, ms) - ms);
  const [first = midnight, last = midnight] = offsets
    .map((offset) => midnight - offset)
    .toSorted((a, b) => a - b);
  return shownAt(clock, first) === midnight ? first : last;
}

/** A part of a range within one day or month of a zone, in milliseconds, with a day of it there. */
export type LocalPeriod = { readonly from: number; readonly to: number; readonly day: string };

/** The days or months of a zone that a range in milliseconds has, in order. It has no day that the zone left out. */
export function localPeriods(unit: 'day' | 'month', from: number, to: number, zone: string): LocalPeriod[] {
  const clock = wallClock(zone);
  const periods: LocalPeriod[] = [];
  let day = dayText(shownAt(clock, from));
  for (let begin = from; begin < to; ) {
    const shown = new Date(day);
    const next = dayText(
      unit === 'day'
        ? shown.getTime() + DAY_MS
        : Date.UTC(shown.getUTCFullYear(), shown.getUTCMonth() + 1, 1),
    );
    const end = Math.min(to, Math.max(begin, startBy(clock, next)));
    if (end > begin) periods.push({ from: begin, to: end, day });
    [day, begin] = [next, end];
  }
  return periods;
}

const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** The times of a day of UTC at which a day begins somewhere, in minutes: 24 full hours, and 13 of zones with half and quarter hours. */
export const DAY_STARTS: readonly number[] = [
  ...Array.from({ length: 24 }, (_, hour) => hour * 60),
  ...[2.5, 3.5, 9.5, 10.25, 11.25, 13.5, 14.5, 15.25, 17.5, 18.25, 18.5, 19.5, 20.5].map((hour) => hour * 60),
].toSorted((a, b) => a - b);
