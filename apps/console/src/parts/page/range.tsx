import { useMemo } from 'preact/hooks';
import { useNow } from '../../api/queries.ts';
import { fieldTime } from '../../data/format/format.ts';
import {
  instantOf,
  isMonth,
  monthsUntil,
  OWN_ZONE,
  type Range,
  rangeOf,
  timeOf,
  zoneOf,
} from '../../data/format/range.ts';
import { exactHref, usePlace } from './place.ts';

/** The range of all pages. It ends at the same moment for all pages, and this moment advances. */
export function useRange(): Range & { readonly isLive: boolean } {
  const { params } = usePlace();
  const now = useNow();
  return useMemo(() => {
    const range = rangeOf(params, now);
    return { ...range, isLive: range.to === now };
  }, [params.time, params.from, params.to, params.zone, now]);
}

const NAMED = [
  ['today', 'Today'],
  ['7d', 'Last 7 days'],
  ['30d', 'Last 30 days'],
  ['90d', 'Last 90 days'],
  ['month', 'This month'],
  ['last-month', 'Last month'],
] as const;
const CUSTOM = 'custom';
const MONTHS = 13;

const MONTH_NAME = new Intl.DateTimeFormat(undefined, { month: 'long', year: 'numeric', timeZone: 'UTC' });
const ZONES = [...new Set([OWN_ZONE, 'UTC', ...Intl.supportedValuesOf('timeZone')])];

/** Chooses the time and the zone of all pages. */
export function RangePicker() {
  const { path, params } = usePlace();
  const range = useRange();
  const zone = zoneOf(params);
  const isCustom = params.from !== undefined || params.to !== undefined;
  const go = (change: Readonly<Record<string, string | undefined>>) => {
    location.hash = exactHref(path.map(encodeURIComponent).join('/'), { ...params, ...change });
  };
  const choose = (time: string) =>
    time === CUSTOM
      ? go({ time: undefined, from: iso(range.from), to: iso(range.to) })
      : go({ time, from: undefined, to: undefined });
  const set = (name: 'from' | 'to') => (event: { currentTarget: HTMLInputElement }) => {
    const { currentTarget: field } = event;
    // A year is typed digit by digit.
    if (field.value !== '' && field.value < '1000') return;
    const at = field.value === '' ? undefined : new Date(instantOf(field.value, zone)).toISOString();
    // The clock may skip a typed time, and a second time changes no address.
    if (at !== undefined) field.value = fieldTime(at, zone) ?? '';
    go({ [name]: at });
  };
  const months = monthsUntil(useNow(), zone, MONTHS).slice(2);
  return (
    <fieldset class="range">
      <legend class="unseen">Time of all pages</legend>
      <select
        aria-label="Time"
        value={isCustom ? CUSTOM : timeOf(params)}
        onChange={(event) => choose(event.currentTarget.value)}
      >
        {NAMED.map(([id, name]) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
        {[...months, ...otherMonth(params.time, months)].map((month) => (
          <option key={month} value={month}>
            {MONTH_NAME.format(Date.parse(`${month}-01T00:00Z`))}
          </option>
        ))}
        <option value={CUSTOM}>Custom…</option>
      </select>
      {isCustom && (
        <>
          <input
            type="datetime-local"
            aria-label="From"
            value={fieldTime(params.from ?? iso(range.from), zone)}
            onChange={set('from')}
          />
          <input
            type="datetime-local"
            aria-label="Until"
            value={fieldTime(params.to, zone)}
            onChange={set('to')}
          />
        </>
      )}
      <select
        aria-label="Time zone"
        value={zone}
        onChange={(event) => go({ zone: event.currentTarget.value })}
      >
        {(ZONES.includes(zone) ? ZONES : [zone, ...ZONES]).map((each) => (
          <option key={each} value={each}>
            {each.replaceAll('_', ' ')}
          </option>
        ))}
      </select>
    </fieldset>
  );
}

/** A month from the address that is not in the list. */
const otherMonth = (time: string | undefined, months: readonly string[]): string[] =>
  time !== undefined && isMonth(time) && !months.includes(time) ? [time] : [];

const iso = (seconds: number) => new Date(seconds * 1000).toISOString();
