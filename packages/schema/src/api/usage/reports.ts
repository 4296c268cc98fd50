import * as z from 'zod';
import { apiKeyId, externalId, NO_NUL, requestId, sessionId, TIME_FORM, time } from '../../fields/fields.ts';
import { meantBy, QUERY } from '../../fields/invalid-request.ts';
import { countUpTo, limitUpTo } from '../../fields/page.ts';
import { timeZone } from '../../fields/zones.ts';
import { readJson } from '../../json.ts';
import { OUTCOME_NAMES } from './call-outcomes.ts';

const METADATA = 'expected the name of a key and at most 255 characters without NUL, as metadata.team=red';

/** The dimensions that usage can be summed by. The fields of a row have the same names. */
export const USAGE_DIMENSIONS = [
  'external_user',
  'session_id',
  'model',
  'provider',
  'virtual_key',
  'api_key',
  'server',
  'tool',
  'outcome',
  'day',
  'month',
] as const;
/** A key of metadata. Postgres cuts names of columns at 63 bytes. */
const KEY = '[\\w-]{1,50}';
/** A group by one. */
const OF_METADATA = new RegExp(`^metadata\\.${KEY}$`);
export type UsageDimension = (typeof USAGE_DIMENSIONS)[number] | `metadata.${string}`;
const dimension = z
  .union([z.enum(USAGE_DIMENSIONS).meta({ id: 'UsageField' }), z.string().regex(OF_METADATA)])
  .meta({ id: 'UsageDimension' });

/** Only calls whose URL has these values in its metadata. The operator declares the keys. */
export const metadataFilter = z
  .record(
    z.string().regex(new RegExp(`^${KEY}$`), METADATA),
    z
      .string()
      .max(255, METADATA)
      .regex(/^[^\0]*$/, METADATA),
    METADATA,
  )
  .optional()
  .meta({
    description:
      'Only calls of URLs with these values in their `metadata`, as `metadata[team]=red` or `metadata.team=red`. The operator declares the keys in `USAGE_METADATA`.',
  });

const DIMENSIONS = `expected a comma-separated list of ${USAGE_DIMENSIONS.join(', ')} and metadata.<key>, each once`;
const groupBy = z
  .string(DIMENSIONS)
  .transform((text, context): UsageDimension[] => {
    const names = text.split(',').filter((name, i, all) => isDimension(name) && all.indexOf(name) === i);
    if (names.length < text.split(',').length) {
      const [unknown] = text.split(',').filter((name) => !isDimension(name));
      context.addIssue(DIMENSIONS + meantBy(unknown ?? '', USAGE_DIMENSIONS));
    }
    return names as UsageDimension[];
  })
  .meta({ shownAs: z.array(dimension).min(1).meta({ uniqueItems: true }) });

const isDimension = (name: string) =>
  (USAGE_DIMENSIONS as readonly string[]).includes(name) || OF_METADATA.test(name);

const NAME = 'expected 1 to 255 characters without NUL';
export const name = z
  .string(NAME)
  .min(1, NAME)
  .max(255, NAME)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), NAME)
  .meta({ pattern: NO_NUL });

/** Groups of one answer: Postgres sorts them all before it returns the first. */
export const USAGE_GROUPS_MAX = 100_000;

/** Groups of an answer that has those of the highest cost. */
export const USAGE_TOP_MAX = 1_000;

/** How long before `to` a report begins, in days. */
export const USAGE_DAYS = 30;

const CURSOR = 'expected the next_cursor of an earlier report';
/** Node reads headers and the address up to 16 KB. */
const CURSOR_MAX_CHARS = 14_000;

/** The end of a page: the range of the whole report in Unix milliseconds, and the values of the last group. */
const usageCursor = z.tuple([z.int(), z.int(), z.array(z.string().nullable()).min(1)]);
export type UsageCursor = z.output<typeof usageCursor>;

/** Opaque, so that no client relies on its content. */
export const writeUsageCursor = (cursor: UsageCursor): string =>
  Buffer.from(JSON.stringify(cursor)).toString('base64url');

function readUsageCursor(text: string, context: z.RefinementCtx): UsageCursor {
  const { value } = readJson(Buffer.from(text, 'base64url')) ?? {};
  const read = usageCursor.safeParse(value);
  const isOwn = read.success && writeUsageCursor(read.data) === text;
  if (isOwn && read.data[2].every((value) => value === null || isText(value))) return read.data;
  context.addIssue(CURSOR);
  return z.NEVER;
}

/** Postgres accepts no NUL in a text. */
const isText = (value: string) => value.isWellFormed() && !value.includes('\0');

