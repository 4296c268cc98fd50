import * as z from 'zod';
import {
  apiKeyId,
  budgetId,
  EXTERNAL_ID_MAX_CHARS,
  externalId,
  GIVEN,
  givenExactlyOneOf,
  givenOneOf,
  maxUses,
  microusd,
  optional,
  unixSeconds,
} from '../fields/fields.ts';
import { expected, QUERY } from '../fields/invalid-request.ts';
import { pageOf, pageQuery } from '../fields/page.ts';
import { TOKEN_LIMIT } from '../limit-kinds.ts';
import { keyName, virtualKeyParams } from './keys.ts';

/** How long a window of a budget is. */
export const BUDGET_WINDOWS = ['lifetime', 'hour', 'day', 'week', 'month'] as const;
export type BudgetWindow = (typeof BUDGET_WINDOWS)[number];

/** The URLs that a shared budget covers, by what these URLs have in common. */
export const BUDGET_SCOPES = ['account', 'api_key', 'virtual_key', 'external_user', 'metadata'] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

/** The same in an answer. */
export const budgetWindow = z.enum(BUDGET_WINDOWS).meta({ id: 'BudgetWindow' });

const WINDOW = expected(`one of ${BUDGET_WINDOWS.join(', ')}`);
const TIME_ZONE = 'expected the name of a time zone in the IANA database, such as "Europe/Berlin"';
const ANCHOR = expected('a time in whole Unix seconds');
/** The end of the year 9999. */
const END_SECONDS = 253_402_300_799;

const timeZone = z
  .string(expected('a string'))
  .max(64, TIME_ZONE)
  .refine(isTimeZone, TIME_ZONE)
  .meta({ examples: ['Europe/Berlin'] });

/** An offset such as `+01:00` is not a zone, because it has no daylight saving time. */
function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+\-/]*$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** A user, or a key or a value of metadata. */
export const budgetValue = externalId
  .refine((id) => id !== '', `expected 1 to ${EXTERNAL_ID_MAX_CHARS} characters`)
  .meta({ minLength: 1 });
const USER =
  'URLs with this `external_user`. `*`: each user gets a budget with the first URL that names the user.';

const METADATA = expected(
  `an object with one key and a text as its value, each of 1 to ${EXTERNAL_ID_MAX_CHARS} characters`,
);
const ONE_KEY = { id: 'MetadataScope', minProperties: 1, maxProperties: 1 };
/** One key of `metadata` with the value that a URL must have. */
const metadata = z
  .record(budgetValue, budgetValue, METADATA)
  .refine((given) => Object.keys(given).length === 1, METADATA)
  .meta(ONE_KEY);

/** The URLs that a budget covers. Exactly one field. */
const scope = z
  .strictObject(
    {
      account: optional(z.literal(true, expected('true'))).meta({ description: 'All URLs of the account.' }),
      api_key: optional(apiKeyId).meta({
        description: 'URLs that this API key issues.',
      }),
      virtual_key: optional(
        z
          .string(expected('a string'))
          .refine((id) => virtualKeyParams.safeParse({ id }).success, 'expected the id of a virtual key'),
      ).meta({ description: 'URLs of this virtual key.' }),
      external_user: optional(budgetValue).meta({ description: USER }),
      metadata: optional(metadata).meta({
        description:
          'URLs whose `metadata` has this key with exactly this text. `*`: each value gets a budget with the first URL that has it.',
      }),
    },
    expected('a JSON object'),
  )
  .refine(
    (given) => Object.values(given).filter((value) => value !== undefined).length === 1,
    'expected exactly one of account, api_key, virtual_key, external_user and metadata',
  )
  .meta({ id: 'BudgetScopeRequest', allOf: givenExactlyOneOf(BUDGET_SCOPES) });

const THRESHOLDS_MOST = 10;
const THRESHOLDS = `expected a list of at most ${THRESHOLDS_MOST} whole numbers from 1 to 100, each once`;
const thresholds = z
  .array(z.int(THRESHOLDS).min(1, THRESHOLDS).max(100, THRESHOLDS), THRESHOLDS)
  .max(THRESHOLDS_MOST, THRESHOLDS)
  .refine((levels) => new Set(levels).size === levels.length, THRESHOLDS)
  .transform((levels) => levels.toSorted((a, b) => a - b))
  .meta({ uniqueItems: true });

