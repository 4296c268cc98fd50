import type { Range } from './format/range.ts';

const WEEK = 7 * 86_400;

/** The period that a forecast extends: the last seven days. */
export const lastWeek = (now: number, zone: string): Range => ({
  from: now - WEEK,
  to: now,
  zone,
  name: 'last week',
});

/** The spending of a month at its end. It adds the average of the last seven days for each remaining day. */
export const forecast = (spent: number, ofLastWeek: number, now: number, end: number): number =>
  Math.round(spent + (ofLastWeek / WEEK) * Math.max(0, end - now));

type Window = { readonly starts_at: number; readonly ends_at: number | null };

/** When a limit will be spent at the present rate of its window. Undefined: not before the window ends. */
export function emptyAt(window: Window, spent: number, most: number | null, now: number): number | undefined {
  if (most === null || spent <= 0 || now <= window.starts_at) return undefined;
  const at = now + Math.max(0, most - spent) / (spent / (now - window.starts_at));
  return window.ends_at === null || at < window.ends_at ? at : undefined;
}
