/** Microdollars as dollars with all their digits: at least two decimals, at most six. Null: `–`. */
export function money(microusd: number | null | undefined): string {
  if (microusd === null || microusd === undefined) return '–';
  const all = Math.abs(microusd);
  const part = String(all % 1_000_000)
    .padStart(6, '0')
    .replace(/0{1,4}$/, '');
  return `${microusd < 0 ? '−' : ''}$${count(Math.floor(all / 1_000_000))}.${part}`;
}

/** Reads dollars as microdollars, without floating-point arithmetic. Undefined: not an amount. */
export function readMoney(text: string): number | undefined {
  const [, whole, part = ''] = /^\$?(\d{1,10})(?:\.(\d{1,6}))?$/.exec(text.trim()) ?? [];
  return whole === undefined ? undefined : Number(whole) * 1_000_000 + Number(part.padEnd(6, '0'));
}

export const count = (value: number | null | undefined): string =>
  value === null || value === undefined ? '–' : value.toLocaleString('en-US');

/** A limit. −1 and null mean no limit. */
export const limit = (value: number | null, show: (value: number) => string): string =>
  value === null || value === -1 ? 'no limit' : show(value);

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
export const time = (seconds: number): string => TIME.format(seconds * 1000);

/** The beginning of an id, enough to recognise it. */
export const short = (id: string): string => id.slice(0, 8);
