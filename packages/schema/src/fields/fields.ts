import * as z from 'zod';
import { isJsonObject } from '../json.ts';
import { expected } from './invalid-request.ts';

/** Default validity of a URL, in seconds. */
export const DEFAULT_EXPIRES_IN = 3600;
export const METADATA_MAX_BYTES = 65_536;
export const EXTERNAL_ID_MAX_CHARS = 255;
const JSON_MAX_DEPTH = 64;

/** Length in UTF-8. */
export const bytes = (text: string) => new TextEncoder().encode(text).length;

/** JSON Schema: at least one of these fields is given. `null` means omitted. */
export const givenOneOf = (...fields: readonly string[]) => ({
  not: { properties: Object.fromEntries(fields.map((field) => [field, { type: 'null' }])) },
});

/** JSON Schema: a field with a value. `null` means omitted. */
export const GIVEN = { not: { type: 'null' } } as const;
/** JSON Schema: at most one of two fields is given. */
const notBoth = (fields: readonly string[]) => ({
  not: { required: fields, properties: Object.fromEntries(fields.map((field) => [field, GIVEN])) },
});

/** JSON Schema, for `allOf`: exactly one of these fields is given. */
export const givenExactlyOneOf = (fields: readonly string[]) => [
  givenOneOf(...fields),
  ...fields.flatMap((one, i) => fields.slice(i + 1).map((other) => notBoth([one, other]))),
];

/** JSON Schema: text without NUL. */
export const NO_NUL = '^[^\\x00]*$';

/** An optional field: `null` means omitted. */
export const optional = <T extends z.ZodType>(schema: T) =>
  schema.nullish().transform((value) => value ?? undefined);

const MICROUSD = `expected a whole number of microdollars (1 dollar = 1000000) from 0 to ${Number.MAX_SAFE_INTEGER}`;

/**
 * Money on the wire and in every store: a whole number of microdollars
 * (1 dollar = 1,000,000), at most 2^53 − 1 so that JavaScript and Lua hold it exactly.
 */
export const microusd = z.int(MICROUSD).min(0, MICROUSD);

/** A time in an answer. */
export const unixSeconds = z.int().meta({ description: 'Unix time in whole seconds.' });

/** A time in an answer, or null. */
export const unixSecondsOr = (meaning: string) =>
  z
    .int()
    .nullable()
    .meta({ description: `Unix time in whole seconds; null: ${meaning}.` });

/** A time in the data of an event. */
export const isoTime = z.iso.datetime().meta({ description: 'ISO 8601, in UTC.' });

const USES = expected(`-1 (unlimited) or a whole number from 1 to ${Number.MAX_SAFE_INTEGER}`);
/** A number of calls: -1 is unlimited. */
export const maxUses = z
  .int(USES)
  .refine((n) => n === -1 || n >= 1, USES)
  .meta({ minimum: -1, not: { const: 0 } });

const RATE_LIMIT_MAX = 1_000_000;
const RATE_LIMIT = expected(`a whole number from 1 to ${RATE_LIMIT_MAX}`);
/** Requests, or URLs, a minute. */
export const perMinute = z.int(RATE_LIMIT).min(1, RATE_LIMIT).max(RATE_LIMIT_MAX, RATE_LIMIT);

const ADDRESS = 'an address or a range of IPv4 or IPv6, such as "192.0.2.7" or "2001:db8::/32"';
/** An address, or a range of addresses as CIDR writes it. An IPv4 address in an IPv6 one would be a second spelling of it. */
export const addressRange = z
  .union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], expected(ADDRESS))
  .refine((text) => !/^(?:0{0,4}:){0,5}:?ffff:/i.test(text) && !text.includes('%'), {
    error: 'expected an IPv4 address or range in its own form, without ::ffff:, and no zone',
  })
  .meta({ id: 'AddressRange' });

/** Text that Postgres and JSON hold unchanged. */
export const storable = <T extends z.ZodType<string>>(text: T) =>
  text.refine((each) => each.isWellFormed() && !each.includes('\0'), {
    error: 'expected Unicode text without NUL or lone surrogates',
  });

/** The id in the path of a route. */
export const idParams = z.object({ id: z.guid() });

/** The caller's own id of a session or user. */
export const externalId = storable(
  z.string(expected('a string')).refine((text) => [...text].length <= EXTERNAL_ID_MAX_CHARS, {
    error: `expected at most ${EXTERNAL_ID_MAX_CHARS} characters`,
    abort: true,
  }),
).meta({ maxLength: EXTERNAL_ID_MAX_CHARS, pattern: NO_NUL });

/** The caller's own data, and the fields that replace those of a call, as answers have them. */
export const metadata = z.record(z.string(), z.unknown()).meta({ id: 'Metadata' });
export const storedConfig = z.record(z.string(), z.unknown()).meta({ id: 'CallConfig' });

/** A JSON object of at most `maxBytes` that can be written exactly as it was read. The OpenAPI document has `shownAs`. */
export const jsonObject = (maxBytes: number, shownAs: z.ZodType = metadata) =>
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
      abort: true,
    })
    .superRefine((value, context) => {
      const path = findHuge(value);
      if (path) context.addIssue({ code: 'custom', path, message: HUGE });
    })
    .meta({ shownAs });

/** The most members of a config at its top, and of all its objects together. */
const CONFIG_FIELDS_MAX = 200;
const CONFIG_NAMES_MAX = 2_000;
const CONFIG_NAME_MAX_CHARS = 256;
export const CONFIG_MAX_BYTES = 16_384;

