import type { Input, SharedBudget } from '@presign/client';
import { useContext } from 'preact/hooks';
import { presign } from '../data/api.ts';
import { count, limit, money, readMoney, short, usedOf, writeMoney } from '../data/format.ts';
import { useBudgets } from '../data/queries.ts';
import { figuresOf, metadataOf, nameOf, shareOf } from '../data/shared-budget.ts';
import { Action } from '../parts/action.tsx';
import { Page } from '../parts/answer.tsx';
import { Fullness, NotLive, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm } from '../parts/form.tsx';
import { href, type Place } from '../parts/place.ts';
import { Rights } from '../parts/rights.ts';
import { type Column, PagedTable } from '../parts/table.tsx';

export function Budgets({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const { data, ...rest } = useBudgets(params);
  return (
    <Page title="Budgets">
      <FilterForm path="budgets">
        <Field label="User" name="external_user" value={params.external_user} />
      </FilterForm>
      {can('admin') && <CreateBudget />}
      {data?.pages.some((page) => page.data.some(({ current }) => current?.live === null)) && <NotLive />}
      <PagedTable
        of={{ data, ...rest }}
        rowsOf={(page) => page.data}
        caption="Shared budgets"
        keyOf={({ id }) => id}
        empty="No shared budget yet."
        columns={can('admin') ? [...COLUMNS, CHANGE] : COLUMNS}
      />
    </Page>
  );
}

const COLUMNS: readonly Column<SharedBudget>[] = [
  {
    head: 'Budget',
    cell: (budget) => (budget.deleted_at === null ? nameOf(budget) : `${nameOf(budget)} (deleted)`),
  },
  { head: 'Draws on it', cell: ({ scope }) => <Covers scope={scope} /> },
  { head: 'Window', cell: ({ window }) => window },
  { head: 'Resets', cell: ({ current }) => <When at={current?.ends_at ?? null} /> },
  { head: 'Limit', figure: true, cell: (each) => limit(each.cost_limit, money) },
  {
    head: 'Spent',
    figure: true,
    cell: (each) => money(each.current && figuresOf(each).spent),
  },
  { head: 'Held', figure: true, cell: ({ current }) => money(current?.live?.held) },
  {
    head: 'Uses',
    figure: true,
    cell: (each) => usedOf(each.current && figuresOf(each).used, each.max_uses, count),
  },
  {
    head: 'Tokens',
    figure: true,
    cell: (each) => usedOf(each.current && figuresOf(each).tokens, each.tokens, count),
  },
  { head: 'Full', cell: (each) => <Fullness of={nameOf(each)} used={shareOf(each)} most={1} /> },
];

const CHANGE: Column<SharedBudget> = {
  head: 'Change',
  cell: (budget) =>
    budget.deleted_at === null && (
      <>
        <ChangeBudget budget={budget} />
        <DeleteBudget budget={budget} />
      </>
    ),
};

function Covers({ scope }: Pick<SharedBudget, 'scope'>) {
  const { account, api_key: apiKey, virtual_key: virtualKey, external_user: user, metadata } = scope;
  if (account) return <>all URLs of the account</>;
  if (apiKey !== undefined)
    return <a href={href('sessions', { api_key: apiKey })}>API key {short(apiKey)}</a>;
  if (virtualKey !== undefined) return <>virtual key {virtualKey.slice(0, 11)}</>;
  if (metadata) return <>URLs with metadata: {metadataOf(metadata)}</>;
  return user === '*' ? <>each user</> : <a href={href('sessions', { external_user: user })}>user {user}</a>;
}

/** Dollars of a form in microdollars. Empty: no limit. */
function costOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const amount = readMoney(text);
  if (amount === undefined)
    throw new Error(
      'Limit: expected dollars up to 9007199254.740991 with at most six decimals, such as 25 or 0.50.',
    );
  return amount;
}

const tokensOf = (text: string | undefined) => (text === undefined ? null : Number(text));
const usesOf = (text: string | undefined) => (text === undefined ? null : Number(text));
const textOf = (limited: number | null) => (limited === null ? '' : String(limited));

