import * as z from 'zod';
import { bytes, givenOneOf, headerSafe, optional, SECRET } from '../../fields/fields.ts';
import { expected } from '../../fields/invalid-request.ts';
import { isJsonObject } from '../../json.ts';

/** Access tokens that carry claims (JWT) grow to several kilobytes. */
const SECRET_MAX_CHARS = 8192;
const URL_MAX_BYTES = 1536;

const secret = headerSafe(SECRET_MAX_CHARS).meta(SECRET);

/** The value of a header (RFC 9110 §5.5), of ASCII: it may have spaces between words. */
const headerValue = z
  .string(expected('a string'))
  .max(SECRET_MAX_CHARS, `expected at most ${SECRET_MAX_CHARS} characters`)
  .regex(
    /^[\x21-\x7e]+( +[\x21-\x7e]+)*$/,
    'expected visible ASCII characters, with spaces between them alone',
  )
  .meta(SECRET);

const TEXT = { type: 'string' };
const NULL = { type: 'null' };

/** These headers frame a message or belong to the protocol, so they cannot carry a key. */
const RESERVED_HEADERS =
  /^(host|connection|content-.*|transfer-encoding|te|trailer|upgrade|expect|accept(-encoding)?|keep-alive|cookie|mcp-.*|last-event-id|proxy-.*|traceparent|tracestate|x-presign-.*)$/i;
