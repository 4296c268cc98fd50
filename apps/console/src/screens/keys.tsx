import type { ApiKey, VirtualKey } from '@presign/client';
import { useContext } from 'preact/hooks';
import { issuerTime, presign } from '../data/api.ts';
import { money, usedOf } from '../data/format.ts';
import { useApiKeys, useVirtualKeys } from '../data/queries.ts';
import { Action, Secret } from '../parts/action.tsx';
import { Page } from '../parts/answer.tsx';
import { Id, Json, NotLive, Status, When } from '../parts/facts.tsx';
import { Field } from '../parts/form.tsx';
import { href } from '../parts/place.ts';
import { Rights } from '../parts/rights.ts';
import { type Column, PagedTable } from '../parts/table.tsx';

export function Keys() {
  const can = useContext(Rights);
  const keys = useVirtualKeys();
  return (
    <Page title="Keys">
      {can('admin') && <ApiKeys />}
      <h2>Virtual keys</h2>
      {can('admin') && <CreateVirtualKey />}
      {keys.data?.pages.some(({ data }) => data.some(({ budget }) => budget.live === null)) && <NotLive />}
      <PagedTable
        of={keys}
        rowsOf={({ data }) => data}
        caption="Virtual keys"
        keyOf={({ id }) => id}
        empty="No virtual key yet."
        columns={can('admin') ? [...VIRTUAL, ROTATE] : VIRTUAL}
      />
    </Page>
  );
}

const ApiKeys = () => (
  <>
    <h2>API keys</h2>
    <CreateApiKey />
    <PagedTable
      of={useApiKeys()}
      rowsOf={({ data }) => data}
      caption="API keys"
      keyOf={({ id }) => id}
      columns={API}
    />
  </>
);

const API: readonly Column<ApiKey>[] = [
  { head: 'Name', cell: ({ id, name }) => <a href={href('urls', { api_key: id })}>{name}</a> },
  { head: 'Key', cell: ({ hint }) => <code>{hint}</code> },
  { head: 'Id', cell: ({ id }) => <Id of={id} name="id" /> },
  { head: 'Status', cell: (key) => <Status of={statusOf(key)} /> },
  { head: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
  { head: 'Policy', cell: ({ policy }) => (policy ? <Json label="Policy" of={policy} /> : 'none') },
  { head: 'Last used', cell: ({ last_used_at: at }) => <When at={at} /> },
  { head: 'Ends', cell: ({ expires_at: at }) => <When at={at} /> },
  {
    head: 'Change',
    actions: true,
    cell: (key) => key.revoked_at === null && <ChangeApiKey apiKey={key} />,
  },
];

const statusOf = ({ revoked_at: revoked, expires_at: end }: ApiKey): string =>
  revoked !== null ? 'revoked' : end !== null && end <= issuerTime() ? 'expired' : 'active';

const ChangeApiKey = ({ apiKey: { id, name, policy, revision } }: { apiKey: ApiKey }) => (
  <>
    <Action
      label="Change"
      of={name}
      title={`Change the API key ${name}`}
      submit="Save"
      run={async ({ name: next = '', policy: text }) =>
        presign.changeApiKey(
          { id, name: next, policy: text === undefined ? null : readPolicy(text) },
          { ifRevision: revision },
        )
      }
    >
      <Field label="Name" name="name" value={name} required />
      <PolicyField value={policy === null ? '' : JSON.stringify(policy)} />
    </Action>
    <Action
      label="Revoke"
      of={name}
      title={`Revoke the API key ${name}?`}
      submit="Revoke"
      isDanger
      run={() => presign.revokeApiKey({ id })}
    >
      <p>Requests with it get 401 at once. URLs that it issued go on.</p>
    </Action>
  </>
);

const PolicyField = ({ value }: { value?: string }) => (
  <Field
    label="Policy"
    name="policy"
    value={value}
    hint='JSON, such as {"providers": ["openai"]}. Empty: it may issue everything.'
  />
);

const SCOPES = ['presign', 'read', 'admin'] as const;

const CreateApiKey = () => (
  <p>
    <Action
      label="Create an API key"
      title="Create an API key"
      submit="Create"
      run={async ({ name = '', days, policy, ...scopes }) =>
        presign.createApiKey({
          name,
          scopes: SCOPES.filter((scope) => scopes[scope] !== undefined),
          ...(days !== undefined && { expires_in: Number(days) * 86_400 }),
          ...(policy !== undefined && { policy: readPolicy(policy) }),
        })
      }
      show={({ key }) => <Secret label="The new API key" value={key} />}
    >
      <Field label="Name" name="name" required />
      <fieldset>
        <legend>Scopes</legend>
        {SCOPES.map((scope) => (
          <label key={scope}>
            <input type="checkbox" name={scope} defaultChecked={scope === 'presign'} /> {scope}
          </label>
        ))}
      </fieldset>
      <Field label="Days" name="days" type="number" hint="Empty: no end." />
      <PolicyField />
    </Action>
  </p>
);

function readPolicy(text: string): object {
  try {
    return JSON.parse(text) as object;
  } catch {
    throw new Error('Policy: expected JSON.');
  }
}

const VIRTUAL: readonly Column<VirtualKey>[] = [
  { head: 'Name', cell: ({ name, revoked_at: end }) => (end === null ? name : `${name} (deleted)`) },
  { head: 'Id', cell: ({ id }) => <Id of={id} name="id" /> },
  { head: 'Provider', cell: ({ provider }) => provider },
  { head: 'Version', figure: true, cell: ({ version }) => version },
  {
    head: 'Spent',
    figure: true,
    cell: ({ budget }) => usedOf((budget.live ?? budget.settled).spent, budget.cost_limit, money),
  },
  { head: 'Created', cell: ({ created_at: at }) => <When at={at} /> },
];

const ROTATE: Column<VirtualKey> = {
  head: 'Change',
  actions: true,
  cell: (key) => key.revoked_at === null && <ChangeVirtualKey virtualKey={key} />,
};

const ChangeVirtualKey = ({ virtualKey: { id, name } }: { virtualKey: VirtualKey }) => (
  <>
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
  </>
);

const CreateVirtualKey = () => (
  <p>
    <Action
      label="Create a virtual key"
      title="Store a provider key under a name"
      submit="Create"
      run={async ({ name = '', provider = '', key = '' }) =>
        presign.createVirtualKey({ name, provider, key })
      }
      show={({ id }) => (
        <p>
          Issue URLs with <code>{id}</code> as <code>virtual_key</code>. The list shows it, too.
        </p>
      )}
    >
      <Field label="Name" name="name" required />
      <Field label="Provider" name="provider" required hint="Such as openai." />
      <Field
        label="Provider key"
        name="key"
        type="password"
        required
        hint="It is encrypted, and never shown again."
      />
    </Action>
  </p>
);
