import { useContext, useState } from 'preact/hooks';
import { useBudgetList, useLimits, useModels, useNow, useUsage, useVirtualKeyList } from '../api/queries.ts';
import { budgetsOf } from '../data/applies-to.ts';
import { about, averageSize, type CallSize, callCost, callsUnder } from '../data/estimate.ts';
import { count, money } from '../data/format/format.ts';
import { figuresOf, nameOf, shareOf, shareUsed } from '../data/shared-budget.ts';
import { Choice } from '../parts/forms/form.tsx';
import { Fullness } from '../parts/page/facts.tsx';
import { hrefOf } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { Table } from '../parts/tables/table.tsx';
import { priceOf } from './picks.tsx';

type Request = Readonly<Record<string, unknown>>;

/** How many calls the limits of the form allow, and the budgets that its calls will draw on. */
export function Forecast({ request }: { request: Request }) {
  const can = useContext(Rights);
  if (!can('read'))
    return <p class="soft">This API key lacks the scope read, so prices and budgets are not shown.</p>;
  return (
    <>
      <Worth request={request} />
      <BudgetsOf request={request} />
    </>
  );
}

const SIZES: Readonly<Record<string, CallSize>> = {
  question: { input: 300, output: 300 },
  page: { input: 2_000, output: 500 },
  document: { input: 20_000, output: 1_000 },
};
const CHOICES = [
  ['own', 'as your calls of the last 30 days'],
  ['question', 'a short question'],
  ['page', 'a page of text'],
  ['document', 'a long document'],
] as const;
const MONTH = 30 * 86_400;
const MOST_ROWS = 8;

function Worth({ request }: { request: Request }) {
  const provider = String(request.provider ?? '');
  const [chosen, choose] = useState('own');
  const now = useNow();
  const { data: priced = [] } = useModels(provider, provider !== '');
  const range = { from: now - MONTH, to: now, zone: 'UTC', name: 'issue' };
  const { data: usage } = useUsage({ range, groupBy: [], filters: { provider } });
  const own = usage && averageSize(usage.total);
  const size = SIZES[chosen] ?? own ?? (SIZES.question as CallSize);
  const names = modelsOf(request);
  const rows = (names.length === 0 ? priced : priced.filter(({ model }) => names.includes(model))).slice(
    0,
    MOST_ROWS,
  );
  const most = { dollars: numberOf(request.cost_limit), uses: numberOf(request.max_uses) };
  const callsOf = (cost: number | undefined) => (cost === undefined ? undefined : callsUnder(most, cost));
  return (
    <>
      <h2>How many calls</h2>
      <div onInput={({ target }) => target instanceof HTMLSelectElement && choose(target.value)}>
        <Choice label="Size of a call" name="size" value={chosen} options={CHOICES} />
      </div>
      <p class="soft">
        {chosen === 'own' && !own && 'There were no calls of this provider, so a short question is taken. '}
        {count(size.input)} tokens of input, {count(size.output)} of output. A call that could cost more than
        what is left is refused.
      </p>
      <Table
        caption="Calls by model"
        rows={rows}
        keyOf={({ model }) => model}
        empty={provider === '' ? 'Choose a provider.' : 'No price of these models is known.'}
        columns={[
          { head: 'Model', cell: ({ model }) => model },
          { head: 'Price', cell: ({ rates }) => priceOf(rates) },
          { head: 'A call', figure: true, cell: ({ rates }) => money(callCost(rates, size)) },
          { head: 'Calls', figure: true, cell: ({ rates }) => wordsOf(callsOf(callCost(rates, size))) },
        ]}
        isDense
      />
    </>
  );
}

const wordsOf = (calls: number | undefined) =>
  calls === undefined ? 'no limit' : `about ${count(about(calls))}`;

const numberOf = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 ? value : undefined;

/** The models that a request names. None: all. */
export function modelsOf({ models, config }: Request): readonly string[] {
  const { model } = (config ?? {}) as { readonly model?: unknown };
  if (typeof model === 'string') return [model];
  return Array.isArray(models) ? models.map(String) : [];
}

type Drawn = {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly share: number;
  readonly left: number | null;
};

const leftOf = (most: number | null, { spent }: { readonly spent: number }) =>
  most === null ? null : Math.max(0, most - spent);

/** The budgets of calls: shared ones, and that of the virtual key. */
function useDrawn(request: Request): { readonly rows: readonly Drawn[]; readonly isCut: boolean } {
  const { data: limits } = useLimits();
  const { data: budgets } = useBudgetList();
  const { data: keys } = useVirtualKeyList(true);
  const shared = budgetsOf(budgets?.rows ?? [], request, limits?.api_key.id).map((each) => ({
    ...{ id: each.id, name: nameOf(each), path: 'limits', share: shareOf(each) },
    left: leftOf(each.cost_limit, figuresOf(each)),
  }));
  const key = keys?.rows.find(({ id }) => id === request.virtual_key);
  const isLimited = key && (key.budget.cost_limit !== null || key.budget.max_uses !== null);
  const isCut = budgets?.isCut ?? false;
  if (!isLimited) return { rows: shared, isCut };
  const used = key.budget.live ?? key.budget.settled;
  const own = {
    ...{ id: key.id, name: key.name, path: 'keys', share: shareUsed(key.budget, used) },
    left: leftOf(key.budget.cost_limit, used),
  };
  return { rows: [own, ...shared], isCut };
}

function BudgetsOf({ request }: { request: Request }) {
  const { rows, isCut } = useDrawn(request);
  return (
    <>
      <h2>Budgets that will apply</h2>
      <Table
        caption="Budgets that will apply"
        rows={rows}
        keyOf={({ id }) => id}
        empty="No budget."
        isCut={isCut}
        columns={[
          { head: 'Budget', cell: ({ path, id, name }) => <a href={hrefOf(path, id)}>{name}</a> },
          { head: 'Full', cell: ({ name, share }) => <Fullness of={name} used={share} most={1} /> },
          {
            head: 'Left',
            figure: true,
            cell: ({ left }) => (left === null ? 'no limit' : money(left)),
          },
        ]}
      />
      {isCut && <p class="soft">Budgets beyond the newest 1,000 are not considered.</p>}
    </>
  );
}
