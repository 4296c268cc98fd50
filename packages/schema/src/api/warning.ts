import * as z from 'zod';

/** The codes with which a gateway would refuse the calls, by the field at fault. */
export const WARNING_CODES = { cost_limit: 'cost_limit_too_low', models: 'price_unknown' } as const;

/** Something that a caller may have mistyped. The URL is issued all the same. */
export const warning = z
  .strictObject({
    code: z.enum(Object.values(WARNING_CODES)).meta({
      id: 'WarningCode',
      description: 'The code with which a gateway would refuse the calls.',
    }),
    param: z.string().meta({ description: 'The field of the request.' }),
    message: z.string(),
    needed: z.int().nullable().meta({
      description: 'Microdollars that the cheapest call needs. null: no call has a price.',
    }),
  })
  .meta({ id: 'Warning' });
export type Warning = z.infer<typeof warning>;

/** The field of an answer that has them. It is left out where there are none. */
export const warnings = z.array(warning).optional().meta({
  description:
    'Under its `cost_limit` no call of this URL can pass. It is issued all the same, unless the policy of the API key has `refuse_warnings`.',
});
