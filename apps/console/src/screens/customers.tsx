import { Page, Waiting } from '../parts/answer.tsx';
import { CustomerCosts, useMonthCosts } from '../parts/customer-costs.tsx';
import { Download } from '../parts/download.tsx';
import { Field, FilterForm } from '../parts/form.tsx';
import type { Place } from '../parts/place.ts';
import { useRange } from '../parts/range.tsx';

/** All customers, with the cost of each this month so far and at its end. */
export function Customers({ params: { q = '' } }: { params: Place['params'] }) {
  const costs = useMonthCosts();
  const { isLive: _, ...range } = useRange();
  return (
    <Page title="Customers">
      <FilterForm path="customers">
        <Field label="Find" name="q" value={q} />
      </FilterForm>
      {costs ? (
        <CustomerCosts
          of={{
            ...costs,
            rows: costs.rows.filter(({ user }) => (user ?? '').toLowerCase().includes(q.toLowerCase())),
          }}
        />
      ) : (
        <Waiting />
      )}
      <p class="soft">
        The forecast adds the average of the last seven days for the rest of the month. Months are those of{' '}
        {range.zone}.
      </p>
      <p class="buttons">
        <Download
          label="Download the shown time as CSV"
          file="customers.csv"
          asked={{ range, groupBy: ['external_user'] }}
        />
      </p>
    </Page>
  );
}
