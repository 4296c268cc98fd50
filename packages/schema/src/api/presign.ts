import * as z from 'zod';
import { llmClaims } from '../claims.ts';
import {
  addressRange,
  bytes,
  CONFIG_MAX_BYTES,
  callConfig,
  DEFAULT_EXPIRES_IN,
  externalId,
  givenOneOf,
  jsonObject,
  METADATA_MAX_BYTES,
  NO_NUL,
  optional,
  providerKey,
  sessionId,
  storable,
} from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { llmLimits } from '../fields/limits.ts';
import { warnings } from './warning.ts';

/** One year in seconds: the meaning of `expires_in: -1`, and the longest validity of an LLM URL. */
export const ONE_YEAR_SECONDS = 31_536_000;
export const PATHS_MAX = 50;
/** All paths of a grant together, because they are in its token, which has at most 3,072 characters. */
export const PATHS_MAX_BYTES = 1536;
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const VALIDITY = expected(`-1 (one year) or a whole number of seconds from 1 to ${ONE_YEAR_SECONDS}`);
const expiresIn = z
  .int(VALIDITY)
  .refine((n) => n === -1 || (n >= 1 && n <= ONE_YEAR_SECONDS), VALIDITY)
  .meta({ minimum: -1, maximum: ONE_YEAR_SECONDS, not: { const: 0 } });

/** The issuer made this id. Another text is refused before it reaches Postgres, which accepts no NUL in a text. */
export const virtualKeyId = z
  .string(expected('a string'))
  .regex(/^[\x21-\x7e]{1,255}$/, 'expected the id of a virtual key: 1 to 255 visible ASCII characters');

export const MODELS_MAX = 50;
const MODEL = 'expected the name of a model: 1 to 255 visible ASCII characters without spaces';
/** Names of models as calls write them, compared to the letter. */
export const modelNames = z
  .array(
    z.string(expected('a string')).regex(/^[\x21-\x7e]{1,255}$/, MODEL),
    expected('an array of names of models'),
  )
  .min(1, 'expected at least one model; leave the field out to allow all')
  .max(MODELS_MAX, `expected at most ${MODELS_MAX} models`);

/**
 * The form of a path in the OpenAPI document: segments without `.`, `..` and encoded characters that a server may read
 * otherwise. The issuer judges paths by `checkPathPattern`.
 */
const CHARACTERS =
  "(?:[A-Za-z0-9_~!$&'()*+,;=:@-]|%(?:2[1246-9A-Ca-c]|3[A-Ea-e]|40|5[BDEbde]|60|7[B-Db-d]|[89A-Fa-f][0-9A-Fa-f]))+";
const SEGMENT = `\\.?${CHARACTERS}(?:\\.${CHARACTERS})*\\.?`;
const pathForm = z
  .string()
  .max(PATHS_MAX_BYTES)
  .regex(new RegExp(`^/(?:${SEGMENT}(?:/${SEGMENT})*/?)?$`));

const BODY_BYTES_MAX = 1_073_741_824;
const BODY_BYTES = expected(`a whole number of bytes from 1 to ${BODY_BYTES_MAX}`);
export const bodyBytes = z.int(BODY_BYTES).min(1, BODY_BYTES).max(BODY_BYTES_MAX, BODY_BYTES);

const FIELDS_MAX = 100;
export const fieldNames = z
  .array(
    storable(
      z
        .string(expected('a string'))
        .min(1, 'expected the name of a field')
        .max(255, 'expected at most 255 characters'),
    ).meta({ pattern: NO_NUL }),
    expected('an array of names of fields'),
  )
  .max(FIELDS_MAX, `expected at most ${FIELDS_MAX} fields`);

const BIND_MAX = 50;
const ORIGIN =
  'expected an origin as browsers send it, such as "https://app.example.com": in lower case, without a path and without the default port';
/** Custom schemes are those of browser extensions and app shells. */
const isOrigin = (text: string): boolean =>
  /^https?:/.test(text)
    ? URL.canParse(text) && new URL(text).origin === text
    : /^[a-z][a-z0-9+.-]{1,31}:\/\/[\w.-]{1,200}$/.test(text);
const origin = z
  .string(expected('a string'))
  .max(255, 'expected at most 255 characters')
  .refine(isOrigin, ORIGIN);
const someOf = <T extends z.ZodType>(item: T, what: string) =>
  z
    .array(item, expected(`an array of ${what}`))
    .min(1, `expected at least one of ${what}; leave the field out to allow all`)
    .max(BIND_MAX, `expected at most ${BIND_MAX} ${what}`);

