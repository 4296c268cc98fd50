import type { UsageReport } from '@presign/client';
import { type Filters, useUsage } from '../api/queries.ts';
import { count } from '../data/format/format.ts';
import { href, type Place } from '../parts/place.ts';
import { useRange } from '../parts/range.tsx';

type Row = UsageReport['data'][number];

const NAMES = { provider: 'Providers', model: 'Models' } as const;
type By = keyof typeof NAMES;

/** The values of a facet, those with the most calls first. */
const MOST_VALUES = 8;

/** The providers and models of the shown calls. Each is a link that filters by it. Refused calls are not included. */
export function Facets({ params }: { params: Place['params'] }) {
  const { failure, grant_id: grant, outcome, provider, model, ...others } = params;
  const { isLive: _, ...range } = useRange();
  const isSummed = failure === undefined && grant === undefined && outcome !== 'refused';
  // The sums of both facets. Each facet counts the calls that match the chosen value of the other.
  const filters = { ...others, ...(outcome !== undefined && outcome !== 'failed' && { outcome }) };
  const { data: report } = useUsage({ range, groupBy: ['provider', 'model'], filters }, isSummed);
  if (!isSummed || !report) return null;
  const callsOf = (row: Row) => (outcome === 'failed' ? row.failed_calls : row.calls);
  const ofModel = report.data.filter((row) => model === undefined || row.model === model);
  const ofProvider = report.data.filter((row) => provider === undefined || row.provider === provider);
  return (
    <>
      <Facet by="provider" params={params} calls={sums(ofModel, 'provider', callsOf)} />
      <Facet by="model" params={params} calls={sums(ofProvider, 'model', callsOf)} />
    </>
  );
}

/** The calls of each value, the most first. */
function sums(rows: readonly Row[], by: By, callsOf: (row: Row) => number): [string, number][] {
  const calls = new Map<string, number>();
  for (const row of rows) {
    const value = row[by];
    if (value != null) calls.set(value, (calls.get(value) ?? 0) + callsOf(row));
  }
  return [...calls].filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
}

type FacetProps = {
  readonly by: By;
  readonly params: Filters;
  readonly calls: readonly (readonly [string, number])[];
};

/** A chosen value links back to all values. */
const Facet = ({ by, params, calls }: FacetProps) =>
  calls.length > 1 || params[by] !== undefined ? (
    <nav aria-label={NAMES[by]} class="facets">
      {calls.slice(0, MOST_VALUES).map(([value, sum]) => {
        const isChosen = params[by] === value;
        return (
          <a
            key={value}
            href={href('requests', { ...params, [by]: isChosen ? undefined : value })}
            aria-current={isChosen ? 'true' : undefined}
          >
            {value} <b>{count(sum)}</b>
          </a>
        );
      })}
    </nav>
  ) : null;
