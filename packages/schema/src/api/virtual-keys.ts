import { z } from 'zod';
import { expected, headerSafe, jsonObject, maxUses, optional } from './fields.ts';
import { keyName } from './keys.ts';
import { microusd } from './money.ts';
import { pageOf } from './page.ts';
import { CONFIG_MAX_BYTES, KEY_MAX_CHARS } from './presign.ts';

const providerKey = headerSafe(KEY_MAX_CHARS).meta({
  description:
    "The provider's API key: sealed before it is stored, and never shown again, nor any part of it.",
});

const BUDGET = 'expected max_uses, cost_limit or both';

/** Body of `POST /v1/virtual-keys`. */
export const virtualKeyRequest = z
  .strictObject(
    {
      provider: z
        .string(expected('a string'))
        .min(1, 'expected the name of a provider, such as "openai"')
        .max(64, 'expected at most 64 characters')
        .meta({ description: 'The provider whose key it is.' }),
      name: keyName.meta({ description: 'What you call it.' }),
      key: providerKey,
      config: optional(jsonObject(CONFIG_MAX_BYTES)).meta({
        description: 'As config of POST /v1/presign, whose own fields go before it.',
        examples: [{ max_tokens: 500 }],
      }),
      budget: optional(
        z
          .strictObject(
            {
              max_uses: optional(maxUses).meta({ description: 'Calls over all its URLs. -1: unlimited.' }),
              cost_limit: optional(microusd).meta({ description: 'Microdollars over all its URLs.' }),
            },
            expected('a JSON object'),
          )
          .refine(({ max_uses, cost_limit }) => (max_uses ?? cost_limit) !== undefined, BUDGET),
      ).meta({ description: 'Limits over all URLs issued with it, beside those of each URL.' }),
    },
    expected('a JSON object'),
  )
  .meta({
    id: 'VirtualKeyRequest',
    examples: [
      {
        provider: 'openai',
        name: 'production',
        key: 'sk-your-openai-key',
        config: { max_tokens: 500 },
        budget: { cost_limit: 50_000_000 },
      },
    ],
  });
export type VirtualKeyRequest = z.output<typeof virtualKeyRequest>;

/** Body of `POST /v1/virtual-keys/{id}/rotate`. */
export const rotationRequest = z
  .strictObject({ key: providerKey }, expected('a JSON object'))
  .meta({ id: 'RotationRequest', examples: [{ key: 'sk-your-next-openai-key' }] });

/** What is no id names nothing; refused before it reaches Postgres, which takes no NUL in a text. */
export const virtualKeyParams = z.object({ id: z.string().regex(/^[\x21-\x7e]{1,255}$/) });

const budget = z
  .strictObject({
    max_uses: z.int().meta({ description: '-1: unlimited.' }),
    cost_limit: microusd.nullable().meta({ description: 'Microdollars; null: no limit.' }),
    settled: z
      .strictObject({ used: z.int(), spent: microusd })
      .meta({ description: 'Uses and microdollars in the ledger.' }),
    live: z
      .strictObject({ used: z.int(), spent: microusd, held: microusd })
      .nullable()
      .meta({ description: 'With calls under way; null when Redis does not answer.' }),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof budget>;

/** A virtual key as its account sees it: nothing of the key itself. */
export const virtualKeyAnswer = z
  .strictObject({
    id: z.string().meta({ description: 'What virtual_key of POST /v1/presign takes.' }),
    name: z.string(),
    provider: z.string(),
    config: z.record(z.string(), z.unknown()).nullable(),
    budget: budget.nullable(),
    version: z.int().meta({ description: '1, and one more with every rotation.' }),
    created_at: z.number().meta({ description: 'Unix time in seconds.' }),
    revoked_at: z.number().nullable().meta({ description: 'Unix time in seconds; null: not deleted.' }),
  })
  .meta({ id: 'VirtualKey' });
export type VirtualKeyAnswer = z.infer<typeof virtualKeyAnswer>;

/** Answer of `GET /v1/virtual-keys`. */
export const virtualKeyPage = pageOf(virtualKeyAnswer).meta({ id: 'VirtualKeyPage' });
