import * as z from 'zod';
import { microusd } from '../../fields/fields.ts';
import { QUERY } from '../../fields/invalid-request.ts';
import { limitUpTo } from '../../fields/page.ts';
import { USAGE_DAYS } from './reports.ts';

/** The limit that refused a call. */
const LIMIT_OWNERS = ['url', 'virtual_key', 'budget'] as const;

/** Which limit refused a call, with its figures: microdollars for money, else uses, tokens or calls. Those that the refusal has. */
const figures = z.object({
  limit_of: z.enum(LIMIT_OWNERS).optional(),
  /** The shared budget, if it is of one. */
  budget: z.string().optional(),
  limit: microusd.optional(),
  used: microusd.optional(),
  needed: microusd.optional(),
  remaining: microusd.optional(),
});

/** The figures of a refused call, and the socket on which it was to be a turn. */
export type RefusedFigures = z.infer<typeof figures> & {
  readonly connection?: string | undefined;
  readonly turn?: number | undefined;
};

/** A refused call as a gateway sends it to the issuers. The issuer adds what the grant's row has. */
const refusedCall = z.object({
  rid: z.guid(),
  /** How long ago it was, in ms, when it was sent. */
  ago: z.int().nonnegative(),
  sta: z.int(),
  rsn: z.string().optional(),
  mod: z.string().optional(),
  tol: z.string().optional(),
  fig: figures.optional().catch(undefined),
  /** The socket on which it was to be a turn, and the number that the turn would have had. */
  con: z.guid().optional().catch(undefined),
  trn: z.int().positive().optional().catch(undefined),
  /** The length of its body. */
  siz: z.int().nonnegative().optional().catch(undefined),
});
export type RefusedCall = z.infer<typeof refusedCall>;

/** Calls of one grant that were refused with one code, and perhaps for one name, since the gateway sent the last ones. */
export const refusedEntry = z.object({
  grt: z.guid(),
  cod: z.string(),
  nam: z.string().optional(),
  /** How many. */
  n: z.int().positive(),
  /** Those of them that are kept. */
  kept: z.array(refusedCall),
});
export type RefusedEntry = z.infer<typeof refusedEntry>;

/** How a listed call was refused. */
export const refusal = z
  .strictObject({
    code: z.string().meta({ description: 'The code of the error that the holder got.' }),
    reason: z
      .string()
      .nullable()
      .meta({ description: 'Says more than the code, as in the log. null: it says it all.' }),
    name: z
      .string()
      .nullable()
      .meta({ description: 'The field, kind or model for which no bound or price is known.' }),
    limit_of: z
      .enum(LIMIT_OWNERS)
      .meta({ id: 'LimitOwner' })
      .nullable()
      .meta({ description: 'Whose limit refused it. null: no such limit did.' }),
    budget: z.string().nullable().meta({ description: 'The id of the shared budget, if it is of one.' }),
    limit: z
      .int()
      .nullable()
      .meta({ description: 'The limit: microdollars for money, else uses, tokens or calls.' }),
    used: z.int().nullable().meta({ description: 'How much of it was used, in the same unit.' }),
    needed: z.int().nullable().meta({ description: 'How much the call needed.' }),
    remaining: z.int().nullable().meta({ description: 'How much was left.' }),
    body_bytes: z
      .int()
      .nullable()
      .meta({ description: 'The length of its body. null: the holder did not state it.' }),
  })
  .meta({ id: 'RefusalOfCall' });

/** How many days refusals can be read for, the present one included. */
export const REFUSAL_DAYS = 90;

/** Query of `GET /v1/refusals`. */
export const refusalsQuery = z.strictObject(
  {
    days: limitUpTo(REFUSAL_DAYS, USAGE_DAYS, 'How many days (UTC) to read, the present one included.'),
  },
  QUERY,
);

/** Answer of `GET /v1/refusals`. */
export const refusalsAnswer = z
  .strictObject({
    from: z.string().meta({ description: 'The first day, in UTC: `2026-01-31`.' }),
    to: z.string().meta({ description: 'The present day, in UTC.' }),
    data: z
      .array(
        z
          .strictObject({
            day: z.string().meta({ description: 'In UTC, `2026-01-31`.' }),
            code: z.string().meta({ description: 'The code of the error that the holder got.' }),
            calls: z.int().meta({ description: 'How many calls were refused with it.' }),
            names: z
              .array(z.strictObject({ name: z.string(), calls: z.int() }).meta({ id: 'RefusedName' }))
              .meta({
                description:
                  'The fields, kinds and models for which no bound or price is known, with how many of these calls each, the most first. `other`: calls whose names are too many or too long. Empty with other codes.',
              }),
          })
          .meta({ id: 'RefusalCount' }),
      )
      .meta({ description: 'By day, then by code. Days and codes without a refusal are left out.' }),
  })
  .meta({ id: 'Refusals' });

export type RefusalsAnswer = z.infer<typeof refusalsAnswer>;