const DAY_FORM = `${TIME_FORM}, or a day, such as 2026-01-31, for its beginning in \`timezone\``;
const DAY = `expected ${DAY_FORM}`;
/** A moment, or a day as text. */
const timeOrDay = z
  .union([time, z.iso.date().refine((day) => day >= '1970-01-02' && day < '9999', DAY)], DAY)
  .meta({ shownAs: z.union([z.number().min(0), z.iso.datetime({ offset: true }), z.iso.date()]) });

/** Query of `GET /v1/usage`: calls settled at or after `from` and before `to`. */
export const usageQuery = z
  .strictObject(
    {
      from: timeOrDay.optional().meta({
        description: `Calls settled at this time or later. Left out: ${USAGE_DAYS} days before \`to\`. ${DAY_FORM}.`,
        examples: ['2026-01-01', '2026-01-01T00:00:00Z', 1_767_225_600],
      }),
      to: timeOrDay.optional().meta({
        description: `Calls settled before this time. Left out: now. ${DAY_FORM}.`,
        examples: ['2026-02-01', '2026-02-01T00:00:00Z', 1_769_904_000],
      }),
      timezone: timeZone.default('UTC').meta({
        description:
          'The time zone of `day` and `month`, and of a `from` and `to` that are days, by its IANA name.',
        examples: ['Europe/Berlin'],
      }),
      group_by: groupBy.optional().meta({
        description: `The dimensions to sum by, separated by commas: ${USAGE_DIMENSIONS.join(', ')}, and \`metadata.<key>\` for a key of \`USAGE_METADATA\`. Left out: one total.`,
        examples: [['external_user', 'day']],
      }),
      external_user: externalId.optional().meta({ description: 'Only calls of this external_user.' }),
      session_id: sessionId.optional().meta({ description: 'Only calls of this session.' }),
      provider: name.optional().meta({ description: 'Only calls of this provider; `mcp` for MCP servers.' }),
      model: name.optional().meta({ description: 'Only calls of this model.' }),
      virtual_key: name.optional().meta({ description: 'Only calls with this virtual key, by its id.' }),
      server: name
        .optional()
        .meta({ description: 'Only calls of this MCP server, by its name in the bundle.' }),
      tool: name.optional().meta({ description: 'Only calls of this MCP tool or method.' }),
      metadata: metadataFilter,
      api_key: apiKeyId
        .optional()
        .meta({ description: 'Only calls of URLs that this API key issued, by its id.' }),
      outcome: z
        .enum(OUTCOME_NAMES, `expected one of ${OUTCOME_NAMES.join(', ')}`)
        .meta({ id: 'LedgerOutcome' })
        .optional()
        .meta({ description: 'Only calls that ended so, as `GET /v1/calls` has it.' }),
      request_id: requestId
        .optional()
        .meta({ description: 'Only the call that answered with this `x-presign-request-id`.' }),
      format: z
        .enum(['json', 'csv'], 'expected one of json, csv')
        .optional()
        .meta({ description: 'Takes precedence over the header `Accept`. Without either: json.' }),
      limit: limitUpTo(USAGE_GROUPS_MAX, USAGE_GROUPS_MAX, 'The most groups to return.'),
      cursor: z.string(CURSOR).max(CURSOR_MAX_CHARS, CURSOR).transform(readUsageCursor).optional().meta({
        description:
          'The next_cursor of the page before. Repeat `group_by`, `timezone` and all filters with it.',
      }),
      top: countUpTo(USAGE_TOP_MAX)
        .optional()
        .meta({
          shownAs: z.int().min(1).max(USAGE_TOP_MAX),
          description:
            'Only so many groups, those of the highest `cost`, the highest first. At the same cost more `calls` are first, then the order of a report without it. Needs `group_by`, and has no further pages.',
        }),
    },
    QUERY,
  )
  .refine(({ top, group_by }) => top === undefined || group_by !== undefined, {
    path: ['top'],
    error: 'needs group_by, which says what the groups are',
  })
  .refine(({ top, cursor }) => top === undefined || cursor === undefined, {
    path: ['top'],
    error: 'has one page; leave out the cursor',
  });
export type UsageQuery = z.output<typeof usageQuery>;