const headerName = z
  .string(expected('the name of a header'))
  .regex(/^[!#$%&'*+.^`|~\w-]{1,128}$/, "expected the name of a header, such as 'X-API-Key'")
  .refine((name) => !RESERVED_HEADERS.test(name), 'expected a header that the protocol does not use itself');

const MORE_HEADERS_MAX = 8;

/** Headers in addition to the one that authenticates, as servers that want two keys do. They are sealed as it is. */
const moreHeaders = optional(
  z
    .record(headerName, headerValue, expected('an object of headers'))
    .refine((headers) => Object.keys(headers).length <= MORE_HEADERS_MAX, {
      error: `expected at most ${MORE_HEADERS_MAX} headers`,
    })
    .refine((headers) => new Set(namesOf(headers)).size === namesOf(headers).length, {
      error: 'expected each header once, in any case',
    })
    .meta({ id: 'McpHeaders', maxProperties: MORE_HEADERS_MAX }),
).meta({
  description: `Further headers for the server, at most ${MORE_HEADERS_MAX}. They are encrypted, too.`,
});

const namesOf = (headers: object): string[] => Object.keys(headers).map((name) => name.toLowerCase());

/** Refuses a further header that has the name of the one that authenticates. */
const besides = (
  { headers }: { readonly headers?: Readonly<Record<string, string>> | undefined },
  name: string | undefined,
  context: z.core.$RefinementCtx,
): void => {
  if (name === undefined || !namesOf(headers ?? {}).includes(name.toLowerCase())) return;
  const message = `expected another header than ${name}, which authenticates`;
  context.addIssue({ code: 'custom', path: ['headers'], message });
};

/** JSON Schema: a URL of visible ASCII without `#` and `\\`. */
export const URL_PATTERN = '^[Hh][Tt][Tt][Pp][Ss]?://[\\x21\\x22\\x24-\\x5b\\x5d-\\x7e]+$';

/** The address of an upstream: printable ASCII, without user, password and fragment. */
export const upstreamUrl = z
  .string(expected('a string'))
  .refine((text) => bytes(text) <= URL_MAX_BYTES, {
    error: `expected at most ${URL_MAX_BYTES} bytes`,
    abort: true,
  })
  .refine(isUpstreamUrl, 'expected an http or https URL in ASCII, without user, password or fragment')
  .meta({ maxLength: URL_MAX_BYTES, pattern: URL_PATTERN });

function isUpstreamUrl(text: string): boolean {
  if (!/^https?:\/\/[\x21-\x7e]+$/i.test(text) || text.includes('#') || text.includes('\\')) return false;
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

const bearer = z
  .strictObject(
    {
      token: secret.meta({ description: 'Sent as "Authorization: Bearer …".' }),
      scheme: optional(
        z
          .string(expected('the name of a scheme'))
          .regex(/^[A-Za-z][A-Za-z0-9-]{0,31}$/, 'expected a scheme, such as Basic or ApiKey'),
      ).meta({ description: 'The scheme before the token. Left out: Bearer.' }),
      headers: moreHeaders,
    },
    expected('an object with token'),
  )
  .superRefine((config, context) => besides(config, 'Authorization', context))
  .meta({ id: 'BearerAuth', title: 'bearer' });

/** The header of a key without a place of its own. */
export const DEFAULT_KEY_HEADER = 'X-API-Key';

const apiKey = z
  .strictObject(
    {
      key: headerValue.meta({ description: 'The key of the server.' }),
      header: optional(headerName).meta({
        description: 'The header that carries the key. Left out: X-API-Key, unless query is given.',
      }),
      query: optional(
        z
          .string(expected('the name of a query parameter'))
          .regex(/^[\w.~-]{1,128}$/, 'expected 1 to 128 letters, digits or . _ ~ -'),
      ).meta({ description: 'The query parameter that carries the key, instead of a header.' }),
      headers: moreHeaders,
    },
    expected('an object with key'),
  )
  .refine(({ header, query }) => header === undefined || query === undefined, {
    path: ['query'],
    error: 'expected either header or query',
  })
  .superRefine((config, context) =>
    besides(config, config.query === undefined ? (config.header ?? DEFAULT_KEY_HEADER) : undefined, context),
  )
  .meta({
    id: 'ApiKeyAuth',
    title: 'api_key',
    not: { required: ['header', 'query'], properties: { header: TEXT, query: TEXT } },
  });

const oauth = z
  .strictObject(
    {
      access_token: optional(secret).meta({
        description: 'Used until it expires. Send it without the other fields.',
      }),
      token_url: optional(upstreamUrl).meta({
        description:
          'Where the gateway gets access tokens. Needs client_id, and client_secret or refresh_token.',
      }),
      client_id: optional(headerSafe(SECRET_MAX_CHARS)).meta({
        description: 'The id of the client at the token endpoint.',
      }),
      client_secret: optional(secret).meta({ description: "The client's secret, if it has one." }),
      refresh_token: optional(secret).meta({ description: 'Left out: client credentials are used.' }),
      scope: optional(
        z.string(expected('a string')).regex(/^[\x20-\x7e]{1,1024}$/, 'expected scopes separated by spaces'),
      ).meta({ description: 'Scopes to ask for, separated by spaces.' }),
      audience: optional(
        z.string(expected('a string')).regex(/^[\x21-\x7e]{1,1024}$/, 'expected visible ASCII'),
      ).meta({ description: 'The audience to ask for, if the token endpoint requires one.' }),
      resource: optional(
        z.union([z.literal(false), upstreamUrl], expected('the URL of a resource, or false')),
      ).meta({
        description:
          'The resource to ask for (RFC 8707). Left out: the URL of the server without its query. false: none is sent.',
      }),
      headers: moreHeaders,
    },
    expected('an object with access_token, or with token_url and client_id'),
  )
  .superRefine((config, context) => {
    const { access_token, token_url, client_id, client_secret, refresh_token } = config;
    const fault = (field: string, message: string) =>
      context.addIssue({ code: 'custom', path: [field], message });
    besides(config, 'Authorization', context);
    if (access_token !== undefined) {
      const others = Object.entries(config).filter(
        ([name, value]) => name !== 'access_token' && name !== 'headers' && value !== undefined,
      );
      if (others[0]) fault(others[0][0], 'send access_token without the other fields');
    } else if (token_url === undefined && client_id === undefined) {
      fault('access_token', 'this field is required, or token_url and client_id');
    } else if (token_url === undefined) fault('token_url', 'this field is required');
    else if (client_id === undefined) fault('client_id', 'this field is required');
    else if (client_secret === undefined && refresh_token === undefined)
      fault('client_secret', 'this field is required, or refresh_token');
  })
  .meta({
    id: 'OAuth',
    title: 'oauth',
    if: { required: ['access_token'], properties: { access_token: TEXT } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: {
      properties: {
        token_url: NULL,
        client_id: NULL,
        client_secret: NULL,
        refresh_token: NULL,
        scope: NULL,
        audience: NULL,
        resource: NULL,
      },
    },
    else: {
      required: ['token_url', 'client_id'],
      properties: { token_url: TEXT, client_id: TEXT },
      ...givenOneOf('client_secret', 'refresh_token'),
    },
  });

const NONE = 'expected an auth_type that takes an auth_config: bearer, api_key or oauth';
const none = z
  .custom<Record<string, never>>((value) => isJsonObject(value) && Object.keys(value).length === 0, NONE)
  .meta({ shownAs: z.strictObject({}).meta({ id: 'NoAuth', title: 'none' }) });

/** The `auth_config` of each `auth_type`. */
export const MCP_AUTH = { none, bearer, api_key: apiKey, oauth } as const;
export type McpAuthType = keyof typeof MCP_AUTH;
export const MCP_AUTH_TYPES = Object.keys(MCP_AUTH) as [McpAuthType, ...McpAuthType[]];

/** How a gateway authenticates to an MCP server. It is stored sealed. */
export const mcpAuth = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  z.strictObject({ type: z.literal('bearer'), ...bearer.shape }),
  z.strictObject({ type: z.literal('api_key'), ...apiKey.shape }),
  z.strictObject({ type: z.literal('oauth'), ...oauth.shape }),
]);
export type McpAuth = z.infer<typeof mcpAuth>;
