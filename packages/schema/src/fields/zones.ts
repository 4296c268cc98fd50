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
export function startOfDay(day: string, zone: string): Date {
  const clock = wallClock(zone);
  const midnight = Date.parse(`${day}T00:00:00Z`);
  const offsets = [midnight - DAY_MS, midnight + DAY_MS].map((ms) => shownAt(clock, ms) - ms);
  const [first = midnight, last = midnight] = offsets
    .map((offset) => midnight - offset)
    .toSorted((a, b) => a - b);
  return new Date(shownAt(clock, first) === midnight ? first : last);
}

/** When the months begin in a zone that begin after one moment and before another. */
export function startsOfMonths(from: Date, to: Date, zone: string): Date[] {
  const starts: Date[] = [];
  const shown = new Date(shownAt(wallClock(zone), from.getTime()));
  for (let month = shown.getUTCMonth() + 1; ; month++) {
    const first = new Date(Date.UTC(shown.getUTCFullYear(), month, 1)).toISOString().slice(0, 10);
    const start = startOfDay(first, zone);
    if (start >= to) return starts;
    starts.push(start);
  }
}
