import * as z from 'zod';
import { callConfig, perMinute } from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { changedFields } from '../fields/limits.ts';
import { keyName, keyScopes } from './keys.ts';
import { keyPolicy } from './policy.ts';

const TIME = expected('a time in whole Unix seconds, or null');
/** The end of the year 9999: later times have no common form. */
const TIME_MAX = 253_402_300_799;

const SOME_OF_KEY = 'expected at least one of name, scopes, expires_at, requests_per_minute and policy';

/** Whether a change has a field. */
export const hasField = (change: object): boolean =>
  Object.values(change).some((value) => value !== undefined);

/** Body of `PATCH /v1/api-keys/{id}`. Fields that are left out stay as they are. */
export const apiKeyChange = z
  .strictObject(
    {
      name: keyName.optional().meta({ description: 'Your name for it.' }),
      scopes: keyScopes
        .optional()
        .meta({ description: 'Some of the scopes that it has. A new key can have others.' }),
      expires_at: z
        .int(TIME)
        .min(0, TIME)
        .max(TIME_MAX, TIME)
        .nullable()
        .optional()
        .meta({ description: 'When it expires, in Unix seconds. null: never.' }),
      requests_per_minute: perMinute
        .nullable()
        .optional()
        .meta({ description: "How many requests it may make in a minute. null: the operator's default." }),
      policy: keyPolicy.nullable().optional().meta({
        description: 'The URLs that it may issue from now on, instead of the policy that it had. null: all.',
      }),
    },
    expected('a JSON object'),
  )
  .refine(hasField, SOME_OF_KEY)
  .meta({ id: 'ApiKeyChange', minProperties: 1, examples: [{ name: 'backend', requests_per_minute: 600 }] });
export type ApiKeyChange = z.output<typeof apiKeyChange>;

const SOME_OF_BUDGET = 'expected max_uses, cost_limit or both';

/** Body of `PATCH /v1/virtual-keys/{id}`. Fields that are left out stay as they are. */
export const virtualKeyChange = z
  .strictObject(
    {
      name: keyName.optional().meta({ description: 'Your name for it.' }),
      config: callConfig
        .nullable()
        .optional()
        .meta({ description: 'Replaces all of it, for URLs that are issued from now on. null: none.' }),
      budget: z
        .strictObject(
          {
            max_uses: changedFields.max_uses.meta({
              description:
                'Calls over all its URLs, those that were made included. null, -1: unlimited. 0: no call passes.',
            }),
            cost_limit: changedFields.cost_limit.meta({
              description: 'Microdollars over all its URLs, those that are spent included. null: no limit.',
            }),
          },
          expected('a JSON object'),
        )
        .refine(hasField, SOME_OF_BUDGET)
        .meta({ id: 'VirtualKeyBudgetChange', minProperties: 1 })
        .nullable()
        .optional()
        .meta({ description: 'The limits of its budget. null: none. The counted figures stay.' }),
    },
    expected('a JSON object'),
  )
  .refine(hasField, 'expected at least one of name, config and budget')
  .meta({
    id: 'VirtualKeyChange',
    minProperties: 1,
    examples: [{ name: 'production', budget: { cost_limit: 100_000_000 } }],
  });
export type VirtualKeyChange = z.output<typeof virtualKeyChange>;
