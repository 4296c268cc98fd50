import * as z from 'zod';
import {
  callConfig,
  EXTERNAL_ID_MAX_CHARS,
  externalId,
  givenOneOf,
  NO_NUL,
  optional,
} from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { highestFields } from '../fields/limits.ts';
import { LIMIT_NAMES } from '../limit-kinds.ts';
import {
  bind,
  bindAnswer,
  bodyBytes,
  fieldNames,
  modelNames,
  ONE_YEAR_SECONDS,
  virtualKeyId,
} from './presign.ts';

/** The entries of one list. */
const LIST_MAX = 50;

const listOf = <T extends z.ZodType>(item: T, what: string) =>
  z
    .array(item, expected(`an array of ${what}`))
    .min(1, `expected at least one of ${what}; leave the field out to allow all`)
    .max(LIST_MAX, `expected at most ${LIST_MAX} ${what}`);

const providerName = z
  .string(expected('a string'))
  .regex(/^[\x21-\x7e]{1,64}$/, 'expected the name of a provider');

const path = z
  .string(expected('a string'))
  .regex(/^\/[\x21-\x7e]{0,511}$/, 'expected a path of at most 512 characters that starts with /');

const HOST = 'expected a host in lower case, such as "mcp.example.com" or "mcp.example.com:8443"';
/** As `URL.host` has it: lower case, without a port that is the default of its scheme. */
const host = z
  .string(expected('a string'))
  .regex(/^[a-z0-9._:[\]-]{1,255}$/, HOST)
  .refine((text) => URL.canParse(`https://${text}/`) && new URL(`http://${text}/`).host === text, HOST);

const SECONDS = expected(`a whole number of seconds from 1 to ${ONE_YEAR_SECONDS}`);

const LIMITS = expected(`one of ${LIMIT_NAMES.join(', ')}`);

const highest = {
  ...highestFields,
  expires_in: z
    .int(SECONDS)
    .min(1, SECONDS)
    .max(ONE_YEAR_SECONDS, SECONDS)
    .meta({ description: 'Seconds. A request without expires_in gets one hour, or this if it is shorter.' }),
};

const shape = {
  providers: listOf(providerName, 'names of providers').meta({
    description: 'The providers. mcp stands for MCP servers.',
  }),
  paths: listOf(path, 'paths').meta({
    description:
      'Each path of a URL must be one of these, or match one in which * stands for any characters except /.',
  }),
  models: modelNames.meta({
    description: 'The models. The gateway refuses every other model on each URL of the key.',
  }),
  max_body_bytes: bodyBytes.meta({
    description: 'The max_body_bytes of each URL of an LLM provider. A request can only lower it.',
  }),
  allowed_fields: fieldNames.meta({
    description:
      'The top-level fields of the bodies of each URL of an LLM provider, in addition to those of config. A request can only leave some out, and its config can set no other field.',
  }),
  bind: bind.meta({
    description: 'The bind of each URL. A request can only leave origins out, and make ranges smaller.',
  }),
  sockets: z.boolean(expected('true or false')).meta({
    description:
      'false: no URL can be opened as a WebSocket. true: each URL of an LLM provider must be issued with `sockets`.',
  }),
  virtual_keys: listOf(virtualKeyId, 'ids of virtual keys').meta({
    description: 'A URL must use one of these virtual keys of the account, so client_api_key is refused.',
  }),
  mcp_hosts: listOf(host, 'hosts').meta({
    description: 'The hosts of MCP servers, with the port if it is not the default of the scheme.',
  }),
  required: listOf(
    z.enum(LIMIT_NAMES, LIMITS).meta({ id: 'LimitName' }),
    `the limits ${LIMIT_NAMES.join(', ')}`,
  ).meta({
    description: 'Limits that each URL must have, of any size.',
  }),
  config: callConfig.meta({
    description: 'Set in each URL. Neither the request nor its virtual key can change these settings.',
  }),
  refuse_warnings: z.boolean(expected('true or false')).meta({
    description: 'true: a URL that would be issued with `warnings` is refused with 400 instead.',
  }),
  external_user: externalId
    .refine((text) => text !== '', 'expected 1 to 255 characters')
    .meta({
      minLength: 1,
      maxLength: EXTERNAL_ID_MAX_CHARS,
      pattern: NO_NUL,
      description: 'The external_user of each URL.',
    }),
};

type Shape = Readonly<Record<string, z.ZodType>>;

/** The fields of a request: `null` means omitted. */
const asked = <S extends Shape>(fields: S) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      optional(field).meta({ description: z.globalRegistry.get(field)?.description ?? '' }),
    ]),
  ) as { [K in keyof S]: ReturnType<typeof optional<S[K]>> };

/** The same fields in an answer. */
const answered = <S extends Shape>(fields: S) =>
  Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.optional()])) as {
    [K in keyof S]: z.ZodOptional<S[K]>;
  };

const EMPTY = 'expected at least one field';
const notEmpty = (value: object) => Object.values(value).some((each) => each !== undefined);

/** The URLs that an API key may issue. Unknown fields are refused, so that a mistyped one never allows everything. */
export const keyPolicy = z
  .strictObject(
    {
      ...asked(shape),
      highest: optional(
        z
          .strictObject(asked(highest), expected('a JSON object'))
          .refine(notEmpty, EMPTY)
          .meta({ id: 'HighestLimitsRequest', ...givenOneOf(...Object.keys(highest)) }),
      ).meta({ description: 'The highest limits of a URL. A URL without such a limit is refused.' }),
    },
    expected('a JSON object'),
  )
  .refine(notEmpty, EMPTY)
  .meta({ id: 'KeyPolicyRequest', ...givenOneOf(...Object.keys(shape), 'highest') });
export type KeyPolicy = z.output<typeof keyPolicy>;

/** A policy in an answer: only the fields that it has. */
export const keyPolicyAnswer = z
  .strictObject({
    ...answered(shape),
    bind: bindAnswer.optional(),
    highest: z.strictObject(answered(highest)).meta({ id: 'HighestLimits' }).optional(),
  })
  .meta({ id: 'KeyPolicy' });
