import type { UsageReport } from '@presign/client';
import { daysOf, type Range } from './format/range.ts';

export type Dimension = UsageReport['group_by'][number];
/** Only calls with these values, by the names of dimensions. */
export type UsageFilters = Readonly<Record<string, string>>;
/** A query for sums of calls: the range, the dimensions, and the filters. */
export type UsageAsked = {
  readonly range: Range;
  readonly groupBy: readonly Dimension[];
  readonly filters?: UsageFilters;
};

const TAG = 'metadata.';

/** A dimension or another filter in words. */
export const dimensionName = (by: string): string =>
  NAMES[by] ?? (by.startsWith(TAG) ? by.slice(TAG.length) : by.replaceAll('_', ' '));
const NAMES: Readonly<Record<string, string>> = { external_user: 'user', api_key: 'API key' };

/** Filters as the API takes them: those by keys of metadata are one object. */
export function apiFilters(filters: UsageFilters): Readonly<Record<string, unknown>> {
  const given = Object.entries(filters).filter(([, value]) => value !== '');
  const tags = given
    .filter(([name]) => name.startsWith(TAG))
    .map(([name, value]) => [name.slice(TAG.length), value]);
  const others = Object.fromEntries(given.filter(([name]) => !name.startsWith(TAG)));
  return tags.length === 0 ? others : { ...others, metadata: Object.fromEntries(tags) };
}

/** The identity of a query, without the moments of a range that has no fixed end. All refreshes of a query share this identity. */
export const questionOf = <A extends { readonly range: Range }>({
  range: { from, to, zone, name },
  ...asked
}: A) => ({
  ...asked,
  time: name ?? `${from}/${to}`,
  zone,
});

/** The fields of the API for a sum. */
export const usageFields = ({ range: { from, to, zone }, groupBy, filters = {} }: UsageAsked) => ({
  ...apiFilters(filters),
  from: Math.round(from * 1000) / 1000,
  to: Math.round(to * 1000) / 1000,
  timezone: zone,
  ...(groupBy.length > 0 && { group_by: groupBy }),
});

type Fields = ReturnType<typeof usageFields> & { readonly limit?: number; readonly top?: number };
/** Asks the API for one answer of a report. */
export type AskUsage = (fields: Fields) => Promise<UsageReport>;

/** The most groups that a page shows: those with the highest cost. The CSV has all groups. */
export const MOST_GROUPS = 1_000;
/** The most groups of a report by day or month, alone or with one more dimension. */
const MOST_TIMES = 5_000;

export const isTime = (by: Dimension | undefined): boolean => by === 'day' || by === 'month';

/** Reads a report as far as a page shows it: the groups with the highest cost, or days and months in their order. */
export const readReport = (ask: AskUsage, asked: UsageAsked): Promise<UsageReport> =>
  ask({
    ...usageFields(asked),
    ...(asked.groupBy.every(isTime) ? { limit: MOST_TIMES } : { top: MOST_GROUPS }),
  });

/** Whether a report lacks groups. */
export const isCut = ({ groups, data }: Pick<UsageReport, 'groups' | 'data'>): boolean =>
  groups > data.length;

type Row = UsageReport['data'][number];

/** The value of a row in a dimension. Null: its calls have no value. */
export function valueIn(row: Row, by: Dimension): string | null {
  if (by.startsWith(TAG)) return row.metadata?.[by.slice(TAG.length)] ?? null;
  return row[by as Exclude<Dimension, `metadata.${string}`>] ?? null;
}

const named = (row: Row, by: Dimension, name: string): Row =>
  by.startsWith(TAG) ? { ...row, metadata: { [by.slice(TAG.length)]: name } } : { ...row, [by]: name };

/**
 * The number of groups that a chart shows by name. The rest are one group. Its key contains NUL, which Postgres cannot store, so no user or
 * model has this name.
 */
export const MOST_NAMED = 5;
export const OTHERS = '\0others';

type ByDay = { readonly range: Range; readonly by: Dimension; readonly filters?: UsageFilters };

/**
 * Reads a report by day and one more dimension. If it has more groups than fit in one answer, only the most expensive groups are named, and
 * the rest are one group for each day. A report of 1,000 users and 30 days has 30,000 groups, and a chart shows few.
 * @param groups the report by that dimension alone. Undefined: the dimension is the day
 */
export async function readByDay(
  ask: AskUsage,
  { range, by, filters = {} }: ByDay,
  groups: UsageReport | undefined,
): Promise<UsageReport> {
  const read = (groupBy: readonly Dimension[], only: UsageFilters = {}) =>
    ask({ ...usageFields({ range, groupBy, filters: { ...filters, ...only } }), limit: MOST_TIMES });
  if (groups === undefined) return read(['day']);
  if (groups.groups * daysOf(range).length <= MOST_TIMES) return read(['day', by]);
  // An empty name cannot be filtered by.
  const names = groups.data.map((row) => valueIn(row, by) ?? '').filter((name) => name !== '');
  const most: Row[] = [];
  // One after another: an issuer reads one report of an account at a time.
  for (const name of names.slice(0, MOST_NAMED)) {
    const { data } = await read(['day'], { [by]: name });
    most.push(...data.map((row) => named(row, by, name)));
  }
  const all = await read(['day']);
  const rest = all.data.map((row) => named(without(row, most), by, OTHERS));
  return { ...all, data: [...most, ...rest] };
}

const SUMS = [
  ...(['calls', 'uses', 'cost', 'failed_calls'] as const),
  ...(['calls_of_unknown_cost', 'input_tokens', 'output_tokens'] as const),
];

/** The sums of a day minus the sums of these rows. */
function without(day: Row, rows: readonly Row[]): Row {
  const rest = { ...day };
  for (const row of rows) {
    if (row.day === day.day) for (const sum of SUMS) rest[sum] -= row[sum];
  }
  return rest;
}
