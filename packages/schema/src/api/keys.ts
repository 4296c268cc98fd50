import * as z from 'zod';
import {
  callConfig,
  EXTERNAL_ID_MAX_CHARS,
  externalId,
  givenOneOf,
  maxUses,
  microusd,
  optional,
  perMinute,
  providerKey,
  storedConfig,
  unixSeconds,
  unixSecondsOr,
} from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { pageOf } from '../fields/page.ts';
import { keyPolicy, keyPolicyAnswer } from './policy.ts';

/** The scopes of an API key: issue and revoke URLs, read, everything in its account, and all accounts. */
export const SCOPES = ['presign', 'read', 'admin', 'operator'] as const;

/** A scope in an answer. */
export const scope = z.enum(SCOPES).meta({ id: 'Scope' });

/** Ten years. */
const VALIDITY_MAX_SECONDS = 315_360_000;
/** The pattern for secret scanners: `presign_sk_`, then 256 random bits and a checksum in base62. */
export const API_KEY_PATTERN = 'presign_sk_[0-9A-Za-z]{49}';

/** The owner's name for a key. */
export const keyName = externalId
  .refine(
    (text) => text.trim() !== '',
    `expected 1 to ${EXTERNAL_ID_MAX_CHARS} characters, not white space alone`,
  )
  .meta({ minLength: 1, maxLength: EXTERNAL_ID_MAX_CHARS, pattern: '^[^\\x00]*[^\\s\\x00][^\\x00]*$' });

const SCOPE_LIST = expected(`a list of at least one of ${SCOPES.join(', ')}, each once`);
/** The scopes of a key. */
export const keyScopes = z
  .array(z.enum(SCOPES, expected(`one of ${SCOPES.join(', ')}`)).meta({ id: 'Scope' }), SCOPE_LIST)
  .min(1, SCOPE_LIST)
  .refine((list) => new Set(list).size === list.length, SCOPE_LIST)
  .meta({ uniqueItems: true });

const VALIDITY = expected(`a whole number of seconds from 1 to ${VALIDITY_MAX_SECONDS} (ten years)`);
const expiresIn = z.int(VALIDITY).min(1, VALIDITY).max(VALIDITY_MAX_SECONDS, VALIDITY);

/** Body of `POST /v1/api-keys`. */
export const apiKeyRequest = z
  .strictObject(
    {
      name: keyName.meta({ description: 'Your name for it.' }),
      scopes: keyScopes.meta({
        description:
          'presign: issue and revoke URLs. read: read sessions, usage, virtual keys and the audit log. admin: everything in the account. operator: create, suspend and delete accounts.',
      }),
      expires_in: optional(expiresIn).meta({
        description: 'Validity in seconds. Left out: it does not expire.',
      }),
      requests_per_minute: optional(perMinute).meta({
        description: "How many requests it may make in a minute. Left out: the operator's default.",
      }),
      policy: optional(keyPolicy).meta({
        description:
          'The URLs that it may issue. Not for a key with the scope admin or operator, which could create another key. Left out: all.',
      }),
    },
    expected('a JSON object'),
  )
  .refine(
    ({ scopes, policy }) => !policy || !scopes.some((each) => each === 'admin' || each === 'operator'),
    {
      error:
        'a key with the scope admin or operator can create keys without it; expected the scopes presign, read or both',
      path: ['policy'],
    },
  )
  .meta({
    id: 'ApiKeyRequest',
    not: {
      required: ['policy', 'scopes'],
      properties: {
        policy: { type: 'object' },
        scopes: { type: 'array', items: {}, contains: { enum: ['admin', 'operator'] } },
      },
    },
    examples: [
      {
        name: 'backend',
        scopes: ['presign'],
        expires_in: 7_776_000,
        policy: {
          providers: ['openai'],
          models: ['gpt-4.1-mini'],
          highest: { cost_limit: 250_000, expires_in: 900 },
        },
      },
    ],
  });
export type ApiKeyRequest = z.output<typeof apiKeyRequest>;

