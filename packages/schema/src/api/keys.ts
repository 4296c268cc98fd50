import { z } from 'zod';
import { EXTERNAL_ID_MAX_CHARS, expected, externalId, optional, perMinute } from './fields.ts';
import { pageOf } from './page.ts';

/** What an API key may do: issue and revoke URLs, read, or everything. */
export const SCOPES = ['presign', 'read', 'admin'] as const;

/** Ten years. */
const VALIDITY_MAX_SECONDS = 315_360_000;
/** `presign_sk_`, 256 random bits and a checksum, both in base62: what a secret scanner looks for. */
export const API_KEY_PATTERN = 'presign_sk_[0-9A-Za-z]{49}';

/** What an owner calls one of the account's keys. */
export const keyName = externalId.refine(
  (text) => text.trim() !== '',
  `expected 1 to ${EXTERNAL_ID_MAX_CHARS} characters, not white space alone`,
);

const SCOPE_LIST = expected(`a list of at least one of ${SCOPES.join(', ')}, each once`);
const scopes = z
  .array(z.enum(SCOPES, expected(`one of ${SCOPES.join(', ')}`)), SCOPE_LIST)
  .min(1, SCOPE_LIST)
  .refine((list) => new Set(list).size === list.length, SCOPE_LIST)
  .meta({ uniqueItems: true });

const VALIDITY = expected(`a whole number of seconds from 1 to ${VALIDITY_MAX_SECONDS} (ten years)`);
const expiresIn = z.int(VALIDITY).min(1, VALIDITY).max(VALIDITY_MAX_SECONDS, VALIDITY);

/** Body of `POST /v1/api-keys`. */
export const apiKeyRequest = z
  .strictObject(
    {
      name: keyName.meta({ description: 'What you call it.' }),
      scopes: scopes.meta({
        description:
          'presign: issue and revoke URLs. read: sessions, usage, virtual keys. admin: everything.',
      }),
      expires_in: optional(expiresIn).meta({
        description: 'Validity in seconds. Left out: it does not expire.',
      }),
      requests_per_minute: optional(perMinute).meta({
        description: "Requests that may be made with it in a minute. Left out: the operator's default.",
      }),
    },
    expected('a JSON object'),
  )
  .meta({ id: 'ApiKeyRequest', examples: [{ name: 'backend', scopes: ['presign'], expires_in: 7_776_000 }] });
export type ApiKeyRequest = z.output<typeof apiKeyRequest>;

const fields = {
  id: z.guid(),
  name: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  hint: z.string().meta({
    description:
      'Its first and last characters, by which you tell keys apart; … alone for a key not made here.',
    examples: ['presign_sk_…x7Qa'],
  }),
  created_at: z.number().meta({ description: 'Unix time in seconds.' }),
  expires_at: z.number().nullable().meta({ description: 'Unix time in seconds; null: never.' }),
  revoked_at: z.number().nullable().meta({ description: 'Unix time in seconds; null: not revoked.' }),
  requests_per_minute: z.int().nullable().meta({ description: "null: the operator's default." }),
  last_used_at: z
    .number()
    .nullable()
    .meta({ description: 'Unix time in seconds, to the minute; null: never used.' }),
};

/** An API key as its account sees it: all but the key. */
export const apiKeyAnswer = z.strictObject(fields).meta({ id: 'ApiKey' });
export type ApiKeyAnswer = z.infer<typeof apiKeyAnswer>;

/** Answer of `POST /v1/api-keys`: the one time that the key is shown. */
export const newApiKeyAnswer = z
  .strictObject({
    ...fields,
    key: z
      .string()
      .regex(new RegExp(`^${API_KEY_PATTERN}$`))
      .meta({ description: 'The key. It is shown this once: only a hash of it is kept.' }),
  })
  .meta({ id: 'NewApiKey' });
export type NewApiKeyAnswer = z.infer<typeof newApiKeyAnswer>;

/** Answer of `GET /v1/api-keys`. */
export const apiKeyPage = pageOf(apiKeyAnswer).meta({ id: 'ApiKeyPage' });
