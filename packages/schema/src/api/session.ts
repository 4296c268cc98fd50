import * as z from 'zod';
import { lastCall } from '../errors.ts';
import { apiKeyId, externalId, metadata, microusd, unixSeconds } from '../fields/fields.ts';
import { QUERY } from '../fields/invalid-request.ts';
import { shownFields } from '../fields/limits.ts';
import { pageOf, pageQuery } from '../fields/page.ts';
import { mcpArguments } from './mcp/tools.ts';
import { mcpTransport } from './mcp-presign.ts';
import { conditionsAnswer } from './presign.ts';

const used = z.int().meta({ description: 'Calls.' });
const spent = microusd.meta({ description: 'Microdollars.' });

/** Uses and money. `settled`: in the ledger. `live`: in Redis, running calls included. */
const figures = z.strictObject({
  settled: z
    .strictObject({ used, spent })
    .meta({ id: 'Settled', description: 'Uses and microdollars in the ledger.' }),
  live: z
    .strictObject({
      used,
      spent,
      held: microusd.meta({ description: 'Microdollars held for running calls.' }),
    })
    .meta({ id: 'LiveFigures' })
    .nullable()
    .meta({ description: 'Now, running calls included. null: Redis does not answer.' }),
});

/** The kinds of grants. */
export const grantKind = z.enum(['llm', 'mcp', 'mcp_bundle']).meta({ id: 'GrantKind' });

export const GRANT_STATUSES = ['active', 'exhausted', 'expired', 'revoked'] as const;

/** One grant of a session, as its owner sees it. All grants of a bundle show the figures of their one budget. */
export const sessionGrant = z
  .strictObject({
    id: z.guid(),
    kind: grantKind,
    provider: z.string().meta({ description: '`mcp` for MCP grants.' }),
    method: z.string().nullable().meta({ description: 'LLM grants only.' }),
    paths: z.array(z.string()).nullable().meta({ description: 'LLM grants only.' }),
    models: z
      .array(z.string())
      .nullable()
      .meta({ description: 'LLM grants only: the models that calls may use. null: all.' }),
    server: z
      .strictObject({
        name: z.string(),
        url: z.string(),
        transport: mcpTransport,
        tools: z.array(z.string()).nullable().meta({ description: 'null: all.' }),
        arguments: mcpArguments.nullable().meta({ description: 'null: any.' }),
      })
      .meta({ id: 'McpServer' })
      .nullable()
      .meta({ description: 'Grants of MCP servers only: the server of the request.' }),
    bundle_id: z
      .guid()
      .nullable()
      .meta({ description: 'Grants of MCP servers only: the grant of the bundle.' }),
    external_session: z.string().nullable(),
    external_user: z.string().nullable(),
    virtual_key: z.string().nullable().meta({
      description: 'Id of the virtual key that it was issued with. null: it was issued with client_api_key.',
    }),
    api_key: z.guid().nullable().meta({
      description: 'Id of the API key that issued it. null: it was issued before Presign recorded this.',
    }),
    metadata: metadata
      .nullable()
      .meta({ description: "As issued. A bundle's metadata is at the bundle's own grant." }),
    issued_at: unixSeconds,
    expires_at: unixSeconds,
    status: z.enum(GRANT_STATUSES).meta({ id: 'GrantStatus' }),
    ...shownFields,
    conditions: conditionsAnswer,
    shared_budgets: z.array(z.guid()).meta({
      description: 'Ids of the budgets that its calls draw on, too. They were chosen when it was issued.',
    }),
    revision: z.int().meta({ description: '1. Every change adds 1. The grants of a bundle share it.' }),
    ...figures.shape,
  })
  .meta({ id: 'SessionGrant' });
export type SessionGrant = z.infer<typeof sessionGrant>;

export const SESSION_STATUSES = ['active', 'ended'] as const;

/** A session in a list. Only the ledger decides whether a limit of its grants is exhausted. */
export const sessionSummary = z
  .strictObject({
    id: z.guid(),
    name: z.string().nullable().meta({ description: 'Your name for it. null: it has no name.' }),
    created_at: unixSeconds,
    revoked_at: unixSeconds.nullable().meta({ description: 'null: the session itself was not revoked.' }),
    status: z
      .enum(SESSION_STATUSES)
      .meta({ id: 'SessionStatus' })
      .meta({ description: 'Active while one of its grants is active by the figures of the ledger.' }),
    grant_count: z.int().meta({ description: 'How many grants it has.' }),
    expires_at: unixSeconds.nullable().meta({ description: 'When the last of its grants expires.' }),
    external_sessions: z.array(z.string()).meta({ description: 'The ids that its grants were issued with.' }),
    external_users: z.array(z.string()).meta({ description: 'The ids that its grants were issued with.' }),
    revision: z.int().meta({ description: '1. Every `PATCH` of it that changes something adds 1.' }),
  })
  .meta({ id: 'SessionSummary' });
