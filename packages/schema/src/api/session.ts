import { z } from 'zod';
import { externalId, microusd } from './fields.ts';
import { QUERY } from './invalid-request.ts';
import { MCP_TRANSPORTS } from './mcp-presign.ts';
import { pageOf, pageQuery } from './page.ts';

const used = z.int().meta({ description: 'Calls.' });
const spent = microusd.meta({ description: 'Microdollars.' });

/** What is used and spent: settled as the ledger has it, and live, calls under way included. */
const figures = z.strictObject({
  settled: z.strictObject({ used, spent }).meta({ description: 'As the ledger has it.' }),
  live: z
    .strictObject({
      used,
      spent,
      held: microusd.meta({ description: 'Microdollars that calls under way may still cost.' }),
    })
    .nullable()
    .meta({ description: 'As it is now, calls under way included. null: Redis does not answer.' }),
});

const seconds = z.number().meta({ description: 'Unix time in seconds.' });

/** One grant of a session, as its owner sees it. The grants of a bundle have one budget: each tells the figures of all. */
export const sessionGrant = z
  .strictObject({
    id: z.guid(),
    kind: z.enum(['llm', 'mcp', 'mcp_bundle']),
    provider: z.string().meta({ description: '`mcp` for MCP grants.' }),
    method: z.string().nullable().meta({ description: 'Of an LLM grant.' }),
    paths: z.array(z.string()).nullable().meta({ description: 'Of an LLM grant.' }),
    server: z
      .strictObject({ name: z.string(), url: z.string(), transport: z.enum(MCP_TRANSPORTS) })
      .nullable()
      .meta({ description: "Of an MCP server's grant: the server as it was asked for." }),
    bundle_id: z
      .guid()
      .nullable()
      .meta({ description: "Of an MCP server's grant: the grant of its bundle." }),
    external_session: z.string().nullable(),
    external_user: z.string().nullable(),
    virtual_key: z
      .string()
      .nullable()
      .meta({ description: 'Id of the virtual key that it was issued with; null: with none.' }),
    metadata: z
      .record(z.string(), z.unknown())
      .nullable()
      .meta({ description: "As issued; a bundle's stands at its own grant." }),
    issued_at: seconds,
    expires_at: seconds,
    status: z.enum(['active', 'exhausted', 'expired', 'revoked']),
    max_uses: z.int().meta({ description: '-1: unlimited.' }),
    cost_limit: microusd.nullable().meta({ description: 'Microdollars. null: no limit.' }),
    calls_per_minute: z.int().nullable().meta({ description: 'null: as many as come.' }),
    ...figures.shape,
  })
  .meta({ id: 'SessionGrant' });
export type SessionGrant = z.infer<typeof sessionGrant>;

export const SESSION_STATUSES = ['active', 'ended'] as const;

/** A session in a list. Whether a limit of its grants is exhausted is judged by the ledger alone. */
export const sessionSummary = z
  .strictObject({
    id: z.guid(),
    created_at: seconds,
    revoked_at: seconds.nullable().meta({ description: 'null unless the session was revoked as a whole.' }),
    status: z
      .enum(SESSION_STATUSES)
      .meta({ description: 'Active while one of its grants is, by the ledger.' }),
    grant_count: z.int().meta({ description: 'How many grants it has.' }),
    expires_at: seconds.nullable().meta({ description: 'When the last of its grants expires.' }),
    external_sessions: z.array(z.string()).meta({ description: 'Those that its grants were issued with.' }),
    external_users: z.array(z.string()).meta({ description: 'Those that its grants were issued with.' }),
  })
  .meta({ id: 'SessionSummary' });
export type SessionSummary = z.infer<typeof sessionSummary>;

/** Answer of `GET /v1/sessions/{id}`: a session and a page of its grants. */
export const sessionAnswer = z
  .strictObject({
    ...sessionSummary.shape,
    grants: z.array(sessionGrant).meta({ description: 'Newest first.' }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'Asks for the grants after these, as cursor. null: there are none.' }),
  })
  .meta({ id: 'Session' });
export type SessionAnswer = z.infer<typeof sessionAnswer>;

/** Answer of `GET /v1/sessions`. */
export const sessionPage = pageOf(sessionSummary).meta({ id: 'SessionPage' });

const ofSession = externalId.meta({
  description: 'With a grant that was issued with this external_session.',
});
const ofUser = externalId.meta({ description: 'With a grant that was issued with this external_user.' });
const STATUS = `expected one of ${SESSION_STATUSES.join(', ')}`;

/** Query of `GET /v1/sessions`: sessions with a grant that was issued with these ids. */
export const sessionsQuery = z.strictObject(
  {
    ...pageQuery.shape,
    external_session: ofSession.optional(),
    external_user: ofUser.optional(),
    status: z.enum(SESSION_STATUSES, STATUS).optional().meta({ description: 'Left out: both.' }),
  },
  QUERY,
);
export type SessionsQuery = z.output<typeof sessionsQuery>;

/** Query of `DELETE /v1/sessions`: whose grants are revoked. Never all, by a filter that was left out. */
export const revokeSessionsQuery = z
  .strictObject(
    {
      external_session: externalId.optional().meta({ description: 'Either this or external_user.' }),
      external_user: externalId
        .optional()
        .meta({ description: 'Either this or external_session.', examples: ['user-42'] }),
    },
    QUERY,
  )
  .refine((query) => (query.external_session === undefined) !== (query.external_user === undefined), {
    path: ['external_user'],
    error: 'expected exactly one of external_user and external_session',
  });
export type RevokeSessionsQuery = z.output<typeof revokeSessionsQuery>;

/** What the holder of an LLM URL is told of it. */
export const grantStatus = z.strictObject({
  provider: z.string(),
  method: z.string(),
  paths: z.array(z.string()),
  session_id: z.guid(),
  /** Unix time in seconds. */
  expires_at: z.number(),
  /** By its owner, or because a call cost more than its worst case. */
  revoked: z.boolean(),
  /** -1: unlimited. */
  max_uses: z.int(),
  used: z.int(),
  /** Microdollars; null: no limit. */
  cost_limit: microusd.nullable(),
  /** null: as many as come. */
  calls_per_minute: z.int().nullable(),
  /** Microdollars that are settled, and that are held by calls under way. */
  spent: microusd,
  held: microusd,
});
export type GrantStatus = z.infer<typeof grantStatus>;
