import * as z from 'zod';
import {
  budgetId,
  givenExactlyOneOf,
  microusd,
  NO_NUL,
  optional,
  storable,
  unixSeconds,
  unixSecondsOr,
} from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { pageOf } from '../fields/page.ts';
import { timeZone } from '../fields/zones.ts';
import { hasField } from './key-change.ts';
import { keyName } from './keys.ts';
import { DELIVERY_ERRORS, DELIVERY_STATUSES } from './webhooks.ts';

/** How long an alert of spend adds up calls. */
export const ALERT_WINDOWS = ['hour', 'day'] as const;

/** Number of windows before the present one. A jump is compared with their mean. */
export const JUMP_WINDOWS = 7;

const PERCENT = expected('a whole number from 1 to 100');
const percent = z.int(PERCENT).min(1, PERCENT).max(100, PERCENT);
const DOLLARS = expected(`a whole number of microdollars from 1 to ${Number.MAX_SAFE_INTEGER}`);
const amount = microusd.refine((given) => given >= 1, DOLLARS).meta({ minimum: 1 });
const FACTOR = expected('a number from 1.1 to 1000');
const CALLS = expected('a whole number from 1 to 10000');
const MINUTES = expected('a whole number from 5 to 60');
const PROVIDER = expected('1 to 64 characters');

const WINDOW = expected(`one of ${ALERT_WINDOWS.join(', ')}`);
const window = {
  window: z
    .enum(ALERT_WINDOWS, WINDOW)
    .meta({ id: 'AlertWindow' })
    .meta({ description: 'The window that calls are added up in. It counts from its beginning.' }),
  time_zone: timeZone
    .default('UTC')
    .meta({ description: 'Where days begin: a name in the IANA database.', examples: ['Europe/Berlin'] }),
};

const AN_OBJECT = expected('a JSON object');
const KINDS = ['budget', 'spend', 'spend_jump', 'errors'] as const;

const budget = z
  .strictObject(
    {
      budget: budgetId.meta({ description: 'Id of a shared budget, and of no template.' }),
      percent: percent.meta({
        description: 'It fires once so much of the fullest of its limits is settled.',
      }),
    },
    AN_OBJECT,
  )
  .meta({ id: 'BudgetCondition' });

const spend = z
  .strictObject(
    { ...window, amount: amount.meta({ description: 'It fires at so many microdollars of settled calls.' }) },
    AN_OBJECT,
  )
  .meta({ id: 'SpendCondition' });

const spendJump = z
  .strictObject(
    {
      ...window,
      factor: z
        .number(FACTOR)
        .min(1.1, FACTOR)
        .max(1_000, FACTOR)
        .meta({
          description: `It fires at so many times the mean of the ${JUMP_WINDOWS} days before, or of the same hour of the ${JUMP_WINDOWS} days before.`,
        }),
      at_least: amount.meta({ description: 'Below so many microdollars it does not fire.' }),
    },
    AN_OBJECT,
  )
  .meta({ id: 'SpendJumpCondition' });

const errors = z
  .strictObject(
    {
      percent: percent.meta({
        description:
          'It fires once so many percent of the calls failed, and neither their holder nor their issuer was the cause.',
      }),
      calls: z
        .int(CALLS)
        .min(1, CALLS)
        .max(10_000, CALLS)
        .default(20)
        .meta({ description: 'With fewer calls it does not fire.' }),
      minutes: z
        .int(MINUTES)
        .min(5, MINUTES)
        .max(60, MINUTES)
        .default(15)
        .meta({ description: 'Calls that settled in the last minutes count.' }),
      provider: optional(
        storable(z.string(PROVIDER).min(1, PROVIDER).max(64, PROVIDER)).meta({ pattern: NO_NUL }),
      ).meta({ description: 'Only calls to this provider. `mcp`: calls of MCP servers. Left out: all.' }),
    },
    AN_OBJECT,
  )
  .meta({ id: 'FailuresCondition' });

/** When an alert fires. Exactly one field. */
const condition = z
  .strictObject(
    {
      budget: optional(budget).meta({ description: 'A part of a shared budget is settled.' }),
      spend: optional(spend).meta({ description: 'Calls of an hour or a day cost so much.' }),
      spend_jump: optional(spendJump).meta({ description: 'They cost much more than before.' }),
      errors: optional(errors).meta({ description: 'Calls fail.' }),
    },
    AN_OBJECT,
  )
  .refine(
    (given) => Object.values(given).filter((value) => value !== undefined).length === 1,
    `expected exactly one of ${KINDS.slice(0, -1).join(', ')} and ${KINDS.at(-1)}`,
  )
  .meta({ id: 'AlertConditionRequest', allOf: givenExactlyOneOf(KINDS) });
export type AlertCondition = z.output<typeof condition>;

const WEBHOOK = expected('the id of a webhook endpoint, such as "123e4567-e89b-42d3-a456-426614174000"');
const webhook = z.guid(WEBHOOK).transform((id) => id.toLowerCase());
const TRUE = expected('true or false');

