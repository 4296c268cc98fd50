import type { ApiKey } from '@presign/client';
import { useContext } from 'preact/hooks';
import { issuerTime, presign } from '../api/api.ts';
import { useApiKeys } from '../api/developer-queries.ts';
import { count } from '../data/format/format.ts';
import { readSpan } from '../data/format/span.ts';
import { SCOPES } from '../data/scopes.ts';
import { Action, Secret } from '../parts/forms/action.tsx';
import { Field } from '../parts/forms/form.tsx';
import { Status, When } from '../parts/page/facts.tsx';
import { hrefOf } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { type Column, PagedTable } from '../parts/tables/table.tsx';
import { ChangeApiKey, RevokeApiKey, RotateApiKey } from './change-api-key.tsx';
import { PolicyEditor, policyIn, useKeyNames } from './policy-editor.tsx';
import { policyInWords } from './policy-words.ts';
import { ScopeFields } from './scope-fields.tsx';

export function ApiKeys() {
  const nameOf = useKeyNames();
  const policy: Column<ApiKey> = {
    head: 'It may issue',
    isText: true,
    cell: (key) => (issues(key) ? policyInWords(key.policy, nameOf) : '–'),
  };
  return (
    <>
      <CreateApiKey />
      <PagedTable
        of={useApiKeys()}
        rowsOf={({ data }) => data}
        caption="API keys"
        keyOf={({ id }) => id}
        columns={[...COLUMNS, policy, ...TIMES, CHANGE]}
        isDense
      />
    </>
  );
}

/** Whether a key may issue URLs at all. */
export const issues = ({ scopes }: ApiKey): boolean => scopes.includes('presign') || scopes.includes('admin');

const COLUMNS: readonly Column<ApiKey>[] = [
  { head: 'Name', cell: ({ id, name }) => <a href={hrefOf('keys', id)}>{name}</a>, sort: ({ name }) => name },
  { head: 'Key', cell: ({ hint }) => <code>{hint}</code> },
  { head: 'Status', cell: (key) => <Status of={statusOf(key)} />, sort: (key) => statusOf(key) },
  { head: 'Scopes', cell: ({ scopes }) => scopes.join(', ') },
];
const TIMES: readonly Column<ApiKey>[] = [
  {
    head: 'Last used',
    cell: ({ last_used_at: at }) => (at === null ? 'never' : <When at={at} />),
    sort: ({ last_used_at: at }) => at ?? 0,
  },
  { head: 'Ends', cell: ({ expires_at: at }) => (at === null ? 'never' : <When at={at} />) },
];
const CHANGE: Column<ApiKey> = {
  head: 'Change',
  actions: true,
  cell: (key) =>
    key.revoked_at === null && (
      <>
        <ChangeApiKey apiKey={key} />
        <RotateApiKey apiKey={key} />
        <RevokeApiKey apiKey={key} />
      </>
    ),
};

export const statusOf = ({ revoked_at: revoked, expires_at: end }: ApiKey): string =>
  revoked !== null ? 'revoked' : end !== null && end <= issuerTime() ? 'expired' : 'active';

const DAYS = ['30 days', '90 days', '365 days'];

/** @throws Error if it is not a time */
function secondsOf(text: string): number {
  const seconds = readSpan(text);
  if (seconds === undefined) throw new Error('Ends in: expected a time, such as 90 days or 12 hours.');
  return seconds;
}

function CreateApiKey() {
  const can = useContext(Rights);
  return (
    <p>
      <Action
        label="Create an API key"
        title="Create an API key"
        submit="Create"
        isWide
        run={async ({ name = '', ends, rate, ...fields }) => {
          const policy = policyIn(fields);
          return presign.createApiKey({
            name,
            scopes: SCOPES.filter((scope) => fields[scope] !== undefined),
            ...(ends !== undefined && { expires_in: secondsOf(ends) }),
            ...(rate !== undefined && { requests_per_minute: Number(rate) }),
            ...(policy !== null && { policy }),
          });
        }}
        show={({ key }) => <Secret label="The new API key" value={key} />}
      >
        <Field label="Name" name="name" required />
        <ScopeFields
          of={SCOPES.filter((scope) => scope !== 'operator' || can('operator'))}
          chosen={['presign']}
        />
        <Field label="Ends in" name="ends" param="expires_in" hint="Empty: never." suggested={DAYS} />
        <Field
          label="Requests a minute"
          name="rate"
          param="requests_per_minute"
          type="number"
          hint="Empty: as many as the operator allows."
        />
        <PolicyEditor policy={null} />
      </Action>
    </p>
  );
}

export const rateOf = ({ requests_per_minute: rate }: ApiKey): string =>
  rate === null ? "the operator's default" : count(rate);
