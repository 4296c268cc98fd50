import type { Account, AccountLimitsChange, AccountUsage, ListedAccount } from '@presign/client';
import type { ComponentChildren } from 'preact';
import { presign } from '../api/api.ts';
import { useAccounts } from '../api/queries.ts';
import { count, limit, money, readMoney, writeMoney } from '../data/format/format.ts';
import { Action, Secret } from '../parts/forms/action.tsx';
import { Field } from '../parts/forms/form.tsx';
import { Page } from '../parts/page/answer.tsx';
import { Id, Status, When } from '../parts/page/facts.tsx';
import { type Column, PagedTable } from '../parts/tables/table.tsx';

/** All accounts of the service, for its operator: what each spends, and what stops it. */
export const Accounts = () => (
  <Page title="Accounts">
    <p class="soft">
      Months are those of UTC. You see sums of an account, and neither its users nor its calls.
    </p>
    <CreateAccount />
    <PagedTable
      of={useAccounts()}
      rowsOf={({ data }) => data}
      caption="Accounts"
      keyOf={({ id }) => id}
      columns={COLUMNS}
      isDense
    />
  </Page>
);

const statusOf = ({ suspended_at: suspended, deleted_at: deleted }: Account): string =>
  deleted !== null ? 'deleted' : suspended !== null ? 'suspended' : 'active';

/** A figure of each account's usage. */
const usage = (head: string, show: (usage: AccountUsage) => ComponentChildren): Column<ListedAccount> => ({
  head,
  figure: true,
  cell: ({ usage }) => (usage ? show(usage) : 'not known'),
});

/** The most live URLs that the API counts. */
const MOST_URLS = 10_000;

const LIMITS = [
  ['api_keys', 'API keys', count],
  ['sessions', 'sessions', count],
  ['urls_per_minute', 'URLs a minute', count],
  ['cost_limit', 'a URL', money],
] as const;

const COLUMNS: readonly Column<ListedAccount>[] = [
  { head: 'Account', cell: ({ name }) => name, sort: ({ name }) => name },
  { head: 'Status', cell: (account) => <Status of={statusOf(account)} />, sort: statusOf },
  usage('This month', ({ this_month: month }) => money(month.cost)),
  usage('Last month', ({ last_month: month }) => money(month?.cost)),
  usage('Calls this month', ({ this_month: month }) => count(month.calls)),
  usage('Live URLs', ({ live_urls: urls }) =>
    urls < MOST_URLS ? count(urls) : `${count(MOST_URLS)} or more`,
  ),
  usage('API keys', ({ live_api_keys: keys }) => count(keys)),
  {
    head: 'Last call',
    cell: ({ usage }) => (usage ? <When at={usage.last_call_at} /> : 'not known'),
  },
  { head: 'Limits', cell: ({ limits }) => limitsInWords(limits) },
  { head: 'Created', cell: ({ created_at: at }) => <When at={at} />, sort: ({ created_at: at }) => at },
  { head: 'Id', cell: ({ id }) => <Id of={id} name="account id" /> },
  {
    head: 'Change',
    actions: true,
    cell: (account) => account.deleted_at === null && <ChangeAccount account={account} />,
  },
];

function limitsInWords(limits: Account['limits']): string {
  const words = LIMITS.flatMap(([name, unit, show]) =>
    limits[name] === null ? [] : [`${limit(limits[name], show)} ${unit}`],
  );
  return words.length === 0 ? 'none' : words.join(', ');
}

const LimitFields = ({ limits }: { limits?: Account['limits'] }) => (
  <>
    {LIMITS.map(([name, unit]) => {
      const value = limits?.[name] ?? null;
      const isMoney = name === 'cost_limit';
      return (
        <Field
          key={name}
          label={isMoney ? 'Dollars of a URL at most' : `Most ${unit}`}
          name={name}
          param={`limits.${name}`}
          type={isMoney ? 'text' : 'number'}
          value={value === null ? '' : isMoney ? writeMoney(value) : String(value)}
          hint={isMoney ? 'Each URL must then have a limit. Empty: none.' : 'Empty: no limit.'}
        />
      );
    })}
  </>
);

/** The limits of a form. An empty field is no limit. */
function limitsIn(fields: Readonly<Record<string, string>>): AccountLimitsChange {
  const cost = fields['cost_limit'] === undefined ? null : readMoney(fields['cost_limit']);
  if (cost === undefined) throw new Error('Dollars of a URL: expected an amount, such as 25 or 0.50.');
  const whole = (text: string | undefined) => (text === undefined ? null : Number(text));
  return {
    api_keys: whole(fields['api_keys']),
    sessions: whole(fields['sessions']),
    urls_per_minute: whole(fields['urls_per_minute']),
    cost_limit: cost,
  };
}

const CreateAccount = () => (
  <p>
    <Action
      label="Create an account"
      title="Create an account"
      submit="Create"
      run={async ({ name = '', ...fields }) => presign.createAccount({ name, limits: limitsIn(fields) })}
      show={({ api_key: { key } }) => <Secret label="Its first API key, with the scope admin" value={key} />}
    >
      <Field label="Name" name="name" required />
      <LimitFields />
    </Action>
  </p>
);

const ChangeAccount = ({ account }: { account: Account }) => {
  const { id, name, limits, revision, suspended_at: suspended } = account;
  return (
    <>
      <Action
        label="Change"
        of={name}
        title={`Change ${name}`}
        submit="Save"
        run={async ({ name: next = '', ...fields }) =>
          presign.changeAccount({ id, name: next, limits: limitsIn(fields) }, { ifRevision: revision })
        }
      >
        <Field label="Name" name="name" value={name} required />
        <LimitFields limits={limits} />
        <p class="soft">Its next request obeys the limits. Keys, sessions and URLs that it has stay.</p>
      </Action>
      {suspended === null ? (
        <Action
          label="Suspend"
          of={name}
          title={`Suspend ${name}?`}
          submit="Suspend"
          isDanger
          run={() => presign.suspendAccount({ id })}
        >
          <p>
            Every gateway refuses the calls of all its URLs, and cuts calls under way within a second. The
            issuer refuses its API keys. Nothing is deleted: it can resume.
          </p>
        </Action>
      ) : (
        <Action
          label="Resume"
          of={name}
          title={`Resume ${name}?`}
          submit="Resume"
          run={() => presign.resumeAccount({ id })}
        >
          <p>Its API keys work again, and so do its URLs that have not expired, with what they had left.</p>
        </Action>
      )}
      <DeleteAccount account={account} />
    </>
  );
};

const DeleteAccount = ({ account: { id, name } }: { account: Account }) => (
  <Action
    label="Delete"
    of={name}
    title={`Delete ${name}?`}
    submit="Delete"
    isDanger
    run={async ({ typed }) => {
      if (typed !== name) throw new Error(`Name: expected ${name}.`);
      return presign.deleteAccount({ id });
    }}
  >
    <p>
      It is suspended for good. The provider keys of its virtual keys are erased at once. Its usage and its
      calls stay, so that you can bill it.
    </p>
    <Field label={`Type ${name} to delete it`} name="typed" required />
  </Action>
);