const fields = {
  id: z.guid(),
  name: z.string(),
  scopes: z.array(scope),
  hint: z.string().meta({
    description:
      'Its first and last characters, to recognise it. Only … for a key that the issuer did not make.',
    examples: ['presign_sk_…x7Qa'],
  }),
  created_at: unixSeconds,
  expires_at: unixSecondsOr('never'),
  revoked_at: unixSecondsOr('not revoked'),
  requests_per_minute: z.int().nullable().meta({ description: "null: the operator's default." }),
  policy: keyPolicyAnswer.nullable().meta({ description: 'The URLs that it may issue. null: all.' }),
  revision: z.int().meta({ description: '1. Every change adds 1.' }),
  last_used_at: z
    .number()
    .nullable()
    .meta({ description: 'Unix time in seconds, to the minute; null: never used.' }),
};

/** An API key as its account sees it: all but the key. */
export const apiKeyAnswer = z.strictObject(fields).meta({ id: 'ApiKey' });
export type ApiKeyAnswer = z.infer<typeof apiKeyAnswer>;

/** Answer of `POST /v1/api-keys`, the only one that shows the key. */
export const newApiKeyAnswer = z
  .strictObject({
    ...fields,
    key: z
      .string()
      .regex(new RegExp(`^${API_KEY_PATTERN}$`))
      .meta({ description: 'The key. Only this answer shows it: the issuer stores only its hash.' }),
  })
  .meta({ id: 'NewApiKey' });
export type NewApiKeyAnswer = z.infer<typeof newApiKeyAnswer>;

/** Answer of `GET /v1/api-keys`. */
export const apiKeyPage = pageOf(apiKeyAnswer).meta({ id: 'ApiKeyPage' });

const storedKey = providerKey.meta({
  description:
    "The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored, and no answer shows any part of it.",
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
      name: keyName.meta({ description: 'Your name for it.' }),
      key: storedKey,
      config: optional(callConfig).meta({
        description: 'As config of POST /v1/presign, whose fields take precedence over these.',
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
          .refine(({ max_uses, cost_limit }) => (max_uses ?? cost_limit) !== undefined, BUDGET)
          .meta({ id: 'VirtualKeyBudgetRequest', ...givenOneOf('max_uses', 'cost_limit') }),
      ).meta({
        description:
          'Limits over all URLs issued with it, in addition to the limits of each URL. Left out: none. A change can set them later.',
      }),
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
  .strictObject({ key: storedKey }, expected('a JSON object'))
  .meta({ id: 'RotationRequest', examples: [{ key: 'sk-your-next-openai-key' }] });

/** Another text names no key. It is refused before it reaches Postgres, which accepts no NUL in a text. */
export const virtualKeyParams = z.object({ id: z.string().regex(/^[\x21-\x7e]{1,255}$/) });

const budget = z
  .strictObject({
    max_uses: z.int().nullable().meta({ description: 'null: no limit.' }),
    cost_limit: microusd.nullable().meta({ description: 'Microdollars; null: no limit.' }),
    settled: z
      .strictObject({ used: z.int(), spent: microusd })
      .meta({ description: 'Uses and microdollars in the ledger.' }),
    live: z
      .strictObject({ used: z.int(), spent: microusd, held: microusd })
      .meta({ id: 'VirtualKeyLiveFigures' })
      .nullable()
      .meta({ description: 'Running calls included; null when Redis does not answer.' }),
  })
  .meta({ id: 'Budget' });
export type Budget = z.infer<typeof budget>;

/** A virtual key as its account sees it, without the key itself. */
export const virtualKeyAnswer = z
  .strictObject({
    id: z.string().meta({ description: 'The value for virtual_key of POST /v1/presign.' }),
    name: z.string(),
    provider: z.string(),
    config: storedConfig.nullable(),
    budget: budget.meta({ description: 'Its limits, and the uses and spending of all its URLs.' }),
    version: z.int().meta({ description: '1. Every rotation adds 1.' }),
    revision: z.int().meta({ description: '1. Every change of its name, config or budget adds 1.' }),
    created_at: unixSeconds,
    revoked_at: unixSecondsOr('not deleted'),
  })
  .meta({ id: 'VirtualKey' });
export type VirtualKeyAnswer = z.infer<typeof virtualKeyAnswer>;

/** Answer of `GET /v1/virtual-keys`. */
export const virtualKeyPage = pageOf(virtualKeyAnswer).meta({ id: 'VirtualKeyPage' });
