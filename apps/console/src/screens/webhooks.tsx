import type { Delivery, Webhook } from '@presign/client';
import { presign } from '../data/api.ts';
import { count, short } from '../data/format.ts';
import { useDeliveries, useWebhooks } from '../data/queries.ts';
import { Action, Secret } from '../parts/action.tsx';
import { Page } from '../parts/answer.tsx';
import { Status, When } from '../parts/facts.tsx';
import { Field } from '../parts/form.tsx';
import { type Column, PagedTable } from '../parts/table.tsx';
import { href } from '../place.ts';

export const Webhooks = () => (
  <Page title="Webhooks">
    <p>
      <Action
        label="Add a webhook"
        title="Add a webhook"
        submit="Add"
        run={async ({ url = '', description }) =>
          presign.createWebhook({ url, ...(description !== undefined && { description }) })
        }
        show={({ secret }) => <Secret label="The secret that signs its events" value={secret} />}
      >
        <Field
          label="URL"
          name="url"
          type="url"
          required
          hint="It gets all events. Choose events with the API."
        />
        <Field label="Description" name="description" />
      </Action>
    </p>
    <PagedTable
      of={useWebhooks()}
      rowsOf={({ data }) => data}
      caption="Webhooks"
      keyOf={({ id }) => id}
      empty="No webhook yet."
      columns={WEBHOOKS}
    />
  </Page>
);

const WEBHOOKS: readonly Column<Webhook>[] = [
  { head: 'URL', cell: ({ id, url }) => <a href={href(`webhooks/${id}`)}>{url}</a> },
  { head: 'Status', cell: ({ status }) => <Status of={status} /> },
  { head: 'Events', cell: ({ events }) => events?.join(', ') ?? 'all' },
  { head: 'Failing since', cell: ({ failing_since: at }) => <When at={at} /> },
  {
    head: 'Change',
    cell: ({ id, url, status }) => (
      <>
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
    ),
  },
];

export const Deliveries = ({ id }: { id: string }) => (
  <Page title={`Deliveries of webhook ${short(id)}`}>
    <PagedTable
      of={useDeliveries(id)}
      rowsOf={({ data }) => data}
      caption="Deliveries"
      keyOf={(delivery) => delivery.id}
      empty="No delivery in the last 30 days."
      columns={[
        ...DELIVERIES,
        { head: 'Again', cell: (delivery) => <Replay webhook={id} delivery={delivery} /> },
      ]}
    />
  </Page>
);

const DELIVERIES: readonly Column<Delivery>[] = [
  { head: 'Event', cell: ({ type }) => type },
  { head: 'Status', cell: ({ status }) => <Status of={status} /> },
  { head: 'Attempts', figure: true, cell: ({ attempts }) => count(attempts) },
  { head: 'Answer', cell: ({ last_status: status, last_error: error }) => status ?? error ?? '–' },
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
