import type { VirtualKey } from '@presign/client';
import { useContext } from 'preact/hooks';
import { presign } from '../api/api.ts';
import { useVirtualKey } from '../api/developer-queries.ts';
import { useBudgets } from '../api/queries.ts';
import { count, limit, money, usedOf } from '../data/format/format.ts';
import { Action } from '../parts/forms/action.tsx';
import { Choice, Field } from '../parts/forms/form.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Facts, Id, Json, NotLive, Status, When } from '../parts/page/facts.tsx';
import { href } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { BudgetTable, costOf, LimitFields, tokensOf, usesOf } from '../parts/tables/budgets.tsx';
import { Full, usedIn, VirtualKeyActions } from './virtual-keys.tsx';

/** Shows one virtual key: its own limits, and the shared budgets of its URLs, which can reset. */
export function VirtualKeyPage({ id }: { id: string }) {
  const can = useContext(Rights);
  const found = useVirtualKey(id);
  return (
    <Page title={found.data?.name ?? 'Virtual key'}>
      <Answer of={found}>
        {(key) => (
          <>
            {key.budget.live === null && <NotLive />}
            <Figures of={key} />
            {can('admin') && key.revoked_at === null && (
              <p class="buttons">
                <VirtualKeyActions virtualKey={key} />
              </p>
            )}
            {key.config && <Json label="Settings of each call" of={key.config} />}
            <h2>Budgets that reset</h2>
            {can('admin') && key.revoked_at === null && <CreateBudget of={key} />}
            <Budgets id={id} />
            <p class="links">
              <a href={href('requests', { virtual_key: id })}>Requests</a>
              <a href={href('explore', { virtual_key: id })}>Spending</a>
              <a href={href('audit', { target_kind: 'virtual_key', target_id: id })}>Changes of it</a>
            </p>
          </>
        )}
      </Answer>
    </Page>
  );
}

const Figures = ({ of: { id, name, provider, budget, version, ...key } }: { of: VirtualKey }) => (
  <Facts
    of={[
      ['Status', <Status key="status" of={key.revoked_at === null ? 'active' : 'deleted'} />],
      ['Provider', provider],
      ['Full', <Full key="full" name={name} budget={budget} />],
      ['Spent', money(usedIn(budget).spent)],
      ['Limit', limit(budget.cost_limit, money)],
      ['Held', money(usedIn(budget).held)],
      ['Uses', usedOf(usedIn(budget).used, budget.max_uses, count)],
      ['Version of the provider key', count(version)],
      ['Created', <When key="created" at={key.created_at} />],
      ['Value of virtual_key', <Id key="id" of={id} name="virtual key id" />],
    ]}
  />
);

/** The shared budgets that cover the key. */
const Budgets = ({ id }: { id: string }) => (
  <BudgetTable
    of={useBudgets()}
    empty="No shared budget is for this key alone."
    isShown={({ scope, deleted_at: end }) => scope.virtual_key === id && end === null}
  />
);

const WINDOWS = ['hour', 'day', 'week', 'month', 'lifetime'] as const;
const WINDOW_OPTIONS = WINDOWS.map((each) => [each, each === 'lifetime' ? 'never' : each] as const);

const CreateBudget = ({ of: { id, name } }: { of: VirtualKey }) => (
  <p>
    <Action
      label="Create a budget"
      title={`Create a shared budget for ${name}`}
      submit="Create"
      run={async ({ window, cost, uses, tokens, name: own }) =>
        presign.createBudget({
          name: own ?? null,
          scope: { virtual_key: id },
          cost_limit: costOf(cost),
          max_uses: usesOf(uses),
          tokens: tokensOf(tokens),
          window: WINDOWS.find((each) => each === window) ?? 'month',
        })
      }
    >
      <Field label="Name" name="name" value={name} />
      <Choice label="Resets every" name="window" value="month" options={WINDOW_OPTIONS} />
      <LimitFields />
    </Action>
  </p>
);
