import * as z from 'zod';
import { NO_NUL, optional, unixSeconds } from '../fields/fields.ts';
import { expected, QUERY } from '../fields/invalid-request.ts';
import { pageOf, pageQuery } from '../fields/page.ts';
import { hasField } from './key-change.ts';
import { URL_PATTERN } from './mcp/auth.ts';

const URL_MAX_CHARS = 2_048;
const DESCRIPTION_MAX_CHARS = 255;

/** Types of events that an endpoint can receive. */
export const WEBHOOK_EVENTS = [
  'session.exhausted',
  'grant.threshold',
  'virtual_key.threshold',
  'budget.threshold',
  'budget.exhausted',
  'budget.reset',
  'grant.revoked',
  'grant.expired',
  'usage.settled',
  'audit.entry',
] as const;

/** Sent only to endpoints that name it: an endpoint of all events would get one for each change of itself. */
export const NAMED_EVENT = 'audit.entry';

/** Events that go to one endpoint, whatever its `events`. */
const SENT_TO_ONE = ['alert.fired', 'alert.resolved', 'webhook.test'] as const;

/** How the requests of an endpoint look: signed events, or messages for Slack. */
export const WEBHOOK_FORMATS = ['standard', 'slack'] as const;

export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed'] as const;

/** Why an attempt failed. `endpoint_disabled`: the delivery was given up because its endpoint was disabled. */
export const DELIVERY_ERRORS = [
  'http_status',
  'timeout',
  'unreachable',
  'address_not_public',
  'secret_unreadable',
  'endpoint_disabled',
] as const;
export type DeliveryError = (typeof DELIVERY_ERRORS)[number];

const EVENT = `expected one of ${WEBHOOK_EVENTS.join(', ')}`;
const EVENTS = `expected a list of some of ${WEBHOOK_EVENTS.join(', ')}, each once`;
const FORMAT = `expected one of ${WEBHOOK_FORMATS.join(', ')}`;
const NO_EVENTS = 'a Slack endpoint gets messages of the alerts that name it, and no other events';
const URL_FORM = 'expected an https URL without user and fragment, such as "https://example.com/webhooks"';

/** The fields of an endpoint that its owner chooses. */
export const webhookFields = {
  url: z
    .string(expected('a URL'))
    .max(URL_MAX_CHARS, `expected at most ${URL_MAX_CHARS} characters`)
    .refine(isPlainUrl, URL_FORM)
    .meta({
      pattern: URL_PATTERN,
      description: 'The https URL that events are sent to by POST. Its address must be public.',
    }),
  events: z
    .array(z.enum(WEBHOOK_EVENTS, EVENT).meta({ id: 'EventType' }), EVENTS)
    .refine((types) => new Set(types).size === types.length, EVENTS)
    .meta({ uniqueItems: true }),
  description: z
    .string(expected('a string'))
    .max(DESCRIPTION_MAX_CHARS, `expected at most ${DESCRIPTION_MAX_CHARS} characters`)
    .refine((text) => text.isWellFormed() && !text.includes('\0'), 'expected Unicode text without NUL')
    .meta({ pattern: NO_NUL }),
};

/** Body of `POST /v1/webhooks`. Each attempt checks again whether the address of the URL may be reached. */
export const webhookRequest = z
  .strictObject(
    {
      url: webhookFields.url,
      format: z.enum(WEBHOOK_FORMATS, FORMAT).meta({ id: 'WebhookFormat' }).default('standard').meta({
        description:
          '`slack`: the url is an incoming webhook of Slack. It gets the messages of alerts that name it.',
      }),
      events: optional(webhookFields.events).meta({
        description:
          'Types of events to send. Left out: all except audit.entry. Empty: only those of alerts that name it. A Slack endpoint has none.',
      }),
      description: optional(webhookFields.description).meta({ description: 'Your description of it.' }),
    },
    expected('a JSON object'),
  )
  .refine(({ format, events }) => format !== 'slack' || events === undefined, {
    path: ['events'],
    error: NO_EVENTS,
  })
  .meta({
    id: 'WebhookRequest',
    allOf: [
      {
        not: {
          required: ['events', 'format'],
          properties: { events: { not: { type: 'null' } }, format: { const: 'slack' } },
        },
      },
    ],
    examples: [{ url: 'https://example.com/webhooks', events: ['session.exhausted', 'usage.settled'] }],
  });
export type WebhookRequest = z.output<typeof webhookRequest>;