/** Where calls may come from. */
export const bind = z
  .strictObject(
    {
      origins: optional(someOf(origin, 'origins')).meta({
        description: `The origins whose pages may call the URL, at most ${BIND_MAX}. A call without the header Origin is refused, too.`,
      }),
      ip_ranges: optional(someOf(addressRange, 'addresses and ranges')).meta({
        description: `The client addresses that may call the URL, at most ${BIND_MAX} of IPv4 and IPv6, or ranges of them in CIDR form.`,
      }),
    },
    expected('an object with origins, ip_ranges or both'),
  )
  .refine(({ origins, ip_ranges }) => origins !== undefined || ip_ranges !== undefined, {
    error: 'expected origins, ip_ranges or both',
  })
  .meta({ id: 'BindRequest', ...givenOneOf('origins', 'ip_ranges') });

/** The conditions of the calls of an LLM URL, in addition to its limits. A gateway needs to know each of them. */
const conditionFields = {
  max_body_bytes: optional(bodyBytes).meta({
    description:
      'How many bytes the body of a call may have, as it is sent and as it is decoded. Left out: as many as the gateway takes.',
    examples: [65_536],
  }),
  allowed_fields: optional(fieldNames).meta({
    description:
      'The top-level fields that the JSON body of a call may have, at most 100. Fields that config sets need not be named. Left out: all.',
    examples: [['messages', 'stream']],
  }),
  sockets: optional(z.boolean(expected('true or false')))
    .transform((value) => (value ? (true as const) : undefined))
    .meta({
      description:
        'true: the URL can also be opened as a WebSocket, where its provider has one: OpenAI on `/v1/responses`. Each turn is a call. Left out: an upgrade is refused with 426.',
    }),
};

const paths = z
  .preprocess(
    (value) => (typeof value === 'string' ? [value] : value),
    z
      .array(
        z.string('expected a string'),
        expected('a path, such as "/v1/chat/completions", or an array of paths'),
      )
      .refine((list) => list.length >= 1 && list.length <= PATHS_MAX, {
        error: `expected 1 to ${PATHS_MAX} paths`,
      })
      .refine((list) => bytes(list.join('')) <= PATHS_MAX_BYTES, {
        error: `expected at most ${PATHS_MAX_BYTES} bytes for all paths together`,
      }),
  )
  .meta({ shownAs: z.union([pathForm, z.array(pathForm).min(1).max(PATHS_MAX)]) });

const METHOD = expected(`one of ${METHODS.join(', ')}`);
const method = z
  .string(METHOD)
  .transform((text) => text.toUpperCase())
  .pipe(z.enum(METHODS, METHOD))
  // Any case of letters is accepted. The OpenAPI document shows upper case only.
  .meta({ shownAs: z.enum(METHODS).meta({ id: 'CallMethod' }) });

/** Fields of both kinds of issuing: where calls may come from, and the caller's own ids and metadata. */
export const issueFields = {
  bind: optional(bind).meta({
    description: 'The pages and addresses that may call the URL. Left out: all.',
    examples: [{ origins: ['https://app.example.com'], ip_ranges: ['192.0.2.0/24', '2001:db8::/32'] }],
  }),
  external_session: optional(externalId).meta({
    description: 'Your own id of a session. Sessions can be filtered by it.',
  }),
  external_user: optional(externalId).meta({
    description: 'Your own id of the user to be billed. Usage and sessions can be filtered by it.',
  }),
  session_id: optional(sessionId).meta({
    description:
      'The session to join. It must belong to this account and not be revoked. An id that does not exist yet creates a session. Left out: a new session.',
  }),
  metadata: optional(jsonObject(METADATA_MAX_BYTES)).meta({
    description: `Your own data, at most ${METADATA_MAX_BYTES} bytes of JSON. GET /v1/sessions/{id} returns it.`,
  }),
};

/** The expiry of an issued URL. */
export const expiresAt = z.int().meta({
  description: 'Unix time in seconds. The URL is refused from then on.',
  examples: [1_767_225_600],
});

/** The grant of an issued URL. */
export const grantId = z.guid().meta({ description: 'The id of its grant, for `/v1/grants/{id}`.' });

/**
 * Body of `POST /v1/presign`. Unknown fields are refused, so that a mistyped limit never issues an unlimited URL.
 * `@presign/providers` checks the form of paths.
 */
