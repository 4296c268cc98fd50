import * as z from 'zod';
import { DEFAULT_EXPIRES_IN, optional } from '../fields/fields.ts';
import { expected } from '../fields/invalid-request.ts';
import { mcpLimits } from '../fields/limits.ts';
import { MCP_AUTH, MCP_AUTH_TYPES, type McpAuth, type McpAuthType, upstreamUrl } from './mcp/auth.ts';
import { MCP_TOOLS_MAX, mcpName, mcpPricing, toolArguments, toolNames } from './mcp/tools.ts';
import { issueFields } from './presign.ts';

export const MCP_TRANSPORTS = ['sse', 'http'] as const;
const transports = z
  .enum(MCP_TRANSPORTS, expected(`one of ${MCP_TRANSPORTS.join(', ')}`))
  .meta({ id: 'McpTransport' });
export const mcpTransport = z.enum(MCP_TRANSPORTS).meta({ id: 'McpTransport' });
export const MCP_SERVERS_MAX = 50;
/** Seconds: one minute to one day. */
export const MCP_EXPIRES_IN = { least: 60, most: 86_400 } as const;
const VALIDITY = expected(`a whole number of seconds from ${MCP_EXPIRES_IN.least} to ${MCP_EXPIRES_IN.most}`);
const expiresIn = z.int(VALIDITY).min(MCP_EXPIRES_IN.least, VALIDITY).max(MCP_EXPIRES_IN.most, VALIDITY);

/** JSON Schema: without an `auth_type`, the `auth_config` is empty. */
const NO_AUTH = { properties: { auth_config: { type: ['object', 'null'], maxProperties: 0 } } };

