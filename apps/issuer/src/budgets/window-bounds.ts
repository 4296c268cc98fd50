import type { BudgetWindow } from '@presign/schema';
import { Temporal } from 'temporal-polyfill';

/** The windows of one kind in one time zone. */
export type Calendar = {
  readonly kind: BudgetWindow;
  readonly timeZone: string;
  /** A moment at which a window begins, in Unix ms. Undefined: windows begin with the hour, the day, Monday or the month. */
  readonly anchorMs: number | undefined;
};

/** A window, in Unix ms. */
export type Bounds = { readonly startsMs: number; readonly endsMs: number | undefined };

/** A Monday, and the first day of a month. */
const ORIGIN = Temporal.PlainDateTime.from('2001-01-01T00:00');

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const STEPS = {
  hour: { about: HOUR_MS, step: (n: number) => ({ hours: n }) },
  day: { about: DAY_MS, step: (n: number) => ({ days: n }) },
  week: { about: 7 * DAY_MS, step: (n: number) => ({ weeks: n }) },
  month: { about: 30.436875 * DAY_MS, step: (n: number) => ({ months: n }) },
};

/**
 * The windows from the one that contains a moment, without end and without gaps. Each boundary is counted from the first one, so
 * that a month that begins on the 31st does so again after February. A local time that daylight saving time skips is the one
 * after it, and the first of two is taken. An hour is always as long.
 */
export function* windowsFrom(calendar: Calendar, atMs: number): Generator<Bounds> {
  if (calendar.kind === 'lifetime') {
    yield { startsMs: 0, endsMs: undefined };
    return;
  }
  const { at, about } = boundaries(calendar.kind, calendar);
  let n = Math.floor((atMs - at(0)) / about) - 2;
  while (at(n + 1) <= atMs) n++;
  for (; ; n++) {
    const [startsMs, endsMs] = [at(n), at(n + 1)];
    // A zone may skip a whole day.
    if (startsMs < endsMs) yield { startsMs, endsMs };
  }
}

/** The n-th boundary in Unix ms, and how far two are apart, about. */
function boundaries(kind: Exclude<BudgetWindow, 'lifetime'>, { timeZone, anchorMs }: Calendar) {
  const { about, step } = STEPS[kind];
  const local =
    anchorMs === undefined
      ? ORIGIN
      : Temporal.Instant.fromEpochMilliseconds(anchorMs).toZonedDateTimeISO(timeZone).toPlainDateTime();
  const firstMs = anchorMs ?? local.toZonedDateTime(timeZone).epochMilliseconds;
  const at = (n: number) =>
    kind === 'hour' || n === 0
      ? firstMs + n * HOUR_MS
      : local.add(step(n)).toZonedDateTime(timeZone).epochMilliseconds;
  return { at, about };
}
