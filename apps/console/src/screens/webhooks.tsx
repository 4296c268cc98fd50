import type { Delivery, Webhook } from '@presign/client';
import { presign } from '../api/api.ts';
import { useDeliveries, useWebhook, useWebhooks } from '../api/developer-queries.ts';
import { deliveryInWords, disabledInWords } from '../data/delivery-words.ts';
import { count, short } from '../data/format/format.ts';
import { EVENTS, eventsInWords, eventsOf } from '../data/webhook-events.ts';
import { Action, Secret } from '../parts/forms/action.tsx';
import { Choice, Field, FilterForm } from '../parts/forms/form.tsx';
import { Page } from '../parts/page/answer.tsx';
import { Facts, Status, When } from '../parts/page/facts.tsx';
import { href, hrefOf, type Place } from '../parts/page/place.ts';
import { type Column, PagedTable } from '../parts/tables/table.tsx';

export const Webhooks = () => (
  <Page title="Webhooks">
    <p>
      <Action
        label="Add a webhook"
        title="Add a webhook"
        submit="Add"
        run={async ({ url = '', description, ...fields }) =>
          presign.createWebhook({ url, description, events: eventsOf(fields) })
        }
        show={({ secret }) => <Secret label="The secret that signs its events" value={secret ?? ''} />}
      >
        <WebhookFields />
      </Action>
    </p>
    <PagedTable
      of={useWebhooks()}
      rowsOf={({ data }) => data}
      caption="Webhooks"
      keyOf={({ id }) => id}
      empty="No webhook yet."
      columns={WEBHOOKS}
      isDense
    />
  </Page>
);

/** The fields that the owner of an endpoint chooses. */
const WebhookFields = ({ webhook }: { webhook?: Webhook }) => (
  <>
    {isSlack(webhook) ? (
      <Field label="New URL" name="url" type="url" hint="Empty: it stays. The present one is a secret." />
    ) : (
      <Field label="URL" name="url" type="url" required value={webhook?.url} />
    )}
    <Field label="Description" name="description" value={webhook?.description ?? ''} />
    {!isSlack(webhook) && <EventFields webhook={webhook} />}
  </>
);

/** It gets only the messages of alerts, and its URL is a secret. */
const isSlack = (webhook: Webhook | undefined): boolean => webhook?.format === 'slack';

const EventFields = ({ webhook }: { webhook: Webhook | undefined }) => (
  <fieldset>
    <legend>Events</legend>
    <p class="soft">Choose none to send all of them except audit.entry.</p>
    {EVENTS.map((type) => (
      <label key={type}>
        <input type="checkbox" name={type} defaultChecked={webhook?.events?.includes(type) ?? false} /> {type}
      </label>
    ))}
    <label>
      <input type="checkbox" name="alerts_alone" defaultChecked={webhook?.events?.length === 0} /> only alerts
      that name it
    </label>
  </fieldset>
);

const WEBHOOKS: readonly Column<Webhook>[] = [
  {
    head: 'URL',
    isText: true,
    cell: ({ id, url, description }) => (
      <>
        <a href={hrefOf('webhooks', id)}>{url}</a>
        {description !== null && <div class="soft">{description}</div>}
      </>
    ),
  },
  { head: 'Status', cell: (webhook) => <State of={webhook} /> },
  { head: 'Events', isText: true, cell: eventsInWords },
  { head: 'Failing since', cell: ({ failing_since: at }) => <When at={at} /> },
  { head: 'Change', actions: true, cell: (webhook) => <ChangeWebhook webhook={webhook} /> },
];

const State = ({ of }: { of: Webhook }) => (
  <>
    <Status of={of.status} />
    {of.status === 'disabled' && <div class="soft">{disabledInWords(of)}</div>}
  </>
);