export const presignRequest = z
  .strictObject(
    {
      provider: z
        .string(expected('a string'))
        .min(1, 'expected the name of a provider, such as "openai"')
        .max(64, 'expected at most 64 characters')
        .meta({
          description:
            'openai, anthropic, google, cohere, groq, another built-in provider, or one that the operator added.',
        }),
      path: paths.meta({
        description: `One allowed path, or 1 to ${PATHS_MAX}. A path is everything after the provider's origin, version prefix included. The URL ends in the first path. In the others, * stands for any characters except /.`,
      }),
      client_api_key: optional(providerKey).meta({
        description:
          "The provider's API key, or for a cloud the JSON text of its credential. It is encrypted before it is stored. Required without virtual_key.",
      }),
      virtual_key: optional(virtualKeyId).meta({
        description: 'Id of a virtual key of this provider. It takes precedence over client_api_key.',
      }),
      method: optional(method)
        .transform((value) => value ?? 'POST')
        .meta({ description: 'The HTTP method of the calls.', default: 'POST' }),
      expires_in: optional(expiresIn)
        .transform((value) => value ?? DEFAULT_EXPIRES_IN)
        .meta({ description: 'Validity in seconds. -1: one year.', default: DEFAULT_EXPIRES_IN }),
      config: optional(callConfig).meta({
        description: `Fields that replace those of the holder in the JSON body of every call, such as model or max_tokens. At most ${CONFIG_MAX_BYTES} bytes.`,
        examples: [{ model: 'gpt-4.1-mini', max_tokens: 500 }],
      }),
      models: optional(modelNames).meta({
        description: `The models that calls may use, 1 to ${MODELS_MAX} names. A call that does not say which model it uses is refused. Left out: all.`,
        examples: [['gpt-4.1-mini', 'gpt-4.1-nano']],
      }),
      ...conditionFields,
      ...llmLimits,
      ...issueFields,
    },
    expected('a JSON object'),
  )
  .refine((body) => body.client_api_key !== undefined || body.virtual_key !== undefined, {
    error: "send the provider's API key here, or the id of a virtual key in virtual_key",
    path: ['client_api_key'],
  })
  .meta({
    id: 'PresignRequest',
    ...givenOneOf('client_api_key', 'virtual_key'),
    examples: [
      {
        provider: 'openai',
        path: '/v1/chat/completions',
        client_api_key: 'sk-your-openai-key',
        expires_in: 600,
        max_uses: 20,
        cost_limit: 250_000,
        config: { model: 'gpt-4.1-mini', max_tokens: 500 },
        external_user: 'user-42',
      },
    ],
  });
export type PresignRequest = z.infer<typeof presignRequest>;

/** The conditions of a grant, as they are stored and as its gateway enforces them. */
export type Conditions = {
  readonly max_body_bytes?: number | undefined;
  readonly allowed_fields?: string[] | undefined;
  readonly bind?: Bind | undefined;
  /** The URL can be opened as a socket. */
  readonly sockets?: true | undefined;
};

/** Where calls may come from. A part that is left out allows all. */
export type Bind = {
  readonly origins?: string[] | undefined;
  readonly ip_ranges?: string[] | undefined;
};

/** The conditions that a request states. Null: none. */
export function conditionsOf(conditions: Conditions): Conditions | null {
  const { max_body_bytes, allowed_fields, bind, sockets } = conditions;
  const all = Object.entries({ max_body_bytes, allowed_fields, bind, sockets });
  const stated = all.filter(([, value]) => value !== undefined);
  return stated.length > 0 ? Object.fromEntries(stated) : null;
}

/** The conditions of a grant in an answer. */
export const bindAnswer = z
  .strictObject({
    origins: z.array(z.string()).optional(),
    ip_ranges: z.array(z.string()).optional(),
  })
  .meta({ id: 'Bind' });
export const conditionsAnswer = z
  .strictObject({
    max_body_bytes: z.int().optional(),
    allowed_fields: z.array(z.string()).optional(),
    bind: bindAnswer.optional(),
    sockets: z.literal(true).optional(),
  })
  .meta({ id: 'Conditions' })
  .nullable()
  .meta({ description: 'Those that it was issued with. null: none.' });

/** Answer of `POST /v1/presign`. */
export const presignAnswer = z
  .strictObject({
    url: z
      .url()
      .meta({ description: 'The URL that the holder calls instead of the provider. It contains no key.' }),
    session_id: z.guid(),
    expires_at: expiresAt,
    grant_id: grantId,
    claims: llmClaims.meta({
      description: 'The claims that its token carries. Anyone with the URL can read them.',
    }),
    warnings,
  })
  .meta({
    id: 'PresignAnswer',
    examples: [
      {
        url: 'https://gateway.example.com/llm/t/v4.public.eyJ.../v1/chat/completions',
        session_id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
        expires_at: 1_767_225_600,
        grant_id: '9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69',
        claims: {
          jti: '9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69',
          sub: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
          iat: '2025-12-31T23:50:00.000Z',
          exp: '2026-01-01T00:00:00.000Z',
          iss: 'https://presign.example.com',
          aud: 'https://gateway.example.com',
          prt: 17,
          knd: 'llm',
          prv: 'openai',
          mth: 'POST',
          pth: ['/v1/chat/completions'],
        },
      },
    ],
  });
export type PresignAnswer = z.infer<typeof presignAnswer>;

/** The caller's `Idempotency-Key` header. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'expected 1 to 255 visible ASCII characters');
