import * as z from 'zod';
import { TIME_FORM, time, unixSeconds } from '../../fields/fields.ts';
import { meantBy, QUERY } from '../../fields/invalid-request.ts';
import { OUTCOME_NAMES } from './call-outcomes.ts';
import { name } from './reports.ts';

/** The dimensions that sums by the hour can be grouped by. */
export const HOUR_DIMENSIONS = ['provider', 'model', 'server'] as const;
export type HourDimension = (typeof HOUR_DIMENSIONS)[number];

/** The longest range of a report by the hour, in days, and the usual one. */
export const HOURS_DAYS_MAX = 31;
export const HOURS_DAYS = 1;
/** The most rows of an answer. */
export const HOURS_ROWS_MAX = 10_000;

const EXPECTED = `expected a comma-separated list of ${HOUR_DIMENSIONS.join(', ')}, each once`;
const groupBy = z
  .string(EXPECTED)
  .transform((text, context): HourDimension[] => {
    const names = text.split(',');
    const unknown = names.find((each) => !(HOUR_DIMENSIONS as readonly string[]).includes(each));
    if (unknown !== undefined || new Set(names).size < names.length)
      context.addIssue(EXPECTED + meantBy(unknown ?? '', HOUR_DIMENSIONS));
    return names as HourDimension[];
  })
  .meta({
    shownAs: z
      .array(z.enum(HOUR_DIMENSIONS).meta({ id: 'HourDimension' }))
      .min(1)
      .meta({ uniqueItems: true }),
  });

/** Query of `GET /v1/usage/hours`. */
export const hoursQuery = z.strictObject(
  {
    from: time.optional().meta({
      description: `Hours that begin at this time or later. Left out: ${HOURS_DAYS} day before \`to\`. ${TIME_FORM}.`,
    }),
    to: time.optional().meta({
      description: `Hours that begin before this time, at most ${HOURS_DAYS_MAX} days after \`from\`. Left out: now. ${TIME_FORM}.`,
    }),
    group_by: groupBy.optional().meta({
      description: `The dimensions to sum by in addition to the hour, separated by commas: ${HOUR_DIMENSIONS.join(', ')}.`,
    }),
    provider: name.optional().meta({ description: 'Only calls of this provider; `mcp` for MCP servers.' }),
    model: name.optional().meta({ description: 'Only calls of this model.' }),
    server: name.optional().meta({ description: 'Only calls of this MCP server.' }),
  },
  QUERY,
);
export type HoursQuery = z.output<typeof hoursQuery>;

const times = z
  .strictObject({ p50: z.int().nullable(), p95: z.int().nullable() })
  .meta({ id: 'Percentiles', description: 'Milliseconds, at most 9 % off. null: no call has this time.' });

/** Answer of `GET /v1/usage/hours`. */
export const hoursAnswer = z
  .strictObject({
    from: unixSeconds,
    to: unixSeconds,
    data: z
      .array(
        z
          .strictObject({
            hour: unixSeconds.meta({ description: 'When the hour began, in Unix seconds.' }),
            provider: z.string().optional(),
            model: z.string().nullable().optional(),
            server: z.string().nullable().optional(),
            calls: z.int().meta({ description: 'Calls that ended in it.' }),
            failed_calls: z.int().meta({ description: 'Those of them that failed, whatever the cause.' }),
            error_rate: z.number().meta({
              description:
                'The part of the calls that failed by the fault of the provider or of Presign, from 0 to 1.',
            }),
            outcomes: z
              .partialRecord(z.enum(OUTCOME_NAMES), z.int())
              .meta({ id: 'CallsByOutcome' })
              .meta({ description: 'How many calls ended how.' }),
            total_ms: times,
            first_byte_ms: times,
          })
          .meta({ id: 'UsageHour' }),
      )
      .meta({
        description: 'By hour, then by the dimensions of group_by. Hours without a call are left out.',
      }),
  })
  .meta({ id: 'UsageHours' });
export type HoursAnswer = z.infer<typeof hoursAnswer>;
