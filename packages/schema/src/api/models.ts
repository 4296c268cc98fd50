import { z } from 'zod';
import { QUERY } from './invalid-request.ts';

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
  description:
    '`providers_file`: `PROVIDERS_FILE`. `file`, `url`: the list of `PRICES_FILE` or `PRICES_URL`. `bundled`: the list that ships with Presign.',
});
const date = z.string().meta({
  description: "The day of the bundled list's release, or on which the operator's list was first read.",
});

/** The answer of `GET /v1/models`: the models that have a price at this issuer. */
export const modelsAnswer = z.strictObject({
  lists: z
    .array(
      z.strictObject({
        source,
        id: z.string().meta({ description: 'Changes with the content of the list.' }),
        date,
        waits: z.boolean().meta({
          description:
            'The list has large drops that wait for the operator. Until then its prices count only where they are the dearer.',
        }),
      }),
    )
    .meta({ description: 'The lists in use. The first that prices a model decides.' }),
  data: z.array(
    z.strictObject({
      provider: z.string(),
      model: z.string(),
      source,
      date: date
        .nullable()
        .meta({ description: 'The date of the list. null: `PROVIDERS_FILE`, which has none.' }),
      rates: z.record(z.string(), z.int()).meta({
        description:
          'The dearest rate of each unit over all tiers and the next 24 hours, by which calls are held: microdollars for a million tokens, or for one of any other unit.',
      }),
    }),
  ),
});
export type ModelsAnswer = z.output<typeof modelsAnswer>;
