import { useContext } from 'preact/hooks';
import { useNames } from '../api/names.ts';
import { useNow, useUrls } from '../api/queries.ts';
import { fitsUrl } from '../data/urls.ts';
import { Choice, Field, FilterForm } from '../parts/forms/form.tsx';
import { Pick, PickUser } from '../parts/forms/pick.tsx';
import { Page } from '../parts/page/answer.tsx';
import type { Place } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { UrlTable } from '../parts/tables/url-table.tsx';

const STATES = [
  ['', 'all'],
  ['active', 'active'],
  ['exhausted', 'exhausted'],
  ['expired', 'expired'],
  ['revoked', 'revoked'],
] as const;

const ENDS = [
  ['', 'at any time'],
  ['1h', 'within an hour'],
  ['1d', 'within a day'],
  ['7d', 'within a week'],
] as const;

/** Issued URLs, newest first, with what they spent of their limits. */
export function Urls({ params }: { params: Place['params'] }) {
  const urls = useUrls(params);
  const now = useNow();
  return (
    <Page title="URLs">
      <UrlFilters params={params} />
      <UrlTable
        // A selection belongs to one filter.
        key={JSON.stringify(params)}
        of={urls}
        rowsOf={({ data }) => data.filter((url) => fitsUrl(url, params, now))}
        caption="URLs"
        empty="No URL fits."
      />
    </Page>
  );
}

const RARE = ['api_key', 'virtual_key', 'external_session'] as const;

function UrlFilters({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  const choices = (of: ReadonlyMap<string, string> | undefined) => [['', 'all'] as const, ...(of ?? [])];
  return (
    <FilterForm path="urls">
      <Field label="Name" name="name" value={params.name} />
      <PickUser value={params.external_user} />
      <Choice label="State" name="state" value={params.state ?? ''} options={STATES} />
      <Choice label="Ends" name="ends" value={params.ends ?? ''} options={ENDS} />
      <Pick label="Provider" by="provider" value={params.provider} />
      <Pick label="Model that it allows" by="model" value={params.model} />
      <details open={RARE.some((name) => params[name] !== undefined)}>
        <summary>Key or session</summary>
        <div class="filters">
          {can('admin') && (
            <Choice label="API key" name="api_key" value={params.api_key} options={choices(names?.api_key)} />
          )}
          <Choice
            label="Virtual key"
            name="virtual_key"
            value={params.virtual_key}
            options={choices(names?.virtual_key)}
          />
          <Field label="External session" name="external_session" value={params.external_session} />
        </div>
      </details>
    </FilterForm>
  );
}
