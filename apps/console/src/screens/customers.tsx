import { useFound } from '../api/names.ts';
import type { CustomerCost, Cut } from '../data/customer-costs.ts';
import { cents, count, money } from '../data/format/format.ts';
import { Field, FilterForm } from '../parts/forms/form.tsx';
import { Page, Waiting } from '../parts/page/answer.tsx';
import { Download } from '../parts/page/download.tsx';
import { User } from '../parts/page/facts.tsx';
import type { Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';
import { CustomerCosts, useMonthCost, useMonthCosts } from '../parts/tables/customer-costs.tsx';
import { type Column, Table } from '../parts/tables/table.tsx';

/** All customers, with the cost of each this month so far and at its end. */
export function Customers({ params: { q = '' } }: { params: Place['params'] }) {
  const costs = useMonthCosts();
  const { isLive: _, ...range } = useRange();
  const text = q.trim().toLowerCase();
  const rows = costs?.rows.filter(({ user }) => (user ?? '').toLowerCase().includes(text)) ?? [];
  return (
    <Page title="Customers">
      <FilterForm path="customers">
        <Field label="Find" name="q" value={q} />
      </FilterForm>
      {costs ? (
        <>
          <CustomerCosts
            of={{ ...costs, rows }}
            empty={text === '' ? undefined : 'No listed customer has this text in the name.'}
          />
          {costs.cut && text !== '' && <Others text={text} listed={rows} />}
          {costs.cut && (
            <p class="soft">{wordsOf(costs.cut)} Find looks for the others. The sums contain all.</p>
          )}
        </>
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

const wordsOf = ({ of, shown, all }: Cut): string =>
  of === 'month'
    ? `The list has the ${count(shown)} customers that spent most this month, of ${count(all)}, and forecasts of those that also spent most in the last seven days.`
    : `The list has all customers of this month, and the ${count(shown)} that spent most in the last seven days, of ${count(all)}.`;

/** Figures of each are two answers of the issuer. */
const MOST_OTHERS = 8;

type OthersProps = { readonly text: string; readonly listed: readonly CustomerCost[] };

/** Customers with a text in their names whom the list lacks. */
function Others({ text, listed }: OthersProps) {
  const { found, isWaiting, isWhole } = useFound(text, true, 'external_user');
  const others = found.map(({ name }) => name).filter((name) => !listed.some(({ user }) => user === name));
  return (
    <>
      <h2>Others found by name</h2>
      <Table
        caption="Others found by name"
        rows={others.slice(0, MOST_OTHERS)}
        keyOf={(user) => user}
        empty={isWaiting ? 'Searching…' : 'No other customer has this text in the name.'}
        isCut={!isWaiting && !isWhole}
        columns={OTHER_COLUMNS}
      />
      {others.length > MOST_OTHERS ? (
        <p class="soft">There are more. Type a longer part of the name to see them.</p>
      ) : (
        !isWhole && (
          <p class="soft">
            There may be more. Type a longer part of the name, from its beginning, to see them.
          </p>
        )
      )}
    </>
  );
}

const figure = (head: string, show: (cost: CustomerCost) => string): Column<string> => ({
  ...{ head, figure: true },
  cell: (user) => <OfMonth user={user} show={show} />,
});

/** A figure of one customer, once it is read. */
function OfMonth({ user, show }: { user: string; show: (cost: CustomerCost) => string }) {
  const cost = useMonthCost(user);
  return <>{cost ? show(cost) : '…'}</>;
}

const OTHER_COLUMNS: readonly Column<string>[] = [
  { head: 'Customer', cell: (user) => <User of={user} /> },
  figure('This month', ({ spent }) => money(spent)),
  figure('Forecast', ({ forecast }) => cents(forecast)),
  figure('Calls', ({ calls }) => count(calls)),
  figure('Failed', ({ failed }) => count(failed)),
];