export type SessionSummary = z.infer<typeof sessionSummary>;

/** The session's own, apart from that of its grants. */
export const sessionMetadata = metadata
  .nullable()
  .meta({ description: "The session's own, which `PATCH` sets. Each grant has the metadata of its issue." });

/** Answer of `GET /v1/sessions/{id}`: a session and a page of its grants. */
export const sessionAnswer = z
  .strictObject({
    ...sessionSummary.shape,
    metadata: sessionMetadata,
    grants: z.array(sessionGrant).meta({ description: 'Newest first.' }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'The cursor of the next page of grants. null: this is the last page.' }),
  })
  .meta({ id: 'Session' });
export type SessionAnswer = z.infer<typeof sessionAnswer>;

/** Answer of `GET /v1/sessions`. */
export const sessionPage = pageOf(sessionSummary).meta({ id: 'SessionPage' });

const ofSession = externalId.meta({
  description: 'Only sessions with a grant that was issued with this external_session.',
});
const ofUser = externalId.meta({
  description: 'Only sessions with a grant that was issued with this external_user.',
});
const ofApiKey = apiKeyId.meta({
  description: 'Only sessions with a grant that this API key issued, by its id.',
});
const STATUS = `expected one of ${SESSION_STATUSES.join(', ')}`;

/** Query of `GET /v1/sessions`: sessions with a grant that was issued with these ids and by this key. */
export const sessionsQuery = z.strictObject(
  {
    ...pageQuery.shape,
    external_session: ofSession.optional(),
    external_user: ofUser.optional(),
    api_key: ofApiKey.optional(),
    status: z
      .enum(SESSION_STATUSES, STATUS)
      .meta({ id: 'SessionStatus' })
      .optional()
      .meta({ description: 'Left out: both.' }),
  },
  QUERY,
);
export type SessionsQuery = z.output<typeof sessionsQuery>;

/** Query of `DELETE /v1/sessions`. A filter is required, so that a forgotten one never revokes all grants. */
export const revokeSessionsQuery = z
  .strictObject(
    {
      external_session: externalId
        .optional()
        .meta({ description: 'Revoke what was issued with this external_session.' }),
      external_user: externalId.optional().meta({
        description: 'Revoke what was issued with this external_user.',
        examples: ['user-42'],
      }),
      api_key: apiKeyId.optional().meta({ description: 'Revoke what this API key issued, by its id.' }),
    },
    QUERY,
  )
  .refine((query) => Object.values(query).filter((value) => value !== undefined).length === 1, {
    path: ['external_user'],
    error: 'expected exactly one of external_user, external_session and api_key',
  });
export type RevokeSessionsQuery = z.output<typeof revokeSessionsQuery>;

/** A window of a visible budget, as holders see it. null: no limit. */
const visibleBudget = z.strictObject({
  max_uses: z.int().nullable(),
  used: z.int(),
  cost_limit: microusd.nullable(),
  spent: microusd,
  held: microusd,
  tokens: z.int().nullable(),
  tokens_used: z.int(),
  /** Unix time in seconds; null: it has no end. */
  resets_at: z.int().nullable(),
});

/** The figures of an LLM URL, as its holder sees them. */
export const grantStatus = z.strictObject({
  provider: z.string(),
  method: z.string(),
  paths: z.array(z.string()),
  session_id: z.guid(),
  /** Unix time in seconds. */
  expires_at: z.int(),
  /** Its owner revoked it, or a call cost more than its worst case. */
  revoked: z.boolean(),
  ...shownFields,
  used: z.int(),
  /** Microdollars that are settled, and that running calls hold. */
  spent: microusd,
  held: microusd,
  /** How many sockets of it are open at the gateway that answers; null: it has no sockets. */
  open_sockets: z.int().nullable(),
  /** How the last call failed; null: it did not. */
  last_call: lastCall.nullable(),
  /** Budgets that it shares with others and that their owner shows: limits, what is left of them, and when they reset. */
  budgets: z.array(visibleBudget),
});
export type GrantStatus = z.infer<typeof grantStatus>;