const TOKENS = expected(`a whole number of tokens from ${TOKEN_LIMIT.least} to ${TOKEN_LIMIT.most}`);
/** Tokens of input and output. */
const tokens = z.int(TOKENS).min(TOKEN_LIMIT.least, TOKENS).max(TOKEN_LIMIT.most, TOKENS);

const SOME = 'expected at least one of max_uses, cost_limit and tokens';

/** Body of `POST /v1/budgets`. */
export const budgetRequest = z
  .strictObject(
    {
      name: optional(keyName).meta({ description: 'Your name for it. No holder sees it.' }),
      scope: scope.meta({ description: 'The URLs that it covers: those that are issued from now on.' }),
      max_uses: optional(maxUses).meta({ description: 'Calls in a window. -1: unlimited.' }),
      cost_limit: optional(microusd).meta({ description: 'Microdollars in a window.' }),
      tokens: optional(tokens).meta({
        description: 'Tokens of input and output in a window. Calls of MCP servers use none.',
      }),
      window: z.enum(BUDGET_WINDOWS, WINDOW).meta({ id: 'BudgetWindow' }).default('lifetime').meta({
        description: 'How long its figures count. lifetime: for good.',
      }),
      time_zone: timeZone.default('UTC').meta({
        description: 'Where days, weeks and months begin: a name in the IANA database.',
      }),
      anchor: optional(z.int(ANCHOR).min(0, ANCHOR).max(END_SECONDS, ANCHOR)).meta({
        description:
          'A time at which a window begins, in Unix seconds. Left out: windows begin with the hour, the day, Monday or the month.',
      }),
      thresholds: thresholds.default([50, 80, 100]).meta({
        description: 'Percents of each limit at which `budget.threshold` is sent. Empty: none.',
      }),
      visible: optional(z.boolean(expected('true or false'))).meta({
        description:
          'Whether holders of its URLs see its limits, what is left of them and when they reset; it then lowers output bounds, too. Left out: true for a scope of `external_user`, else false.',
      }),
    },
    expected('a JSON object'),
  )
  .refine(({ max_uses, cost_limit, tokens }) => (max_uses ?? cost_limit ?? tokens) !== undefined, SOME)
  .refine(({ window, anchor }) => window !== 'lifetime' || anchor === undefined, {
    path: ['anchor'],
    error: 'a lifetime has no anchor',
  })
  .meta({
    id: 'BudgetRequest',
    allOf: [
      givenOneOf('max_uses', 'cost_limit', 'tokens'),
      { not: { required: ['anchor'], properties: { anchor: GIVEN, window: { const: 'lifetime' } } } },
    ],
    examples: [{ scope: { external_user: '*' }, cost_limit: 5_000_000, window: 'month' }],
  });
export type BudgetRequest = z.output<typeof budgetRequest>;

const USES = expected(`-1 (unlimited) or a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`);

/** Body of `PATCH /v1/budgets/{id}`. */
export const budgetChange = z
  .strictObject(
    {
      name: keyName.nullable().optional().meta({ description: 'null: none.' }),
      max_uses: z.int(USES).min(-1, USES).nullable().optional().meta({
        description:
          'Calls in a window, those of this window included. null, -1: unlimited. 0: no call passes.',
      }),
      cost_limit: microusd.nullable().optional().meta({
        description: 'Microdollars in a window, those of this window included. null: no limit.',
      }),
      tokens: tokens.nullable().optional().meta({
        description: 'Tokens in a window, those of this window included. null: no limit.',
      }),
      thresholds: thresholds.optional().meta({ description: 'Empty: none.' }),
      visible: z
        .boolean(expected('true or false'))
        .optional()
        .meta({ description: 'Whether holders of its URLs see it.' }),
    },
    expected('a JSON object'),
  )
  .refine(
    (change) => Object.values(change).some((value) => value !== undefined),
    'expected at least one of name, max_uses, cost_limit, tokens, thresholds and visible',
  )
  .meta({ id: 'BudgetChange', minProperties: 1, examples: [{ cost_limit: 10_000_000 }] });
