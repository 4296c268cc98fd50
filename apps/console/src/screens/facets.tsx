import { type Filters, useUsage } from '../api/queries.ts';
import { type Facet as By, type FacetRow, type Value, valuesOf } from '../data/facets.ts';
import { count } from '../data/format/format.ts';
import { isCut } from '../data/usage.ts';
import { href, type Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';

const NAMES = { provider: 'Providers', model: 'Models' } as const;

/** The providers and models of the shown calls. Each is a link that filters by it. Refused calls are not included. */
export function Facets({ params }: { params: Place['params'] }) {
  const { failure, grant_id: grant, outcome, provider, model, ...others } = params;
  const { isLive: _, ...range } = useRange();
  const isSummed = failure === undefined && grant === undefined && outcome !== 'refused';
  // The sums of both facets. Each facet counts the calls that match the chosen value of the other.
  const filters = { ...others, ...(outcome !== undefined && outcome !== 'failed' && { outcome }) };
  const { data: report } = useUsage({ range, groupBy: ['provider', 'model'], filters }, isSummed);
  if (!isSummed || !report) return null;
  const callsOf = (row: FacetRow) => (outcome === 'failed' ? row.failed_calls : row.calls);
  const ofModel = report.data.filter((row) => model === undefined || row.model === model);
  const ofProvider = report.data.filter((row) => provider === undefined || row.provider === provider);
  return (
    <>
      <Facet by="provider" params={params} values={valuesOf(ofModel, 'provider', callsOf, provider)} />
      <Facet by="model" params={params} values={valuesOf(ofProvider, 'model', callsOf, model)} />
      {isCut(report) && (
        <p class="soft">
          Counted are the calls of the {count(report.data.length)} pairs of provider and model that cost most,
          of {count(report.groups)}.
        </p>
      )}
    </>
  );
}

type FacetProps = {
  readonly by: By;
  readonly params: Filters;
  readonly values: readonly Value[];
};

/** A chosen value links back to all values. */
const Facet = ({ by, params, values }: FacetProps) =>
  values.length > 1 || params[by] !== undefined ? (
    <nav aria-label={NAMES[by]} class="facets">
      {values.map(([value, calls]) => {
        const isChosen = params[by] === value;
        return (
          <a
            key={value}
            href={href('requests', { ...params, [by]: isChosen ? undefined : value })}
            aria-current={isChosen ? 'true' : undefined}
          >
            {value} {calls !== undefined && <b>{count(calls)}</b>}
          </a>
        );
      })}
    </nav>
  ) : null;
