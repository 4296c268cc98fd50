import type { Input, VirtualKey } from '@presign/client';
import { useContext, useState } from 'preact/hooks';
import { presign } from '../api/api.ts';
import { useVirtualKeys } from '../api/developer-queries.ts';
import { useModels } from '../api/queries.ts';
import { count, limit, money, usedOf, writeMoney } from '../data/format/format.ts';
import { shareUsed } from '../data/shared-budget.ts';
import { Action } from '../parts/forms/action.tsx';
import { Field } from '../parts/forms/form.tsx';
import { Fullness, NotLive, When } from '../parts/page/facts.tsx';
import { hrefOf } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { costOf, usesOf } from '../parts/tables/budgets.tsx';
import { type Column, PagedTable } from '../parts/tables/table.tsx';

/** Stored provider keys, and what is left of their budgets. */
export function VirtualKeys() {
  const can = useContext(Rights);
  const keys = useVirtualKeys();
  return (
    <>
      {can('admin') && <CreateVirtualKey />}
      {keys.data?.pages.some(({ data }) => data.some(({ budget }) => budget.live === null)) && <NotLive />}
      <PagedTable
        of={keys}
        rowsOf={({ data }) => data}
        caption="Virtual keys"
        keyOf={({ id }) => id}
        empty="No virtual key yet."
        columns={can('admin') ? [...COLUMNS, CHANGE] : COLUMNS}
        isDense
      />
    </>
  );
}

type Budget = VirtualKey['budget'];

/** The figures of Redis, or those of the ledger if Redis does not answer. */
export const usedIn = ({ live, settled }: Budget) => live ?? { ...settled, held: null };

export const isLimited = ({ cost_limit: cost, max_uses: uses }: Budget): boolean =>
  cost !== null || uses !== null;

export const Full = ({ name, budget }: Pick<VirtualKey, 'name' | 'budget'>) =>
  isLimited(budget) ? (
    <Fullness of={name} used={shareUsed(budget, usedIn(budget))} most={1} />
  ) : (
    <>no limit</>
  );

const COLUMNS: readonly Column<VirtualKey>[] = [
  {
    head: 'Name',
    cell: ({ id, name, revoked_at: end }) => (
      <a href={hrefOf('keys', id)}>{end === null ? name : `${name} (deleted)`}</a>
    ),
    sort: ({ name }) => name,
  },
  { head: 'Provider', cell: ({ provider }) => provider, sort: ({ provider }) => provider },
  {
    head: 'Full',
    cell: (key) => <Full {...key} />,
    sort: ({ budget }) => -shareUsed(budget, usedIn(budget)),
  },
  {
    head: 'Spent',
    figure: true,
    cell: ({ budget }) => money(usedIn(budget).spent),
    sort: ({ budget }) => usedIn(budget).spent,
  },
  { head: 'Limit', figure: true, cell: ({ budget }) => limit(budget.cost_limit, money) },
  { head: 'Uses', figure: true, cell: ({ budget }) => usedOf(usedIn(budget).used, budget.max_uses, count) },
  { head: 'Version', figure: true, cell: ({ version }) => version },
  { head: 'Created', cell: ({ created_at: at }) => <When at={at} /> },
];

const CHANGE: Column<VirtualKey> = {
  head: 'Change',
  actions: true,
  cell: (key) => key.revoked_at === null && <VirtualKeyActions virtualKey={key} />,
};

type Of = { readonly virtualKey: VirtualKey };

export const VirtualKeyActions = ({ virtualKey }: Of) => (
  <>
    <ChangeVirtualKey virtualKey={virtualKey} />
    <RotateVirtualKey virtualKey={virtualKey} />
    <DeleteVirtualKey virtualKey={virtualKey} />
  </>
);

/** The limits over all URLs of the key. Only a shared budget can reset. */
const BudgetFields = ({ budget }: { budget?: Budget }) => (
  <>
    <Field
      label="Limit in dollars"
      name="cost"
      param="budget.cost_limit"
      value={budget?.cost_limit == null ? '' : writeMoney(budget.cost_limit)}
      hint="All its URLs share it, and it never resets. Empty: no limit."
    />
    <Field
      label="Uses"
      name="uses"
      param="budget.max_uses"
      type="number"
      value={budget?.max_uses == null ? '' : String(budget.max_uses)}
      hint="Empty: no limit."
    />
  </>
);

const ChangeVirtualKey = ({ virtualKey: { id, name, budget, revision } }: Of) => (
  <Action
    label="Change"
    of={name}
    title={`Change the virtual key ${name}`}
    submit="Save"
    run={async ({ name: next = '', cost, uses }) =>
      presign.changeVirtualKey(
        { id, name: next, budget: { cost_limit: costOf(cost), max_uses: usesOf(uses) } },
        { ifRevision: revision },
      )
    }
  >
    <Field label="Name" name="name" value={name} required />
    <BudgetFields budget={budget} />
  </Action>
);

const RotateVirtualKey = ({ virtualKey: { id, name } }: Of) => (
  <Action
    label="Rotate"
    of={name}
    title={`Rotate the provider key of ${name}`}
    submit="Rotate"
    run={async ({ key = '' }) => presign.rotateVirtualKey({ id, key })}
  >
    <Field
      label="New provider key"
      name="key"
      type="password"
      required
      hint="URLs keep working, and use it from their next call on."
    />
  </Action>
);

const DeleteVirtualKey = ({ virtualKey: { id, name } }: Of) => (
  <Action
    label="Delete"
    of={name}
    title={`Delete ${name}?`}
    submit="Delete"
    isDanger
    run={() => presign.deleteVirtualKey({ id })}
  >
    <p>All URLs of it are refused from their next call on.</p>
  </Action>
);

/** The budget of a new key. Undefined: it has none. */
function budgetOf(cost: string | undefined, uses: string | undefined): Input<'createVirtualKey'>['budget'] {
  const [costLimit, maxUses] = [costOf(cost), usesOf(uses)];
  return costLimit === null && maxUses === null
    ? undefined
    : {
        ...(costLimit !== null && { cost_limit: costLimit }),
        ...(maxUses !== null && { max_uses: maxUses }),
      };
}

const CreateVirtualKey = () => (
  <p>
    <Action
      label="Create a virtual key"
      title="Store a provider key under a name"
      submit="Create"
      run={async ({ name = '', provider = '', key = '', cost, uses }) => {
        const budget = budgetOf(cost, uses);
        return presign.createVirtualKey({ name, provider, key, ...(budget && { budget }) });
      }}
      show={({ id }) => (
        <p>
          Issue URLs with <code>{id}</code> as <code>virtual_key</code>. Its page shows it, too.
        </p>
      )}
    >
      <Field label="Name" name="name" required />
      <ProviderField />
      <Field
        label="Provider key"
        name="key"
        type="password"
        required
        hint="It is encrypted, and never shown again."
      />
      <BudgetFields />
    </Action>
  </p>
);

function ProviderField() {
  const [isEntered, setEntered] = useState(false);
  const { data: models = [] } = useModels('', isEntered);
  return (
    <Field
      label="Provider"
      name="provider"
      required
      hint="Such as openai."
      suggested={[...new Set(models.map(({ provider }) => provider))]}
      onFocus={() => setEntered(true)}
    />
  );
}
