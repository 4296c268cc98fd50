import type { UsageReport } from '@presign/client';

/** Those that are fields of a row: a page has none by keys of metadata yet. */
export type Dimension = Exclude<UsageReport['group_by'][number], `metadata.${string}`>;
export type UsageFilters = Readonly<
  Partial<Record<'external_user' | 'provider' | 'model' | 'api_key' | 'virtual_key' | 'session_id', string>>
>;
/** A sum of calls: the days before now, the dimensions, and which calls. */
export type UsageAsked = {
  readonly days: number;
  readonly groupBy: readonly Dimension[];
  readonly filters?: UsageFilters;
};

/** The fields of the API for a sum that ends at this time. It begins with a day of UTC. */
export const usageFields = ({ days, groupBy, filters = {} }: UsageAsked, end: number) => ({
  ...filters,
  from: (Math.floor(end / DAY) - days + 1) * DAY,
  to: Math.round(end * 1000) / 1000,
  group_by: groupBy,
});

const DAY = 86_400;

type Fields = ReturnType<typeof usageFields> & { readonly limit: number; readonly cursor?: string };
/** Asks the API for one answer of a report. */
export type AskUsage = (fields: Fields) => Promise<UsageReport>;

/** Groups of one answer, and answers that a page reads. The CSV has all. */
const GROUPS = 5_000;
const MOST_ANSWERS = 6;

/** Reads a report to its end, or as far as a page shows it: then `next_cursor` is not null. */
export async function readReport(ask: AskUsage, asked: UsageAsked, end: number): Promise<UsageReport> {
  const fields = { ...usageFields(asked, end), limit: GROUPS };
  let report = await ask(fields);
  for (let read = 1; read < MOST_ANSWERS && report.next_cursor !== null; read++) {
    const more = await ask({ ...fields, cursor: report.next_cursor });
    report = { ...report, data: [...report.data, ...more.data], next_cursor: more.next_cursor };
  }
  return report;
}

/** Groups with a name of their own in a chart. The rest are one, whose key no user or model has as its name: Postgres stores no NUL. */
export const MOST_NAMED = 5;
export const OTHERS = '\0others';

/**
 * Reads a report by day and one more dimension. If it would have more groups than one answer, only the groups that cost most are
 * named, and the rest are one group each day: a report of 1,000 users and 30 days has 30,000 groups, and a chart shows few.
 */
export async function readByDay(
  ask: AskUsage,
  { days, by, filters = {} }: { days: number; by: Dimension; filters?: UsageFilters },
  end: number,
): Promise<UsageReport> {
  const read = (groupBy: readonly Dimension[], only: UsageFilters = {}) =>
    readReport(ask, { days, groupBy, filters: { ...filters, ...only } }, end);
  if (by === 'day') return read(['day']);
  const groups = await read([by]);
  if (groups.data.length * days <= GROUPS) return read(['day', by]);
  const costliest = groups.data.filter((row) => row[by] !== null).sort((a, b) => b.cost - a.cost);
  const named: Row[] = [];
  // One after another: an issuer reads one report of an account at a time.
  for (const { [by]: name } of costliest.slice(0, MOST_NAMED)) {
    const { data } = await read(['day'], { [by]: String(name) });
    named.push(...data.map((row) => ({ ...row, [by]: name })));
  }
  const all = await read(['day']);
  const rest = all.data.map((row) => ({ ...without(row, named), [by]: OTHERS }));
  return { ...all, data: [...named, ...rest] };
}

type Row = UsageReport['data'][number];

const SUMS = ['calls', 'uses', 'cost', 'calls_of_unknown_cost', 'input_tokens', 'output_tokens'] as const;

/** The sums of a day without those of these rows. */
function without(day: Row, rows: readonly Row[]): Row {
  const rest = { ...day };
  for (const row of rows) {
    if (row.day === day.day) for (const sum of SUMS) rest[sum] -= row[sum];
  }
  return rest;
}
