import { z } from 'zod';
import { allFinite, isJsonObject, nestsAtMost } from './json.ts';
import { microusd } from './money.ts';

/** One year in seconds: what `expires_in: -1` means, and the longest validity of an LLM URL. */
export const ONE_YEAR_SECONDS = 31_536_000;
export const DEFAULT_EXPIRES_IN = 3600;
export const METADATA_MAX_BYTES = 65_536;
export const CONFIG_MAX_BYTES = 16_384;
export const EXTERNAL_ID_MAX_CHARS = 255;
export const PATHS_MAX = 50;
/** All paths of a grant together: they ride in a token of at most 3,072 characters. */
export const PATHS_MAX_BYTES = 1536;
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const JSON_MAX_DEPTH = 64;

const bytes = (text: string) => new TextEncoder().encode(text).length;

/** What a field must be: one sentence for a wrong type and a wrong value, so that it can be mended at once. */
const expected = (what: string) => ({
  error: ({ input }: { input?: unknown }) =>
    input === undefined ? 'this field is required' : `expected ${what}`,
});

/** An optional field: `null` means omitted. */
const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

const VALIDITY = expected(`-1 (one year) or a whole number of seconds from 1 to ${ONE_YEAR_SECONDS}`);
const expiresIn = z.int(VALIDITY).refine((n) => n === -1 || (n >= 1 && n <= ONE_YEAR_SECONDS), VALIDITY);

const USES = expected(`-1 (unlimited) or a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`);
const maxUses = z.int(USES).refine((n) => n === -1 || n >= 1, USES);

const externalId = z
  .string(expected('a string'))
  .refine((text) => [...text].length <= EXTERNAL_ID_MAX_CHARS, {
    error: `expected at most ${EXTERNAL_ID_MAX_CHARS} characters`,
    abort: true,
  })
  .refine((text) => text.isWellFormed() && !text.includes('\0'), {
    error: 'expected Unicode text without NUL or lone surrogates',
  });

const jsonObject = (maxBytes: number) =>
  z
    .custom<Record<string, unknown>>(isJsonObject, expected('a JSON object'))
    .refine((value) => nestsAtMost(JSON_MAX_DEPTH, value), {
      error: `expected at most ${JSON_MAX_DEPTH} levels of nesting`,
      abort: true,
    })
    .refine(allFinite, {
      error: 'expected numbers below 1.8e308: larger ones would be stored as null',
      abort: true,
    })
    .refine((value) => bytes(JSON.stringify(value)) <= maxBytes, {
      error: `expected at most ${maxBytes} bytes of JSON`,
    });

/** A key that goes into a header: visible ASCII only, so that nothing can be injected (RFC 9110 §5.5). */
const headerSafe = z
  .string(expected('a string'))
  .regex(/^[\x21-\x7e]{1,4096}$/, 'expected 1 to 4096 visible ASCII characters without spaces');

/** An id made here. Refused before it reaches Postgres, which takes no NUL in a text. */
const virtualKeyId = z
  .string(expected('a string'))
  .regex(/^[\x21-\x7e]{1,255}$/, 'expected the id of a virtual key: 1 to 255 visible ASCII characters');

const paths = z.preprocess(
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
);

const METHOD = expected(`one of ${METHODS.join(', ')}`);
const method = z
  .string(METHOD)
  .transform((text) => text.toUpperCase())
  .pipe(z.enum(METHODS, METHOD));

/**
 * Body of `POST /v1/presign`. Unknown fields are refused, so that a mistyped limit never issues an
 * unlimited URL; what a path may look like is judged by the providers package.
 */
export const presignRequest = z
  .strictObject(
    {
      provider: z
        .string(expected('a string'))
        .min(1, 'expected the name of a provider, such as "openai"')
        .max(64, 'expected at most 64 characters'),
      path: paths,
      client_api_key: optional(headerSafe),
      virtual_key: optional(virtualKeyId),
      method: optional(method).transform((value) => value ?? 'POST'),
      expires_in: optional(expiresIn).transform((value) => value ?? DEFAULT_EXPIRES_IN),
      max_uses: optional(maxUses).transform((value) => value ?? -1),
      cost_limit: optional(microusd),
      config: optional(jsonObject(CONFIG_MAX_BYTES)),
      external_session: optional(externalId),
      external_user: optional(externalId),
      session_id: optional(
        z
          .guid(expected('a UUID, such as "123e4567-e89b-42d3-a456-426614174000"'))
          .transform((id) => id.toLowerCase()),
      ),
      metadata: optional(jsonObject(METADATA_MAX_BYTES)),
    },
    expected('a JSON object'),
  )
  .refine((body) => body.client_api_key !== undefined || body.virtual_key !== undefined, {
    error: "send the provider's API key here, or the id of a virtual key in virtual_key",
    path: ['client_api_key'],
  });
export type PresignRequest = z.infer<typeof presignRequest>;

/** Answer of `POST /v1/presign`. */
export const presignAnswer = z.strictObject({
  url: z.url(),
  session_id: z.guid(),
  /** Unix time in seconds. */
  expires_at: z.int(),
});
export type PresignAnswer = z.infer<typeof presignAnswer>;

/** The caller's `Idempotency-Key` header. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, 'expected 1 to 255 visible ASCII characters');
