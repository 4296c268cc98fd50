import type { Alert, AlertFiring } from '@presign/client';
import { presign } from '../api/api.ts';
import { useWebhooks } from '../api/developer-queries.ts';
import { useAlert, useAlerts, useFirings } from '../api/queries.ts';
import { conditionOf, figureOf, inWords, SUGGESTED } from '../data/alerts.ts';
import { Action } from '../parts/forms/action.tsx';
import { AlertFields, nameOfWebhook } from '../parts/forms/alert-form.tsx';
import { Field } from '../parts/forms/form.tsx';
import { Answer, Page } from '../parts/page/answer.tsx';
import { Facts, Id, Status, useName, useZone, When } from '../parts/page/facts.tsx';
import { href, hrefOf } from '../parts/page/place.ts';
import { type Column, PagedTable } from '../parts/tables/table.tsx';

/** Alerts with their state. Without an alert, it suggests three. */
export function Alerts() {
  const alerts = useAlerts();
  const isEmpty = alerts.data?.pages.every(({ data }) => data.length === 0);
  return (
    <Page title="Alerts">
      <p class="buttons">
        <CreateAlert label="Create an alert" alert={{ ...FIRST, name: '' }} />
        <ConnectSlack />
      </p>
      {isEmpty ? (
        <Suggestions />
      ) : (
        <PagedTable
          of={alerts}
          rowsOf={({ data }) => data}
          caption="Alerts"
          keyOf={({ id }) => id}
          columns={ALERTS}
        />
      )}
    </Page>
  );
}

/** One alert, and when it fired. */
export function AlertPage({ id }: { id: string }) {
  const alert = useAlert(id);
  return (
    <Page title={alert.data?.name ?? 'Alert'}>
      <Answer of={alert}>
        {(each) => (
          <>
            <Facts
              of={[
                ['Fires when', <Condition key="when" of={each} />],
                ['State', <State key="state" of={each} />],
                ['Last figure', figureOf(each, each.value)],
                ['Fires at', figureOf(each, each.threshold)],
                ['Sent to', <SentTo key="to" id={each.webhook} />],
                ['Checked', <When key="checked" at={each.checked_at} />],
                ['Id', <Id key="id" of={each.id} name="alert id" />],
              ]}
            />
            <p class="buttons">
              <ChangeAlert alert={each} />
              {each.webhook !== null && <SendTest alert={each} />}
              <Mute alert={each} />
              <DeleteAlert alert={each} />
            </p>
            <h2>Firings</h2>
            <Firings alert={each} />
          </>
        )}
      </Answer>
    </Page>
  );
}

const [FIRST = { name: '', condition: {} }] = SUGGESTED;

const Suggestions = () => (
  <>
    <p>No alert yet. Three to begin with, which you can adapt first:</p>
    <ul class="suggested">
      {SUGGESTED.map((alert) => (
        <li key={alert.name}>
          <strong>{alert.name}</strong>
          <p class="soft">{inWords(alert.condition, () => '')}.</p>
          <CreateAlert label="Create" of={alert.name} alert={alert} />
        </li>
      ))}
    </ul>
  </>
);

type CreateProps = {
  readonly label: string;
  readonly of?: string;
  readonly alert: Pick<Alert, 'name' | 'condition'>;
};

function CreateAlert({ alert, ...button }: CreateProps) {
  const zone = useZone();
  return (
    <Action
      {...button}
      title="Create an alert"
      submit="Create"
      run={async ({ name = '', webhook = null, ...fields }) =>
        presign.createAlert({ name, webhook, condition: conditionOf(fields, zone) })
      }
    >
      <AlertFields alert={alert} />
    </Action>
  );
}

const ConnectSlack = () => (
  <Action
    label="Connect Slack"
    title="Connect a channel of Slack"
    submit="Connect"
    run={async ({ url = '', description = null }) =>
      presign.createWebhook({ format: 'slack', url, description })
    }
  >
    <Field
      label="URL of an incoming webhook"
      name="url"
      type="url"
      required
      hint="It begins with hooks.slack.com. It is a secret: Presign encrypts it, and does not show it again."
    />
    <Field label="Description" name="description" placeholder="#ops" />
  </Action>
);

function Condition({ of }: { of: Alert }) {
  const budget = useName('budget', of.condition.budget?.budget ?? null);
  return <>{inWords(of.condition, () => budget)}</>;
}

