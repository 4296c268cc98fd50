import { z } from 'zod';
import { MCP_TRANSPORTS } from './mcp-presign.ts';
import { microusd } from './money.ts';

/** What is used and spent: settled as the ledger has it, and live, calls under way included. */
const figures = z.strictObject({
  /** Uses and microdollars in the ledger. */
  settled: z.strictObject({ used: z.int(), spent: microusd }),
  /** As Redis counts them now; null when it does not answer. */
  live: z.strictObject({ used: z.int(), spent: microusd, held: microusd }).nullable(),
});

/** One grant of a session, as its owner sees it. The grants of a bundle have one pot: each tells the figures of all. */
export const sessionGrant = z.strictObject({
  id: z.guid(),
  kind: z.enum(['llm', 'mcp', 'mcp_bundle']),
  /** `mcp` for MCP grants. */
  provider: z.string(),
  /** Of an LLM grant. */
  method: z.string().nullable(),
  paths: z.array(z.string()).nullable(),
  /** Of an MCP server's grant: the server as it was asked for, and the grant of its bundle. */
  server: z.strictObject({ name: z.string(), url: z.string(), transport: z.enum(MCP_TRANSPORTS) }).nullable(),
  bundle_id: z.guid().nullable(),
  external_session: z.string().nullable(),
  external_user: z.string().nullable(),
  /** Unix times in seconds. */
  issued_at: z.number(),
  expires_at: z.number(),
  status: z.enum(['active', 'exhausted', 'expired', 'revoked']),
  /** -1: unlimited. */
  max_uses: z.int(),
  /** Microdollars; null: no limit. */
  cost_limit: microusd.nullable(),
  ...figures.shape,
});
export type SessionGrant = z.infer<typeof sessionGrant>;

/** Answer of `GET /v1/sessions/{id}`. */
export const sessionAnswer = z.strictObject({
  id: z.guid(),
  created_at: z.number(),
  /** Active while one of its grants is. */
  status: z.enum(['active', 'ended']),
  grants: z.array(sessionGrant),
});
export type SessionAnswer = z.infer<typeof sessionAnswer>;