/** Microdollars and counts over a range. A refund is below 0, so a sum can be below 0 too. */
const sums = {
  calls: z.int().meta({ description: 'Calls that gateways admitted. They may have failed later.' }),
  uses: z.int().meta({ description: 'Uses that they took from their limits.' }),
  cost: z.int().meta({ description: 'Microdollars of the calls whose cost is known.' }),
  failed_calls: z
    .int()
    .meta({ description: 'Those of them that failed, whatever the cause: `outcome` has it.' }),
  calls_of_unknown_cost: z.int(),
  input_tokens: z.int().meta({ description: 'As providers reported them.' }),
  output_tokens: z.int().meta({ description: 'As providers reported them.' }),
};
export const USAGE_SUMS = Object.keys(sums) as readonly (keyof typeof sums)[];

/** The sums of the ledger rows that share these values. null: the rows have no value. */
const usageRow = z
  .strictObject({
    external_user: z.string().nullable().optional(),
    session_id: z.guid().optional(),
    model: z.string().nullable().optional(),
    provider: z.string().optional(),
    virtual_key: z.string().nullable().optional(),
    api_key: z.guid().nullable().optional(),
    server: z.string().nullable().optional(),
    tool: z.string().nullable().optional(),
    outcome: z
      .string()
      .nullable()
      .optional()
      .meta({ description: 'How the calls ended, as in a call. null: not recorded.' }),
    day: z.string().optional().meta({ description: 'In `timezone`, `2026-01-31`.' }),
    month: z.string().optional().meta({ description: 'In `timezone`, `2026-01`.' }),
    metadata: z
      .record(z.string(), z.string().nullable())
      .optional()
      .meta({ description: 'By key, for each `metadata.<key>` of `group_by`.' }),
    ...sums,
  })
  .meta({ id: 'UsageRow' });

/** Answer of `GET /v1/usage` as JSON. */
export const usageReport = z
  .strictObject({
    from: z.number().meta({ description: 'Calls settled at this time or later, in seconds, exact.' }),
    to: z.number().meta({
      description: 'Calls settled before this time, in seconds, exact: the next report begins here.',
    }),
    group_by: z.array(dimension),
    next_cursor: z.string().nullable().meta({
      description:
        'The cursor of the next groups. null: these are the last, or the answer to `top`. CSV has it in the header `Link`.',
    }),
    groups: z.int().meta({ description: 'The groups of the whole range, the same on every page.' }),
    data: z.array(usageRow).meta({
      description: 'A row has the dimensions of group_by. null: these calls have no value.',
    }),
    total: z
      .strictObject(sums)
      .meta({ id: 'UsageSums' })
      .meta({ description: 'The sums of the whole range, the same on every page.' }),
  })
  .meta({ id: 'UsageReport' });
export type UsageReport = z.infer<typeof usageReport>;

/** The query of `GET /v1/models`. */
export const modelsQuery = z
  .strictObject(
    {
      provider: z.string().max(64).optional().meta({ description: 'Only models of this provider.' }),
      model: z.string().max(255).optional().meta({
        description: 'Only this model, by any name that a list gives it. Needs `provider`.',
      }),
    },
    QUERY,
  )
  .refine(({ provider, model }) => provider !== undefined || model === undefined, {
    path: ['provider'],
    error: 'name the provider of the model',
  });

const source = z.enum(['providers_file', 'file', 'url', 'bundled']).meta({
  id: 'PriceSource',
  description:
    '`providers_file`: `PROVIDERS_FILE`. `file`, `url`: the list of `PRICES_FILE` or `PRICES_URL`. `bundled`: the list that ships with Presign.',
});
const date = z.string().meta({
  description: "The day of the bundled list's release, or on which the operator's list was first read.",
});

/** The answer of `GET /v1/models`: the models that have a price at this issuer. */
export const modelsAnswer = z
  .strictObject({
    lists: z
      .array(
        z
          .strictObject({
            source,
            id: z.string().meta({ description: 'Changes with the content of the list.' }),
            date,
            waits: z.boolean().meta({
              description:
                'The list has large drops that wait for the operator. Until then its prices count only where they are higher.',
            }),
          })
          .meta({ id: 'PriceList' }),
      )
      .meta({ description: 'The lists in use. The first that prices a model decides.' }),
    data: z.array(
      z
        .strictObject({
          provider: z.string(),
          model: z.string(),
          source,
          date: date
            .nullable()
            .meta({ description: 'The date of the list. null: `PROVIDERS_FILE`, which has none.' }),
          rates: z.record(z.string(), z.int()).meta({
            id: 'Rates',
            description:
              'The highest rate of each unit over all tiers and the next 24 hours, by which calls are held: microdollars for a million tokens, or for one of any other unit.',
          }),
        })
        .meta({ id: 'PricedModel' }),
    ),
  })
  .meta({ id: 'Models' });
export type ModelsAnswer = z.output<typeof modelsAnswer>;