const State = ({ of: { enabled, firing_since: at, checked_at: checked } }: { of: Alert }) => {
  if (!enabled) return <Status of="muted" />;
  if (at === null) return <Status of={checked === null ? 'not checked yet' : 'quiet'} />;
  return (
    <>
      <Status of="firing" />
      <div class="since">
        since <When at={at} />
      </div>
    </>
  );
};

function SentTo({ id }: { id: string | null }) {
  const { data } = useWebhooks();
  if (id === null) return <span class="soft">no endpoint</span>;
  const endpoint = data?.pages.flatMap((page) => page.data).find((each) => each.id === id);
  return <a href={hrefOf('webhooks', id)}>{endpoint ? nameOfWebhook(endpoint) : 'an endpoint'}</a>;
}

const ALERTS: readonly Column<Alert>[] = [
  {
    head: 'Alert',
    cell: (alert) => (
      <>
        <a href={hrefOf('alerts', alert.id)}>{alert.name}</a>
        <div class="soft condition">
          <Condition of={alert} />
        </div>
      </>
    ),
    sort: ({ name }) => name,
  },
  {
    head: 'State',
    cell: (alert) => (
      <>
        <State of={alert} />
        {alert.value !== null && (
          <div class="soft">
            {figureOf(alert, alert.value)} of {figureOf(alert, alert.threshold)}
          </div>
        )}
      </>
    ),
  },
  { head: 'Sent to', cell: ({ webhook }) => <SentTo id={webhook} /> },
  {
    head: 'Change',
    actions: true,
    cell: (alert) => (
      <>
        <ChangeAlert alert={alert} />
        <Mute alert={alert} />
      </>
    ),
  },
];

function ChangeAlert({ alert }: { alert: Alert }) {
  const { id, name, revision } = alert;
  const zone = useZone();
  return (
    <Action
      label="Change"
      of={name}
      title={`Change ${name}`}
      submit="Save"
      run={async ({ name: next = '', webhook = null, ...fields }) =>
        presign.changeAlert(
          { id, name: next, webhook, condition: conditionOf(fields, zoneOf(alert) ?? zone) },
          { ifRevision: revision },
        )
      }
    >
      <AlertFields alert={alert} />
    </Action>
  );
}

const Mute = ({ alert: { id, name, enabled } }: { alert: Alert }) => {
  const verb = enabled ? 'Mute' : 'Unmute';
  return (
    <Action
      label={verb}
      of={name}
      title={`${verb} ${name}?`}
      submit={verb}
      run={() => presign.changeAlert({ id, enabled: !enabled })}
    />
  );
};

const SendTest = ({ alert: { id, name } }: { alert: Alert }) => (
  <Action
    label="Send a test"
    of={name}
    title={`Send a test of ${name}`}
    submit="Send"
    run={() => presign.testAlert({ id })}
  />
);

const DeleteAlert = ({ alert: { id, name } }: { alert: Alert }) => (
  <Action
    label="Delete"
    of={name}
    title={`Delete ${name} with its history?`}
    submit="Delete"
    isDanger
    run={async () => {
      await presign.deleteAlert({ id });
      location.hash = href('alerts');
    }}
  />
);

/** A change keeps the zone of the days. */
const zoneOf = ({ condition: { spend, spend_jump: jump } }: Alert) => (spend ?? jump)?.time_zone;

const Firings = ({ alert }: { alert: Alert }) => (
  <PagedTable
    of={useFirings(alert.id)}
    rowsOf={({ data }) => data}
    caption="Firings"
    keyOf={({ id }) => id}
    empty="It has not fired in the last 30 days."
    columns={firings(alert)}
    isDense
  />
);

const firings = (alert: Alert): readonly Column<AlertFiring>[] => [
  { head: 'Fired', cell: ({ fired_at: at }) => <When at={at} /> },
  { head: 'Resolved', cell: ({ resolved_at: at }) => <When at={at} /> },
  { head: 'Figure', figure: true, cell: ({ value }) => figureOf(alert, value) },
  { head: 'Fired at', figure: true, cell: ({ threshold }) => figureOf(alert, threshold) },
  { head: 'Window from', cell: ({ starts_at: at }) => <When at={at} /> },
  {
    head: 'Delivery',
    cell: ({ delivery }) =>
      delivery === null ? '–' : <Status of={delivery.last_error ?? delivery.status} />,
  },
];