/** JSON Schema: a server of this `auth_type` has its `auth_config`; any other is as `others` says. */
function authOf(type: McpAuthType, others: object) {
  const { id = '', ...rules } = z.globalRegistry.get(MCP_AUTH[type]) ?? {};
  const { $defs } = z.toJSONSchema(z.array(MCP_AUTH[type]), { io: 'input' });
  const { properties, required } = $defs?.[id] ?? {};
  const fields = Object.fromEntries(Object.keys(properties ?? {}).map((field) => [field, {}]));
  const config = { type: 'object', properties: fields, required, additionalProperties: false };
  return {
    if: { required: ['auth_type'], properties: { auth_type: { const: type } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: { required: ['auth_config'], properties: { auth_config: { ...config, ...rules } } },
    else: others,
  };
}

const authTypes = z
  .enum(MCP_AUTH_TYPES, expected(`one of ${MCP_AUTH_TYPES.join(', ')}`))
  .meta({ id: 'McpAuthType' });

const serverFields = z
  .strictObject(
    {
      name: mcpName.meta({ description: 'The name of the server in the answer and in the bundle.' }),
      url: upstreamUrl.meta({ description: 'The address of the MCP server, as the gateway reaches it.' }),
      transport: optional(transports)
        .transform((value) => value ?? 'sse')
        .meta({ description: 'http: Streamable HTTP. sse: the older HTTP with SSE.', default: 'sse' }),
      auth_type: optional(authTypes)
        .transform((value) => value ?? 'none')
        .meta({ description: 'How the gateway authenticates to the server.', default: 'none' }),
      auth_config: z
        .unknown()
        .optional()
        .meta({
          shownAs: z.union([...Object.values(MCP_AUTH), z.null()]),
          description: 'The fields of the auth_type. They are encrypted before they are stored.',
        }),
      pricing: optional(mcpPricing).meta({
        description: "The prices of this server's calls, in microdollars.",
      }),
      tools: optional(toolNames).meta({
        description: `The tools that may be called and that tools/list shows, at most ${MCP_TOOLS_MAX}. Left out: all.`,
      }),
      arguments: optional(toolArguments).meta({
        description:
          'The values that arguments of a tool must have, by the name of the tool and the name of the argument. A call without the argument is refused. Tools that are not named take any arguments.',
        examples: [{ read_file: { path: { prefix: 'docs/' } } }],
      }),
    },
    expected('an object with name and url'),
  )
  .meta({ id: 'McpServerRequest', ...authOf('bearer', authOf('api_key', authOf('oauth', NO_AUTH))) });

/** One server. Its `auth_config` is read by the schema of its `auth_type`. */
const server = serverFields.transform(({ auth_type, auth_config, ...rest }, context) => {
  const auth = readAuth(auth_type, auth_config);
  if ('issues' in auth) {
    for (const issue of auth.issues) {
      const { path, ...what } = issue;
      // The same issue, at the place where the caller wrote the field.
      context.issues.push({ ...what, path: ['auth_config', ...path], input: auth_config } as never);
    }
    return z.NEVER;
  }
  if (auth.type === 'api_key' && auth.query !== undefined && new URL(rest.url).searchParams.has(auth.query)) {
    const message = 'expected a parameter that the url does not have';
    context.addIssue({ code: 'custom', path: ['auth_config', 'query'], message });
    return z.NEVER;
  }
  // A tool with a mistyped name would have the default price, or no conditions.
  const named = [
    ...Object.keys(rest.pricing?.tools ?? {}).map((tool) => ['pricing', 'tools', tool]),
    ...Object.keys(rest.arguments ?? {}).map((tool) => ['arguments', tool]),
  ];
  const stray = named.find((path) => rest.tools?.includes(path.at(-1) ?? '') === false);
  if (stray !== undefined) {
    const message = 'expected one of the allowed tools';
    context.addIssue({ code: 'custom', path: stray, message });
    return z.NEVER;
  }
  return { ...rest, auth };
});

function readAuth(type: McpAuthType, config: unknown): McpAuth | { issues: z.core.$ZodIssue[] } {
  const read = MCP_AUTH[type].safeParse(config ?? {});
  if (!read.success) return { issues: read.error.issues };
  return { type, ...read.data } as McpAuth;
}

/** A bundle with a server of the older transport cannot have `concurrent_calls`. */
export const NO_SSE =
  'expected servers with transport "http": over "sse" a gateway does not see when a call ends';

/**
 * Body of `POST /v2/mcp-presign`. Unknown fields are refused, so that a mistyped limit never issues an unlimited
 * URL.
 */
export const mcpPresignRequest = z
  .strictObject(
    {
      servers: z
        .array(server, expected('an array of servers'))
        .min(1, 'expected at least one server')
        .max(MCP_SERVERS_MAX, `expected at most ${MCP_SERVERS_MAX} servers`)
        .superRefine((servers, context) => {
          const seen = new Set<string>();
          for (const [i, { name }] of servers.entries()) {
            if (seen.has(name)) {
              context.addIssue({
                code: 'custom',
                path: [i, 'name'],
                message: 'expected a name that no other server of the bundle has',
              });
            }
            seen.add(name);
          }
        })
        .meta({
          description: `1 to ${MCP_SERVERS_MAX} servers with different names. They share all limits.`,
        }),
      expires_in: optional(expiresIn)
        .transform((value) => value ?? DEFAULT_EXPIRES_IN)
        .meta({ description: 'Validity of the bundle in seconds.', default: DEFAULT_EXPIRES_IN }),
      ...mcpLimits,
      ...issueFields,
    },
    expected('a JSON object'),
  )
  .refine(
    ({ concurrent_calls, servers }) =>
      concurrent_calls === undefined || servers.every(({ transport }) => transport !== 'sse'),
    {
      error: NO_SSE,
      path: ['concurrent_calls'],
    },
  )
  .meta({
    id: 'McpPresignRequest',
    if: { required: ['concurrent_calls'], properties: { concurrent_calls: { type: 'integer' } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
    then: {
      properties: {
        servers: {
          type: 'array',
          items: { type: 'object', required: ['transport'], properties: { transport: { const: 'http' } } },
        },
      },
    },
    examples: [
      {
        servers: [
          {
            name: 'docs',
            url: 'https://mcp.example.com/mcp',
            transport: 'http',
            auth_type: 'bearer',
            auth_config: { token: 'your-token' },
            pricing: { default: 1_000, tools: { search: 5_000 } },
          },
        ],
        expires_in: 3_600,
        max_uses: 100,
        cost_limit: 500_000,
        external_user: 'user-42',
      },
    ],
  });
export type McpPresignRequest = z.infer<typeof mcpPresignRequest>;
export type McpServer = McpPresignRequest['servers'][number];