/** Body of `POST /v1/alerts`. */
export const alertRequest = z
  .strictObject(
    {
      name: keyName.meta({ description: 'Your name for it. Its messages begin with it.' }),
      condition: condition.meta({ description: 'When it fires.' }),
      webhook: optional(webhook).meta({
        description: 'Id of the endpoint that gets its events. Left out: it shows in the console alone.',
      }),
      enabled: z.boolean(TRUE).default(true).meta({ description: 'Whether it is evaluated.' }),
    },
    AN_OBJECT,
  )
  .meta({
    id: 'AlertRequest',
    examples: [{ name: 'Daily spend', condition: { spend: { window: 'day', amount: 50_000_000 } } }],
  });
export type AlertRequest = z.output<typeof alertRequest>;

/** Body of `PATCH /v1/alerts/{id}`. Omitted fields are unchanged. */
export const alertChange = z
  .strictObject(
    {
      name: keyName.optional().meta({ description: 'Your name for it.' }),
      condition: condition.optional().meta({
        description: 'Replaces all of it. If the alert fires, it is resolved first.',
      }),
      webhook: webhook.nullable().optional().meta({
        description: 'Id of the endpoint that gets its events from now on. null: none.',
      }),
      enabled: z
        .boolean(TRUE)
        .optional()
        .meta({ description: 'false: it is evaluated no more. If it fires, it is resolved.' }),
    },
    AN_OBJECT,
  )
  .refine(hasField, 'expected at least one of name, condition, webhook and enabled')
  .meta({ id: 'AlertChange', minProperties: 1, examples: [{ enabled: false }] });
export type AlertChange = z.output<typeof alertChange>;

const alertWindow = z.enum(ALERT_WINDOWS).meta({ id: 'AlertWindow' });

/** The condition of a stored alert. */
export const alertCondition = z
  .strictObject({
    budget: z.strictObject({ budget: z.guid(), percent: z.int() }).meta({ id: 'AlertOfBudget' }).optional(),
    spend: z
      .strictObject({
        window: alertWindow,
        time_zone: z.string(),
        amount: microusd,
      })
      .meta({ id: 'AlertOfSpend' })
      .optional(),
    spend_jump: z
      .strictObject({
        window: alertWindow,
        time_zone: z.string(),
        factor: z.number(),
        at_least: microusd,
      })
      .meta({ id: 'AlertOfSpendJump' })
      .optional(),
    errors: z
      .strictObject({
        percent: z.int(),
        calls: z.int(),
        minutes: z.int(),
        provider: z.string().optional(),
      })
      .meta({ id: 'AlertOfFailures' })
      .optional(),
  })
  .meta({ id: 'AlertCondition', description: 'Exactly one field.' });

/** A figure of an alert, and the value at which the alert fires. */
const figure = z.number().meta({ description: 'Microdollars for spend, else percent.' });

/** An alert with its state. */
export const alertAnswer = z
  .strictObject({
    id: z.guid(),
    name: z.string(),
    condition: alertCondition,
    webhook: z.guid().nullable().meta({
      description: 'Id of the endpoint that gets its events. null: none, or it was deleted.',
    }),
    enabled: z.boolean(),
    firing_since: unixSecondsOr('it does not fire'),
    value: figure.nullable().meta({
      description: 'The last figure. Microdollars for spend, else percent. null: there is none yet.',
    }),
    threshold: figure
      .nullable()
      .meta({ description: 'The figure at which it fires. null: there is none yet.' }),
    checked_at: unixSecondsOr('it was not evaluated yet'),
    revision: z.int().meta({ description: '1. Every change adds 1.' }),
    created_at: unixSeconds,
  })
  .meta({ id: 'Alert' });
export type AlertAnswer = z.infer<typeof alertAnswer>;

/** Answer of `GET /v1/alerts`. */
export const alertPage = pageOf(alertAnswer).meta({ id: 'AlertPage' });

/** One time that an alert fired. */
export const alertFiring = z
  .strictObject({
    id: z.guid().meta({ description: 'Also the `webhook-id` of its `alert.fired`.' }),
    fired_at: unixSeconds,
    resolved_at: unixSecondsOr('it still fires'),
    value: figure,
    threshold: figure,
    starts_at: unixSecondsOr('the window of the budget has no beginning'),
    ends_at: unixSecondsOr('the window of the budget has no end'),
    delivery: z
      .strictObject({
        status: z.enum(DELIVERY_STATUSES).meta({ id: 'DeliveryStatus' }),
        attempts: z.int(),
        last_status: z.int().nullable(),
        last_error: z.enum(DELIVERY_ERRORS).meta({ id: 'DeliveryError' }).nullable(),
      })
      .meta({ id: 'AlertDelivery' })
      .nullable()
      .meta({ description: 'How `alert.fired` was delivered. null: to no endpoint.' }),
  })
  .meta({ id: 'AlertFiring' });
export type AlertFiring = z.infer<typeof alertFiring>;

/** Answer of `GET /v1/alerts/{id}/firings`. */
export const alertFiringPage = pageOf(alertFiring).meta({ id: 'AlertFiringPage' });
