import { z } from 'zod';
import {
  bytes,
  DEFAULT_EXPIRES_IN,
  expected,
  externalId,
  headerSafe,
  jsonObject,
  METADATA_MAX_BYTES,
  maxUses,
  optional,
  sessionId,
} from './fields.ts';
import { microusd } from './money.ts';

/** One year in seconds: what `expires_in: -1` means, and the longest validity of an LLM URL. */
export const ONE_YEAR_SECONDS = 31_536_000;
export const CONFIG_MAX_BYTES = 16_384;
export const PATHS_MAX = 50;
/** All paths of a grant together: they ride in a token of at most 3,072 characters. */
export const PATHS_MAX_BYTES = 1536;
const KEY_MAX_CHARS = 4096;
export const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

const VALIDITY = expected(`-1 (one year) or a whole number of seconds from 1 to ${ONE_YEAR_SECONDS}`);
const expiresIn = z.int(VALIDITY).refine((n) => n === -1 || (n >= 1 && n <= ONE_YEAR_SECONDS), VALIDITY);

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
      client_api_key: optional(headerSafe(KEY_MAX_CHARS)),
      virtual_key: optional(virtualKeyId),
      method: optional(method).transform((value) => value ?? 'POST'),
      expires_in: optional(expiresIn).transform((value) => value ?? DEFAULT_EXPIRES_IN),
      max_uses: optional(maxUses).transform((value) => value ?? -1),
      cost_limit: optional(microusd),
      config: optional(jsonObject(CONFIG_MAX_BYTES)),
      external_session: optional(externalId),
      external_user: optional(externalId),
      session_id: optional(sessionId),
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