const ChangeWebhook = ({ webhook }: { webhook: Webhook }) => {
  const { id, url, status, revision, previous_secret_expires_at: until } = webhook;
  return (
    <>
      <Action
        label="Change"
        of={url}
        title={`Change ${url}`}
        submit="Save"
        run={async ({ url: next, description = null, ...fields }) => {
          const change = {
            ...{ id, description },
            ...(next !== undefined && { url: next }),
            ...(!isSlack(webhook) && { events: eventsOf(fields) ?? null }),
          };
          return presign.changeWebhook(change, { ifRevision: revision });
        }}
      >
        <WebhookFields webhook={webhook} />
      </Action>
      {!isSlack(webhook) && (
        <Action
          label="Rotate"
          of={url}
          title={`Give ${url} a new secret`}
          submit="Rotate"
          run={() => presign.rotateWebhookSecret({ id })}
          show={({ secret }) => <Secret label="The new secret that signs its events" value={secret ?? ''} />}
        >
          <p>
            Both secrets sign for 24 hours. If the present one has leaked, rotate twice: then it stops at
            once.
          </p>
          {until !== null && (
            <p>
              An older secret signs until <When at={until} />. It stops now.
            </p>
          )}
        </Action>
      )}
      <Action
        label="Send a test"
        of={url}
        title={`Send a test event to ${url}`}
        submit="Send"
        run={() => presign.testWebhook({ id })}
      />
      {status === 'disabled' && (
        <Action
          label="Enable"
          of={url}
          title={`Enable ${url}`}
          submit="Enable"
          run={() => presign.enableWebhook({ id })}
        />
      )}
      <Action
        label="Delete"
        of={url}
        title={`Delete ${url}?`}
        submit="Delete"
        isDanger
        run={() => presign.deleteWebhook({ id })}
      />
    </>
  );
};

/** One endpoint and what was sent to it. */
export function Deliveries({ id, params }: { id: string; params: Place['params'] }) {
  const { data: webhook } = useWebhook(id);
  return (
    <Page title={webhook ? `Webhook ${new URL(webhook.url).host}` : `Webhook ${short(id)}`}>
      {webhook && <Endpoint of={webhook} />}
      <h2>Deliveries</h2>
      <FilterForm path={`webhooks/${id}`}>
        <Choice label="Status" name="status" value={params.status} options={STATUSES} />
      </FilterForm>
      <PagedTable
        of={useDeliveries(id, params)}
        rowsOf={({ data }) => data}
        caption="Deliveries"
        keyOf={(delivery) => delivery.id}
        empty="No delivery fits. They are kept for 30 days."
        columns={[
          ...DELIVERIES,
          { head: 'Again', actions: true, cell: (delivery) => <Replay webhook={id} delivery={delivery} /> },
        ]}
        isDense
      />
    </Page>
  );
}

const Endpoint = ({ of }: { of: Webhook }) => (
  <>
    <Facts
      of={[
        ['URL', of.url],
        ['Status', <State key="status" of={of} />],
        ['Events', eventsInWords(of)],
        ['Failing since', <When key="failing" at={of.failing_since} />],
        ['An older secret signs until', <When key="older" at={of.previous_secret_expires_at} />],
      ]}
    />
    <p class="buttons">
      <ChangeWebhook webhook={of} />
    </p>
    <p class="links">
      <a href={href('audit', { target_kind: 'webhook', target_id: of.id })}>Changes of it</a>
    </p>
  </>
);

const STATUSES = [
  ['', 'all'],
  ['pending', 'on the way'],
  ['delivered', 'delivered'],
  ['failed', 'given up'],
] as const;

const DELIVERIES: readonly Column<Delivery>[] = [
  { head: 'Event', cell: ({ type }) => type },
  { head: 'Status', cell: ({ status }) => <Status of={status} /> },
  { head: 'What happened', isText: true, cell: deliveryInWords },
  { head: 'Attempts', figure: true, cell: ({ attempts }) => count(attempts) },
  { head: 'Created', cell: ({ created_at: at }) => <When at={at} /> },
  { head: 'Next try', cell: ({ next_try_at: at }) => <When at={at} /> },
];

const Replay = ({ webhook, delivery: { id, type } }: { webhook: string; delivery: Delivery }) => (
  <Action
    label="Replay"
    of={`${type} ${short(id)}`}
    title={`Send this ${type} again?`}
    submit="Replay"
    run={() => presign.replayDelivery({ id: webhook, delivery_id: id })}
  />
);
