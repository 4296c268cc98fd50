/** Microdollars as dollars with all their digits: at least two decimals, at most six. Null: `–`. */
export function money(microusd: number | null | undefined): string {
  if (microusd === null || microusd === undefined) return '–';
  const all = Math.abs(microusd);
  const part = String(all % 1_000_000)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${microusd < 0 ? '−' : ''}$${count(Math.floor(all / 1_000_000))}.${part}`;
}

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

/** A limit. −1 and null mean no limit. */
export const limit = (value: number | null, show: (value: number) => string): string =>
  value === null || value === -1 ? 'no limit' : show(value);

/** How much of a limit is used. Without a limit, this amount alone. */
export const usedOf = (used: number | null | undefined, most: number | null, show: typeof money): string =>
  most === null ? show(used) : `${show(used)} of ${show(most)}`;

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
export const time = (seconds: number): string => TIME.format(seconds * 1000);

/** A moment with its zone, as the API and an address take it. A field for a time writes it in the browser's zone, without one. */
export const moment = (text: string): string => {
  const date = new Date(millisOf(text));
  return Number.isNaN(date.getTime()) ? text : date.toISOString();
};

/** A number is Unix seconds, as in the API. */
const millisOf = (text: string): number =>
  /^\d+(\.\d+)?$/.test(text) ? Math.round(Number(text) * 1_000) : Date.parse(text);

/** The end of the year 9999. */
const END_MS = 253_402_300_800_000;

/** A moment as a field for a time shows it: in the browser's zone, to the minute. */
export const fieldTime = (text: string | undefined): string | undefined => {
  const date = new Date(millisOf(text ?? ''));
  // Beyond it, the API takes no time, and a field shows none.
  if (!(date.getTime() >= 0 && date.getTime() < END_MS)) return undefined;
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};

/** The beginning of an id, enough to recognise it. */
export const short = (id: string): string => id.slice(0, 8);