export type BudgetChange = z.output<typeof budgetChange>;

/** The window that counts now. */
const currentWindow = z
  .strictObject({
    starts_at: unixSeconds,
    ends_at: unixSeconds.nullable().meta({ description: 'null: it has no end.' }),
    settled: z
      .strictObject({ used: z.int(), spent: microusd, tokens: z.int() })
      .meta({ id: 'SettledOfWindow', description: 'Calls, microdollars and tokens in the ledger.' }),
    live: z
      .strictObject({
        used: z.int(),
        spent: microusd,
        held: microusd,
        tokens: z.int(),
        tokens_held: z.int(),
      })
      .meta({ id: 'LiveFiguresOfWindow' })
      .nullable()
      .meta({ description: 'Running calls included. null: Redis does not answer.' }),
  })
  .meta({ id: 'CurrentWindow' });

/** The scope of a stored budget. */
export const budgetScope = z
  .strictObject({
    account: z.literal(true).optional(),
    api_key: z.guid().optional(),
    virtual_key: z.string().optional(),
    external_user: z.string().optional(),
    metadata: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: 'BudgetScope', description: 'Exactly one field.' });

/** The columns of a scope. */
type StoredScope = {
  readonly scope: BudgetScope;
  readonly scopeKey: string;
  readonly scopeValue: string;
  readonly isTemplate: boolean;
};

/** The user, or the value, of a template. */
export const ANY_VALUE = '*';

/** A stored scope as the API has it. */
export function scopeOf({ scope, scopeKey, scopeValue, isTemplate }: StoredScope): BudgetAnswer['scope'] {
  if (scope === 'account') return { account: true };
  const value = isTemplate ? ANY_VALUE : scopeValue;
  return { [scope]: scope === 'metadata' ? { [scopeKey]: value } : value };
}

/** A budget that URLs share, or a template. */
export const budgetAnswer = z
  .strictObject({
    id: z.guid(),
    kind: z.enum(['budget', 'template']).meta({
      id: 'BudgetKind',
      description: 'template: it makes a budget for each user or value, and has no figures of its own.',
    }),
    name: z.string().nullable(),
    scope: budgetScope,
    template: z.guid().nullable().meta({ description: 'Id of the template that made it. null: POST did.' }),
    max_uses: z.int().nullable().meta({ description: 'Calls in a window. null: no limit.' }),
    cost_limit: microusd.nullable().meta({ description: 'Microdollars in a window. null: no limit.' }),
    tokens: z.int().nullable().meta({
      description: 'Tokens of input and output in a window. null: no limit.',
    }),
    thresholds: z.array(z.int()).meta({
      description: 'Percents of each limit at which `budget.threshold` is sent.',
    }),
    visible: z.boolean().meta({ description: 'Whether holders of its URLs see it.' }),
    window: budgetWindow,
    time_zone: z.string(),
    anchor: unixSeconds.nullable().meta({ description: 'Unix time in seconds. null: none.' }),
    revision: z.int().meta({ description: '1. Every change adds 1.' }),
    current: currentWindow.nullable().meta({
      description: 'The present window. null: no call has drawn on it, or it is a template.',
    }),
    created_at: unixSeconds.meta({
      description: 'It covers URLs that were issued later. Unix time in seconds.',
    }),
    deleted_at: unixSeconds.nullable().meta({ description: 'null: not deleted.' }),
  })
  .meta({ id: 'SharedBudget' });
export type BudgetAnswer = z.infer<typeof budgetAnswer>;

/** Query of `GET /v1/budgets`. */
export const budgetsQuery = z.strictObject(
  {
    ...pageQuery.shape,
    template: budgetId.optional().meta({
      description: 'Only the budgets that this template made.',
    }),
    external_user: externalId.optional().meta({ description: 'Only the budgets of this user.' }),
  },
  QUERY,
);
export type BudgetsQuery = z.output<typeof budgetsQuery>;

/** Answer of `GET /v1/budgets`. */
export const budgetPage = pageOf(budgetAnswer).meta({ id: 'SharedBudgetPage' });