/** An endpoint, as its owner sees it. */
export const webhookAnswer = z
  .strictObject({
    id: z.guid(),
    format: z.enum(WEBHOOK_FORMATS).meta({ id: 'WebhookFormat' }),
    url: z.string().meta({
      description: 'A Slack endpoint shows only the host: the rest of its URL is a secret.',
    }),
    events: z
      .array(z.enum(WEBHOOK_EVENTS).meta({ id: 'EventType' }))
      .nullable()
      .meta({ description: 'null: all except audit.entry. Empty: only those of alerts that name it.' }),
    description: z.string().nullable(),
    created_at: unixSeconds,
    previous_secret_expires_at: unixSeconds.nullable().meta({
      description: 'Unix time in seconds. Until then, the previous secret also signs.',
    }),
    status: z.enum(['enabled', 'disabled']).meta({
      id: 'WebhookStatus',
      description: '`disabled`: it receives nothing until you enable it.',
    }),
    disabled_reason: z.enum(['gone', 'failing']).meta({ id: 'DisabledReason' }).nullable().meta({
      description: '`gone`: it answered 410. `failing`: every attempt failed for days.',
    }),
    disabled_at: unixSeconds.nullable(),
    failing_since: unixSeconds.nullable().meta({
      description:
        'Unix time in seconds of the first failure since the last success. null: no attempt failed since then.',
    }),
    revision: z.int().meta({ description: '1. Every change of its url, events or description adds 1.' }),
  })
  .meta({ id: 'Webhook' });
export type WebhookAnswer = z.infer<typeof webhookAnswer>;

/** An endpoint with its secret. No later answer shows the secret. */
export const webhookWithSecret = z
  .strictObject({
    ...webhookAnswer.shape,
    secret: z.string().nullable().meta({
      description:
        'Only this answer shows it: `whsec_` and base64, the form that the libraries of Standard Webhooks accept. null: requests to Slack are not signed.',
    }),
  })
  .meta({ id: 'WebhookWithSecret' });

/** Answer of `GET /v1/webhooks`. */
export const webhookPage = pageOf(webhookAnswer).meta({ id: 'WebhookPage' });

/** One event on its way to one endpoint. */
export const deliveryAnswer = z
  .strictObject({
    id: z.guid(),
    event_id: z.guid().meta({
      description: 'The value of the header `webhook-id`, the same at every attempt and after a replay.',
    }),
    type: z.enum([...WEBHOOK_EVENTS, ...SENT_TO_ONE]).meta({ id: 'DeliveryType' }),
    status: z.enum(DELIVERY_STATUSES).meta({ id: 'DeliveryStatus' }),
    attempts: z.int().meta({ description: 'Attempts since it was created or replayed.' }),
    last_status: z.int().nullable().meta({
      description: "HTTP status of the last attempt's answer; null when none came.",
    }),
    last_error: z.enum(DELIVERY_ERRORS).meta({ id: 'DeliveryError' }).nullable().meta({
      description: 'Why the last attempt failed; null when it did not.',
    }),
    next_try_at: unixSeconds.nullable().meta({
      description: 'Unix time in seconds; null when no further attempt is made.',
    }),
    created_at: unixSeconds,
    delivered_at: unixSeconds.nullable(),
  })
  .meta({ id: 'Delivery' });
export type DeliveryAnswer = z.infer<typeof deliveryAnswer>;

/** Answer of `GET /v1/webhooks/{id}/deliveries`. */
export const deliveryPage = pageOf(deliveryAnswer).meta({ id: 'DeliveryPage' });

const STATUS = `expected one of ${DELIVERY_STATUSES.join(', ')}`;
/** Query of `GET /v1/webhooks/{id}/deliveries`. */
export const deliveriesQuery = z.strictObject(
  {
    ...pageQuery.shape,
    status: z
      .enum(DELIVERY_STATUSES, STATUS)
      .meta({ id: 'DeliveryStatus' })
      .optional()
      .meta({ description: 'Left out: all.' }),
  },
  QUERY,
);

function isPlainUrl(text: string): boolean {
  if (!/^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/i.test(text) || !URL.canParse(text)) return false;
  const { username, password, hash } = new URL(text);
  return username === '' && password === '' && hash === '' && !text.includes('#');
}

/** Body of `PATCH /v1/webhooks/{id}`. Fields that are left out stay as they are. */
export const webhookChange = z
  .strictObject(
    {
      url: webhookFields.url.optional().meta({
        description:
          'Where events are sent from now on, also those whose delivery is under way. The secret stays.',
      }),
      events: webhookFields.events
        .nullable()
        .optional()
        .meta({ description: 'Types of events that happen from now on. null: all except audit.entry.' }),
      description: webhookFields.description
        .nullable()
        .optional()
        .meta({ description: 'Your description of it. null: none.' }),
    },
    expected('a JSON object'),
  )
  .refine(hasField, 'expected at least one of url, events and description')
  .meta({ id: 'WebhookChange', minProperties: 1, examples: [{ events: ['grant.revoked', 'audit.entry'] }] });
export type WebhookChange = z.output<typeof webhookChange>;
