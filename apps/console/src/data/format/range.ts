/** The range of time that pages show, in Unix seconds, and the time zone of its days. */
export type Range = {
  readonly from: number;
  readonly to: number;
  readonly zone: string;
  /**
   * The name of the range, such as `30d` or `2026-01`, or both ends as in the address. Two ranges with the same name are the same query,
   * even if they were created at different moments.
   */
  readonly name?: string;
};

/** The parameters of the address that set the range of all pages. Links keep them. */
export const RANGE_PARAMS = ['time', 'from', 'to', 'zone'] as const;
type RangeParams = Readonly<Partial<Record<(typeof RANGE_PARAMS)[number], string>>>;

export const OWN_ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The zone of the address, if the browser knows it. */
export function zoneOf({ zone }: RangeParams): string {
  try {
    return zone === undefined
      ? OWN_ZONE
      : Intl.DateTimeFormat('en', { timeZone: zone }).resolvedOptions().timeZone;
  } catch {
    return OWN_ZONE;
  }
}

/** A named range: this many days up to today. */
const LAST_DAYS: Readonly<Record<string, number>> = { today: 1, '7d': 7, '30d': 30, '90d': 90 };
const DEFAULT_TIME = '30d';

/** The range in an address. `now` is the end of a range without a fixed end. */
export function rangeOf(params: RangeParams, now: number): Range {
  const zone = zoneOf(params);
  const { from, to } = params;
  const name = timeOf(params);
  if (from !== undefined || to !== undefined) {
    const wanted = secondsOf(to, now);
    const start = Math.min(secondsOf(from, Math.max(0, Math.min(wanted, now) - USUAL_SECONDS)), wanted);
    // A range that ends in the future ends now. A range that is wholly in the future is unchanged, because the API requires an end after
    // the start.
    const end = start < now ? Math.min(wanted, now) : wanted;
    return { from: start, to: end, zone, name: `${from ?? ''}/${to ?? ''}` };
  }
  const today = dayOf(now, zone);
  const month = name === 'month' ? today.slice(0, 7) : name === 'last-month' ? monthAfter(today, -1) : name;
  if (isMonth(month)) {
    const start = startOf(`${month}-01`, zone);
    const end = startOf(`${monthAfter(month, 1)}-01`, zone);
    return { from: start, to: Math.max(start, Math.min(now, end)), zone, name };
  }
  const days = LAST_DAYS[name] ?? 30;
  return { from: startOf(dayAfter(today, 1 - days), zone), to: now, zone, name };
}

/** The name of the range in an address. A name that means nothing is that of the usual range. */
export const timeOf = ({ time = DEFAULT_TIME }: RangeParams): string =>
  NAMED_MONTHS.includes(time) || isMonth(time) || Object.hasOwn(LAST_DAYS, time) ? time : DEFAULT_TIME;

const NAMED_MONTHS: readonly string[] = ['month', 'last-month'];
export const isMonth = (text: string): boolean => /^20\d\d-(0[1-9]|1[0-2])$/.test(text);
/** The length of a range without a start, as in the API. */
const USUAL_SECONDS = 30 * 86_400;

/** The previous range of the same length. For a chosen month, the same part of the month before. */
export function rangeBefore({ from, to, zone, name = `from ${from}` }: Range): Range {
  const start =
    NAMED_MONTHS.includes(name) || isMonth(name)
      ? startOf(`${monthAfter(dayOf(from, zone), -1)}-01`, zone)
      : from - (to - from);
  return { from: start, to: Math.min(from, start + (to - from)), zone, name: `before ${name}` };
}

/** The whole month of a moment. The range `month` shows the part until now. */
export function monthOf(at: number, zone: string): Range {
  const month = dayOf(at, zone);
  return {
    from: startOf(`${month.slice(0, 7)}-01`, zone),
    to: startOf(`${monthAfter(month, 1)}-01`, zone),
    zone,
    name: 'month',
  };
}

/** The days that a range touches, as `2026-01-31`. */
export function daysOf({ from, to, zone }: Range): string[] {
  const days: string[] = [];
  const last = dayOf(Math.max(from, to - 0.001), zone);
  for (let day = dayOf(from, zone); day <= last && days.length < MOST_DAYS; day = dayAfter(day, 1))
    days.push(day);
  return days;
}
/** A chart of more days is no chart. */
const MOST_DAYS = 400;

/** The range of one day. */
export const rangeOfDay = (day: string, zone: string): Range => ({
  from: startOf(day, zone),
  to: startOf(dayAfter(day, 1), zone),
  zone,
});

/** The end of the year 9999, which is the latest that the API accepts. */
const END = 253_402_300_800;

/** Seconds of an ISO time, or of Unix seconds as the API takes them. */
function secondsOf(text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  return seconds >= 0 && seconds < END ? seconds : otherwise;
}

/** The months up to that of a moment, newest first, as `2026-01`. */
export const monthsUntil = (at: number, zone: string, months: number): string[] =>
  Array.from({ length: months }, (_, ago) => monthAfter(dayOf(at, zone), -ago));

const DAY_MS = 86_400_000;
const dayAfter = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);

function monthAfter(day: string, months: number): string {
  const [year = 0, month = 0] = day.split('-').map(Number);
  return new Date(Date.UTC(year, month - 1 + months, 1)).toISOString().slice(0, 7);
}

/** The day of a moment in a zone. */
export const dayOf = (at: number, zone: string): string => wallOf(at * 1000, zone).slice(0, 10);

/** The first moment of a day. */
const startOf = (day: string, zone: string): number => instantOf(`${day}T00:00`, zone) / 1000;

const WALLS = new Map<string, Intl.DateTimeFormat>();

/** A moment as a clock of the zone shows it, to the minute, as fields for a time take it. */
export function wallOf(ms: number, zone: string): string {
  const format =
    WALLS.get(zone) ??
    new Intl.DateTimeFormat('sv-SE', { dateStyle: 'short', timeStyle: 'short', timeZone: zone });
  WALLS.set(zone, format);
  return format.format(ms).replace(' ', 'T');
}

/**
 * The moment at which a clock of the zone shows a time. If the clock shows it twice, the moment is the first. If the clock skips it, the moment
 * is later by the skipped time (RFC 5545, 3.3.5).
 */
export function instantOf(wall: string, zone: string): number {
  const asUtc = Date.parse(`${wall}Z`);
  // `wallOf` writes an earlier year with fewer digits.
  if (wall < '1000') return asUtc;
  const offset = (at: number) => Date.parse(`${wallOf(at, zone)}Z`) - Math.floor(at / 60_000) * 60_000;
  const [first, later] = [asUtc - offset(asUtc - DAY_MS), asUtc - offset(asUtc + DAY_MS)];
  const isShown = (at: number) => wallOf(at, zone) === wall.slice(0, 16);
  return !isShown(first) && isShown(later) ? later : first;
}
