import { z } from 'zod';
import {
  DEFAULT_EXPIRES_IN,
  expected,
  externalId,
  jsonObject,
  METADATA_MAX_BYTES,
  maxUses,
  optional,
  sessionId,
} from './fields.ts';
import { isJsonObject } from './json.ts';
import { MCP_AUTH, MCP_AUTH_TYPES, type McpAuth, type McpAuthType, upstreamUrl } from './mcp-auth.ts';
import { microusd } from './money.ts';

export const MCP_TRANSPORTS = ['sse', 'http'] as const;
export const MCP_SERVERS_MAX = 50;
/** Seconds: one minute to one day. */
export const MCP_EXPIRES_IN = { least: 60, most: 86_400 } as const;
const TOOLS_MAX = 500;
const NAME_MAX_CHARS = 128;

const VALIDITY = expected(`a whole number of seconds from ${MCP_EXPIRES_IN.least} to ${MCP_EXPIRES_IN.most}`);
const expiresIn = z.int(VALIDITY).min(MCP_EXPIRES_IN.least, VALIDITY).max(MCP_EXPIRES_IN.most, VALIDITY);

const name = z
  .string(expected('a string'))
  .refine((text) => text.length >= 1 && [...text].length <= NAME_MAX_CHARS, {
    error: `expected 1 to ${NAME_MAX_CHARS} characters`,
    abort: true,
  })
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text) && text !== '__proto__', {
    error: 'expected a name without control characters, other than __proto__',
  });

const toolNames = z
  .array(name, expected('an array of names of tools'))
  .max(TOOLS_MAX, `expected at most ${TOOLS_MAX} tools`);

/** Microdollars by tool. Counted before each is read. */
const toolPrices = z
  .custom<Record<string, unknown>>(isJsonObject, expected('an object: name of a tool → microdollars'))
  .refine((prices) => Object.keys(prices).length <= TOOLS_MAX, {
    error: `expected at most ${TOOLS_MAX} tools`,
    abort: true,
  })
  // Zod's record would pass over it.
  .refine((prices) => !Object.hasOwn(prices, '__proto__'), {
    error: 'expected names of tools other than __proto__',
    abort: true,
  })
  .pipe(z.record(name, microusd));

/** Microdollars that a call of a server costs. */
export const mcpPricing = z.strictObject(
  { default: optional(microusd), tools: optional(toolPrices) },
  expected('an object with default, tools or both'),
);
export type McpPricing = z.infer<typeof mcpPricing>;

const serverFields = z.strictObject(
  {
    name,
    url: upstreamUrl,
    transport: optional(z.enum(MCP_TRANSPORTS, expected(`one of ${MCP_TRANSPORTS.join(', ')}`))).transform(
      (value) => value ?? 'sse',
    ),
    auth_type: optional(z.enum(MCP_AUTH_TYPES, expected(`one of ${MCP_AUTH_TYPES.join(', ')}`))).transform(
      (value) => value ?? 'none',
    ),
    auth_config: z.unknown().optional(),
    pricing: optional(mcpPricing),
    tools: optional(toolNames),
  },
  expected('an object with name and url'),
);

/** One server: its `auth_config` read as its `auth_type` wants it. */
const server = serverFields.transform(({ auth_type, auth_config, ...rest }, context) => {
  const auth = readAuth(auth_type, auth_config);
  if ('issues' in auth) {
    for (const issue of auth.issues) {
      const { path, ...what } = issue;
      // As found, but where the caller wrote it.
      context.issues.push({ ...what, path: ['auth_config', ...path], input: auth_config } as never);
    }
    return z.NEVER;
  }
  if (auth.type === 'api_key' && auth.query !== undefined && new URL(rest.url).searchParams.has(auth.query)) {
    const message = 'the url has this parameter already';
    context.addIssue({ code: 'custom', path: ['auth_config', 'query'], message });
    return z.NEVER;
  }
  return { ...rest, auth };
});

function readAuth(type: McpAuthType, config: unknown): McpAuth | { issues: z.core.$ZodIssue[] } {
  const read = MCP_AUTH[type].safeParse(config ?? {});
  if (!read.success) return { issues: read.error.issues };
  return { type, ...read.data } as McpAuth;
}

/**
 * Body of `POST /v2/mcp-presign`. Unknown fields are refused, so that a mistyped limit never issues an unlimited
 * URL.
 */
export const mcpPresignRequest = z.strictObject(
  {
    servers: z
      .array(server, expected('an array of servers'))
      .min(1, 'expected at least one server')
      .max(MCP_SERVERS_MAX, `expected at most ${MCP_SERVERS_MAX} servers`)
      .superRefine((servers, context) => {
        const seen = new Set<string>();
        for (const [i, { name }] of servers.entries()) {
          if (seen.has(name)) {
            context.addIssue({ code: 'custom', path: [i, 'name'], message: 'expected a name of its own' });
          }
          seen.add(name);
        }
      }),
    expires_in: optional(expiresIn).transform((value) => value ?? DEFAULT_EXPIRES_IN),
    max_uses: optional(maxUses).transform((value) => value ?? -1),
    cost_limit: optional(microusd),
    external_session: optional(externalId),
    external_user: optional(externalId),
    session_id: optional(sessionId),
    metadata: optional(jsonObject(METADATA_MAX_BYTES)),
  },
  expected('a JSON object'),
);
export type McpPresignRequest = z.infer<typeof mcpPresignRequest>;
export type McpServer = McpPresignRequest['servers'][number];

/** Where a client finds one server of a bundle. */
export const mcpServerEntry = z.strictObject({ url: z.url(), transport: z.enum(MCP_TRANSPORTS) });
export type McpServerEntry = z.infer<typeof mcpServerEntry>;

/** Answer of `POST /v2/mcp-presign`. */
export const mcpPresignAnswer = z.strictObject({
  bundle_url: z.url(),
  bundle_token: z.string(),
  /** Unix time in seconds. */
  expires_at: z.int(),
  session_id: z.guid(),
  servers: z.record(z.string(), mcpServerEntry),
});
export type McpPresignAnswer = z.infer<typeof mcpPresignAnswer>;

/** What `bundle_url` gives: the common form of an MCP client's configuration. */
export const mcpBundle = z.strictObject({ mcpServers: z.record(z.string(), mcpServerEntry) });
export type McpBundle = z.infer<typeof mcpBundle>;
