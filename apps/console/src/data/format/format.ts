import { wallOf } from './range.ts';

/** Microdollars as dollars with all their digits: at least two decimals, at most six. Null: `–`. */
export function money(microusd: number | null | undefined): string {
  if (microusd === null || microusd === undefined) return '–';
  const all = Math.abs(microusd);
  const part = String(all % 1_000_000)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${microusd < 0 ? '−' : ''}$${count(Math.floor(all / 1_000_000))}.${part}`;
}

/** Microdollars to the cent, for estimates and axes. Null: `–`. */
export const cents = (microusd: number | null): string =>
  microusd === null
    ? '–'
    : `${microusd < 0 ? '−' : ''}$${(Math.abs(microusd) / 1_000_000).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

/** Microdollars as the text of a form, which `readMoney` reads back without a loss. */
export const writeMoney = (microusd: number): string =>
  money(microusd).replace(/[$,]/g, '').replace(/\.00$/, '');

/** Reads dollars as microdollars, without floating-point arithmetic. Undefined: not an amount. */
export function readMoney(text: string): number | undefined {
  const [, whole, part = ''] = /^\$?(\d{1,10})(?:\.(\d{1,6}))?$/.exec(text.trim()) ?? [];
  const amount = Number(whole) * 1_000_000 + Number(part.padEnd(6, '0'));
  return Number.isSafeInteger(amount) ? amount : undefined;
}

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : value.toLocaleString('en-US');

/** A share in percent, or `–` if the total is 0. */
export const percent = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${((part / whole) * 100).toFixed(1)} %`;

/** A duration in milliseconds. */
export const duration = (ms: number | null | undefined): string =>
  ms === null || ms === undefined
    ? '–'
    : ms < 1_000
      ? `${Math.round(ms * 10) / 10} ms`
      : `${(ms / 1_000).toFixed(2)} s`;

/** A limit. −1 and null mean no limit. */
export const limit = (value: number | null, show: (value: number) => string): string =>
  value === null || value === -1 ? 'no limit' : show(value);

/** How much of a limit is used. Without a limit, only the amount. */
export const usedOf = (used: number | null | undefined, most: number | null, show: typeof money): string =>
  most === null ? show(used) : `${show(used)} of ${show(most)}`;

const FORMATS = new Map<string, Intl.DateTimeFormat>();
/** A moment as clocks of the zone show it. */
export function time(seconds: number, zone: string): string {
  const format =
    FORMATS.get(zone) ??
    new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium', timeZone: zone });
  FORMATS.set(zone, format);
  return format.format(seconds * 1000);
}

/** A day as `Nov 21`. */
export const dayName = (day: string): string => DAY_NAME.format(Date.parse(`${day}T00:00Z`));
const DAY_NAME = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' });

/** An hour of a zone, `2026-01-31T14:00`, as `Jan 31, 14:00`. */
export const hourName = (hour: string): string => `${dayName(hour.slice(0, 10))}, ${hour.slice(11)}`;

/** The end of the year 9999. */
const END_MS = 253_402_300_800_000;

/** A moment in the format of a time field: in the zone, to the minute. */
export const fieldTime = (text: string | undefined, zone: string): string | undefined => {
  const ms = /^\d+(\.\d+)?$/.test(text ?? '') ? Number(text) * 1_000 : Date.parse(text ?? '');
  // The API accepts no later time, and a time field shows none.
  return ms >= 0 && ms < END_MS ? wallOf(ms, zone) : undefined;
};

/** The beginning of an id, enough to recognise it. */
export const short = (id: string): string => id.slice(0, 8);
