import * as z from 'zod';
import { microusd, optional, perMinute, unixSeconds, unixSecondsOr } from '../fields/fields.ts';
import { expected, QUERY } from '../fields/invalid-request.ts';
import { pageOf, pageQuery } from '../fields/page.ts';
import { keyName, newApiKeyAnswer } from './keys.ts';

const MOST = 1_000_000;
const COUNT = expected(`a whole number from 0 to ${MOST}`);
const count = z.int(COUNT).min(0, COUNT).max(MOST, COUNT);

const fields = {
  api_keys: count.meta({ description: 'API keys that are neither revoked nor expired.' }),
  sessions: count.meta({ description: 'Sessions with a URL that has neither expired nor been revoked.' }),
  urls_per_minute: perMinute.meta({ description: 'URLs and bundles that its API keys issue in a minute.' }),
  cost_limit: microusd.meta({
    description: 'The highest cost_limit of a URL or a bundle, in microdollars. Each must then have one.',
  }),
};

/** The same limit, or null for none. */
const orNone = <T extends z.ZodType>(limit: T) =>
  limit.nullable().meta({ description: z.globalRegistry.get(limit)?.description ?? '' });

/** The limits of an account in a request. An omitted field is unchanged. */
export const accountLimitsChange = z
  .strictObject(
    {
      api_keys: orNone(fields.api_keys).optional(),
      sessions: orNone(fields.sessions).optional(),
      urls_per_minute: orNone(fields.urls_per_minute).optional(),
      cost_limit: orNone(fields.cost_limit).optional(),
    },
    expected('a JSON object'),
  )
  .meta({
    id: 'AccountLimitsChange',
    description: 'The most that the account may have. null removes a limit.',
  });

/** The limits of an account in an answer. */
export const accountLimits = z
  .strictObject({
    api_keys: orNone(fields.api_keys),
    sessions: orNone(fields.sessions),
    urls_per_minute: orNone(fields.urls_per_minute),
    cost_limit: orNone(fields.cost_limit),
  })
  .meta({ id: 'AccountLimits', description: 'The most that the account may have. null: no limit.' });
export type AccountLimits = z.infer<typeof accountLimits>;

export type AccountLimitsChange = z.output<typeof accountLimitsChange>;

/** The limits of an account that has none. */
export const NO_LIMITS: AccountLimits = {
  api_keys: null,
  sessions: null,
  urls_per_minute: null,
  cost_limit: null,
};

/** Body of `POST /v1/accounts`. */
export const accountRequest = z
  .strictObject(
    {
      name: keyName.meta({ description: 'Your name for it.' }),
      limits: optional(accountLimitsChange).meta({
        description: 'The most that the account may have. Left out: no limits.',
      }),
    },
    expected('a JSON object'),
  )
  .meta({ id: 'AccountRequest', examples: [{ name: 'customer-a', limits: { cost_limit: 5_000_000 } }] });

/** Body of `PATCH /v1/accounts/{id}`. Omitted fields are unchanged. */
export const accountChange = z
  .strictObject(
    {
      name: keyName.optional().meta({ description: 'Your name for it.' }),
      limits: accountLimitsChange.optional(),
    },
    expected('a JSON object'),
  )
  .refine(({ name, limits }) => name !== undefined || limits !== undefined, 'expected name, limits or both')
  .meta({ id: 'AccountChange', minProperties: 1, examples: [{ limits: { urls_per_minute: 600 } }] });

export type AccountChange = z.output<typeof accountChange>;

const accountFields = {
  id: z.guid(),
  name: z.string(),
  created_at: unixSeconds,
  suspended_at: unixSecondsOr('not suspended'),
  deleted_at: unixSecondsOr('not deleted'),
  limits: accountLimits,
  revision: z.int().meta({ description: '1. Every change of its name or limits adds 1.' }),
};

/** An account as the operator sees it. */
export const accountAnswer = z.strictObject(accountFields).meta({ id: 'Account' });

export type AccountAnswer = z.infer<typeof accountAnswer>;

/** Answer of `POST /v1/accounts`. */
export const newAccountAnswer = z
  .strictObject({ ...accountFields, api_key: newApiKeyAnswer })
  .meta({ id: 'NewAccount' });

export type NewAccountAnswer = z.infer<typeof newAccountAnswer>;

/** The most live URLs of an account that are counted. */
export const LIVE_URLS_COUNTED = 10_000;

const monthOfAccount = z
  .strictObject({
    from: unixSeconds,
    to: unixSeconds,
    calls: z.int().meta({ description: 'Settled calls.' }),
    cost: z.int().meta({ description: 'Microdollars of the calls whose cost is known.' }),
  })
  .meta({ id: 'AccountMonth' });

/** Answer of `GET /v1/accounts/{id}/usage`. */
export const accountUsageAnswer = z
  .strictObject({
    this_month: monthOfAccount.meta({ description: 'From the beginning of the month in UTC until now.' }),
    last_month: monthOfAccount
      .nullable()
      .meta({ description: 'The whole month before. null: its sums are deleted.' }),
    last_call_at: unixSecondsOr('no call is in the ledger'),
    live_api_keys: z.int().meta({ description: 'API keys that are neither revoked nor expired.' }),
    live_urls: z.int().meta({
      description: `URLs that are neither revoked nor expired, counted up to ${LIVE_URLS_COUNTED}.`,
    }),
  })
  .meta({ id: 'AccountUsage' });
export type AccountUsageAnswer = z.infer<typeof accountUsageAnswer>;

const INCLUDED = ['usage'] as const;

/** Query of `GET /v1/accounts`. */
export const accountsQuery = z.strictObject(
  {
    ...pageQuery.shape,
    include: z
      .enum(INCLUDED, `expected ${INCLUDED.join(', ')}`)
      .optional()
      .meta({
        description:
          '`usage`: each account also has the answer of `GET /v1/accounts/{id}/usage`. Left out: the list takes less time.',
      }),
  },
  QUERY,
);

/** An account in a list. */
export const listedAccount = z
  .strictObject({
    ...accountFields,
    usage: accountUsageAnswer.optional().meta({ description: 'With `include=usage` only.' }),
  })
  .meta({ id: 'ListedAccount' });
export type ListedAccount = z.infer<typeof listedAccount>;

/** Answer of `GET /v1/accounts`. */
export const accountPage = pageOf(listedAccount).meta({ id: 'AccountPage' });