/**
 * The fields that replace those of a call. Its gateways compile them and compare them with each body in several spellings, so
 * it has few names, and none of them is long.
 */
export const callConfig = jsonObject(CONFIG_MAX_BYTES, storedConfig)
  .refine((config) => Object.keys(config).length <= CONFIG_FIELDS_MAX, {
    error: `expected at most ${CONFIG_FIELDS_MAX} fields`,
    abort: true,
  })
  .superRefine((config, context) => {
    let names = 0;
    for (const path of namePaths(config)) {
      if (++names > CONFIG_NAMES_MAX) return context.addIssue({ code: 'custom', message: TOO_MANY_NAMES });
      if (String(path.at(-1)).length <= CONFIG_NAME_MAX_CHARS) continue;
      return context.addIssue({ code: 'custom', path, message: LONG_NAME });
    }
  });

const TOO_MANY_NAMES = `expected at most ${CONFIG_NAMES_MAX} names of fields, those of inner objects included`;
const LONG_NAME = `expected names of at most ${CONFIG_NAME_MAX_CHARS} characters`;

/** The paths to all members of a value's objects. */
function* namePaths(value: unknown, path: readonly PropertyKey[] = []): Generator<PropertyKey[]> {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, inner] of Object.entries(value)) {
    const at = [...path, Array.isArray(value) ? Number(name) : name];
    if (!Array.isArray(value)) yield at;
    yield* namePaths(inner, at);
  }
}

/** A value of a header: visible ASCII only, so that it cannot inject another header (RFC 9110 §5.5). */
export const headerSafe = (most: number) =>
  z
    .string(expected('a string'))
    .regex(
      new RegExp(`^[\\x21-\\x7e]{1,${most}}$`),
      `expected 1 to ${most} visible ASCII characters without spaces`,
    );

/** JSON Schema: a field that a form must not show (OpenAPI's registry of formats). */
export const SECRET = { format: 'password' } as const;

/**
 * A provider's key: one word, or the JSON text of a cloud's credential, which has spaces and line breaks. The issuer checks
 * that the provider can use it.
 */
export const providerKey = z
  .string(expected('a string'))
  .regex(
    /^(?:[\x21-\x7e]{1,4096}|\{[\x20-\x7e\r\n\t]{1,8190}\}\s{0,4})$/,
    'expected 1 to 4096 visible ASCII characters without spaces, or the JSON text of a credential for a cloud',
  )
  .meta(SECRET);

export const TIME_FORM =
  'Unix seconds with at most three decimals, or ISO 8601 with seconds and a zone, such as 2026-01-31T00:00:00Z (in a query, a + is written %2B)';
const TIME = expected(TIME_FORM);
/** The end of the year 9999: later times have no common form. */
const END_MS = 253_402_300_800_000;
/** A moment, read as a `Date`. */
export const time = z
  .union(
    [
      z
        .string()
        .regex(/^\d{1,12}(\.\d{1,3})?$/)
        .transform((text) => new Date(Math.round(Number(text) * 1000))),
      z.iso.datetime({ offset: true }).transform((text) => new Date(text)),
    ],
    TIME,
  )
  .refine((date) => date.getTime() >= 0 && date.getTime() < END_MS, TIME)
  .meta({
    shownAs: z.union([
      z
        .number()
        .min(0)
        .max(END_MS / 1000 - 1),
      z.iso.datetime({ offset: true }),
    ]),
  });

/** A UUID as the caller writes it, in any case. */
const uuid = z
  .guid(expected('a UUID, such as "123e4567-e89b-42d3-a456-426614174000"'))
  .transform((id) => id.toLowerCase());

/** The ids of a session, of a grant, of an API key, of a shared budget, and of a call. */
export const sessionId = uuid;
export const grantId = uuid;
export const apiKeyId = uuid;
export const budgetId = uuid;
export const requestId = uuid;

/** Answer while Postgres has a change and Redis has yet to take it over. */
export const pendingAnswer = z.strictObject({ status: z.literal('pending') }).meta({
  id: 'Pending',
  description: 'The change is stored, and Presign applies it as soon as Redis answers.',
  examples: [{ status: 'pending' }],
});
export type Pending = z.infer<typeof pendingAnswer>;

/** Whether a parsed JSON value nests no deeper than `limit`; walks without recursion. */
function nestsAtMost(limit: number, root: unknown): boolean {
  let level: readonly unknown[] = [root];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > limit) return false;
    level = level.flatMap(children);
  }
  return true;
}

const HUGE =
  'expected whole numbers from -9007199254740991 to 9007199254740991: send a larger one as a string, because it would be rounded';

/** The path to a whole number that JavaScript has perhaps rounded (RFC 8259 §6). The value nests 64 levels at most. */
function findHuge(root: unknown): PropertyKey[] | undefined {
  if (typeof root === 'number') return Number.isInteger(root) && !Number.isSafeInteger(root) ? [] : undefined;
  if (typeof root !== 'object' || root === null) return undefined;
  for (const [name, value] of Object.entries(root)) {
    const path = findHuge(value);
    if (path) return [Array.isArray(root) ? Number(name) : name, ...path];
  }
  return undefined;
}

/** Whether JSON can write all numbers again: `1e999` is read as Infinity, and would be written as null. */
function allFinite(root: unknown): boolean {
  if (typeof root === 'number') return Number.isFinite(root);
  return children(root).every(allFinite);
}

const children = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : [];
