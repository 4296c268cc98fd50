import type { Input, SharedBudget } from '@presign/client';
import { useQueryClient } from '@tanstack/preact-query';
import { useContext, useState } from 'preact/hooks';
import { presign } from '../api/api.ts';
import { type Names, namesOf, useNames, useUsers } from '../api/names.ts';
import { useBudget, useBudgets } from '../api/queries.ts';
import { count, limit, money } from '../data/format/format.ts';
import { idOfKey } from '../data/format/named-key.ts';
import { figuresOf, nameOf, shareOf } from '../data/shared-budget.ts';
import { BurnDown } from '../parts/charts/burn-down.tsx';
import { Action } from '../parts/forms/action.tsx';
import { Choice, Field, FilterForm } from '../parts/forms/form.tsx';
import { PickUser } from '../parts/forms/pick.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Facts, Fullness, Id, NotLive, When } from '../parts/page/facts.tsx';
import type { Place } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import {
  BudgetTable,
  ChangeBudget,
  Covers,
  costOf,
  Empty,
  LimitFields,
  tokensOf,
  usesOf,
} from '../parts/tables/budgets.tsx';

/** Shared budgets, the fullest first. Deleted ones stand apart. */
export function BudgetsPage({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const budgets = useBudgets(params);
  const isDeleted = (budget: SharedBudget) => budget.deleted_at !== null;
  return (
    <Page title="Limits">
      <FilterForm path="limits">
        <PickUser value={params.external_user} />
      </FilterForm>
      {can('admin') && <CreateBudget />}
      <BudgetTable of={budgets} empty="No shared budget yet." />
      {budgets.data?.rows.some(isDeleted) && (
        <>
          <h2>Deleted</h2>
          <BudgetTable of={budgets} empty="" isShown={isDeleted} caption="Deleted budgets" />
        </>
      )}
    </Page>
  );
}

/** One budget, as a refusal names it. */
export function BudgetPage({ id }: { id: string }) {
  const can = useContext(Rights);
  const budget = useBudget(id);
  return (
    <Page title={budget.data ? nameOf(budget.data) : 'Budget'}>
      <Answer of={budget}>
        {(each) => (
          <>
            {each.current?.live === null && <NotLive />}
            <Facts
              of={[
                ['Draws on it', <Covers key="covers" scope={each.scope} />],
                ['Spent', money(figuresOf(each).spent)],
                ['Limit', limit(each.cost_limit, money)],
                ['Held', money(each.current?.live?.held)],
                ['Uses', count(figuresOf(each).used)],
                ['Full', <Fullness key="full" of={nameOf(each)} used={shareOf(each)} most={1} />],
                ['At this pace', <Empty key="empty" budget={each} />],
                ['Window', each.window],
                ['Resets', <When key="resets" at={each.current?.ends_at ?? null} />],
                ['Id', <Id key="id" of={each.id} name="budget id" />],
              ]}
            />
            {can('admin') && each.deleted_at === null && (
              <p class="buttons">
                <ChangeBudget budget={each} />
              </p>
            )}
            <BurnDown budget={each} />
          </>
        )}
      </Answer>
    </Page>
  );
}

const SCOPES = [
  ['account', 'all URLs of the account'],
  ['external_user', 'URLs of a user'],
  ['api_key', 'URLs that an API key issues'],
  ['virtual_key', 'URLs of a virtual key'],
  ['metadata', 'URLs with metadata'],
] as const;

const KEYS = { api_key: 'API key', virtual_key: 'virtual key' } as const;

const METADATA = 'Which: expected a key and a value of metadata, such as team=blue.';

type Keys = Names['keys'];

/** @param which the value of the scope; a key by its id or its name */
async function scopeOf(
  covers: string | undefined,
  which: string | undefined,
  readKeys: () => Promise<Keys>,
): Promise<Input<'createBudget'>['scope']> {
  const scope = SCOPES.find(([each]) => each === covers)?.[0] ?? 'account';
  if (scope === 'account') {
    if (which !== undefined)
      throw new Error('Which: leave this empty for a budget of all URLs of the account.');
    return { account: true };
  }
  if (which === undefined)
    throw new Error('Which: expected a user, an id, or a key and a value of metadata.');
  if (scope === 'api_key' || scope === 'virtual_key')
    return { [scope]: idOfKey(which, KEYS[scope], (await readKeys())[scope]) };
  if (scope === 'external_user') return { external_user: which };
  const at = which.indexOf('=');
  const [key, value] = [which.slice(0, at).trim(), which.slice(at + 1).trim()];
  if (at < 0 || key === '' || value === '') throw new Error(METADATA);
  return { metadata: { [key]: value } };
}

const WINDOWS = ['lifetime', 'hour', 'day', 'week', 'month'] as const;

function CreateBudget() {
  const client = useQueryClient();
  const readKeys = async () => (await client.fetchQuery(namesOf(true))).keys;
  return (
    <p>
      <Action
        label="Create a budget"
        title="Create a shared budget"
        submit="Create"
        run={async ({ name, covers, which, cost, uses, tokens, window }) =>
          presign.createBudget({
            name: name ?? null,
            scope: await scopeOf(covers, which, readKeys),
            cost_limit: costOf(cost),
            max_uses: usesOf(uses),
            tokens: tokensOf(tokens),
            window: WINDOWS.find((each) => each === window) ?? 'month',
          })
        }
      >
        <Field label="Name" name="name" />
        <Choice label="Covers" name="covers" value="account" options={SCOPES} />
        <Which />
        <Choice
          label="Window"
          name="window"
          value="month"
          options={WINDOWS.map((each) => [each, each] as const)}
        />
        <LimitFields />
      </Action>
    </p>
  );
}

/** The field for the subject of a budget. Its suggestions follow the typed text, while the rest of the dialog is unchanged. */
function Which() {
  const [typed, setTyped] = useState('');
  const users = useUsers(typed);
  const { data: names } = useNames(true);
  const keys = [...(names?.keys.api_key ?? []), ...(names?.keys.virtual_key ?? [])];
  const inForce = keys.filter(({ revoked_at: end }) => end === null);
  return (
    <Field
      label="Which"
      name="which"
      suggested={[...new Set([...users, ...inForce.map(({ name }) => name)])]}
      onTyped={setTyped}
      hint="The user, the key, or metadata such as team=blue. * gives each user, or each value, a budget of its own."
    />
  );
}