const Limits = ({ budget }: { budget?: SharedBudget }) => (
  <>
    <Field
      label="Limit in dollars"
      name="cost"
      value={budget?.cost_limit == null ? '' : writeMoney(budget.cost_limit)}
      hint={`Empty: no limit. ${budget ? 'It holds from the next call on.' : 'It limits URLs that are issued from now on.'}`}
    />
    <Field
      label="Uses"
      name="uses"
      type="number"
      value={textOf(budget?.max_uses ?? null)}
      hint="Empty: no limit."
    />
    <Field
      label="Tokens"
      name="tokens"
      type="number"
      value={textOf(budget?.tokens ?? null)}
      hint="Tokens of input and output together. Empty: no limit."
    />
  </>
);

const ChangeBudget = ({ budget }: { budget: SharedBudget }) => (
  <Action
    label="Change"
    of={nameOf(budget)}
    title={`Change the limits of ${nameOf(budget)}`}
    submit="Save"
    run={async ({ cost, uses, tokens }) =>
      presign.changeBudget(
        { id: budget.id, cost_limit: costOf(cost), max_uses: usesOf(uses), tokens: tokensOf(tokens) },
        { ifRevision: budget.revision },
      )
    }
  >
    <Limits budget={budget} />
  </Action>
);

const DeleteBudget = ({ budget }: { budget: SharedBudget }) => (
  <Action
    label="Delete"
    of={nameOf(budget)}
    title={`Delete ${nameOf(budget)}?`}
    submit="Delete"
    isDanger
    run={() => presign.deleteBudget({ id: budget.id })}
  >
    <p>It no longer limits the calls of its URLs. They keep their own limits.</p>
  </Action>
);

const SCOPES = [
  ['account', 'all URLs of the account'],
  ['external_user', 'URLs of a user'],
  ['api_key', 'URLs that an API key issues'],
  ['virtual_key', 'URLs of a virtual key'],
  ['metadata', 'URLs with metadata'],
] as const;

const METADATA = 'Which: expected a key and a value of metadata, such as team=blue.';

/** @param which what the scope is about */
function scopeOf(covers: string | undefined, which: string | undefined): Input<'createBudget'>['scope'] {
  const scope = SCOPES.find(([each]) => each === covers)?.[0] ?? 'account';
  if (scope === 'account') {
    if (which !== undefined) throw new Error('Which: all URLs of the account need none.');
    return { account: true };
  }
  if (which === undefined)
    throw new Error('Which: expected a user, an id, or a key and a value of metadata.');
  if (scope !== 'metadata') return { [scope]: which };
  const at = which.indexOf('=');
  const [key, value] = [which.slice(0, at).trim(), which.slice(at + 1).trim()];
  if (at < 0 || key === '' || value === '') throw new Error(METADATA);
  return { metadata: { [key]: value } };
}

const WINDOWS = ['lifetime', 'hour', 'day', 'week', 'month'] as const;

const CreateBudget = () => (
  <p>
    <Action
      label="Create a budget"
      title="Create a shared budget"
      submit="Create"
      run={async ({ name, covers, which, cost, uses, tokens, window }) =>
        presign.createBudget({
          name: name ?? null,
          scope: scopeOf(covers, which),
          cost_limit: costOf(cost),
          max_uses: usesOf(uses),
          tokens: tokensOf(tokens),
          window: WINDOWS.find((each) => each === window) ?? 'month',
        })
      }
    >
      <Field label="Name" name="name" />
      <Choice label="Covers" name="covers" value="account" options={SCOPES} />
      <Field
        label="Which"
        name="which"
        hint="The user, the id of the key on the page Keys, or metadata such as team=blue. * gives each user, or each value, a budget of its own."
      />
      <Choice
        label="Window"
        name="window"
        value="month"
        options={WINDOWS.map((each) => [each, each] as const)}
      />
      <Limits />
    </Action>
  </p>
);
