import * as z from 'zod';
import { mcpBundleClaims } from '../claims.ts';
import type { McpArguments, McpPricing } from './mcp/tools.ts';
import { type McpServer, mcpTransport } from './mcp-presign.ts';
import { expiresAt, grantId } from './presign.ts';
import { warnings } from './warning.ts';

/** The policy of one MCP server of a bundle. It contains nothing secret. */
export type McpServerPolicy = {
  readonly name: string;
  readonly url: string;
  readonly transport: McpServer['transport'];
  readonly pricing?: McpPricing;
  /** The tools that may be called. Omitted: all. */
  readonly tools?: readonly string[];
  readonly arguments?: McpArguments;
};

/** The address of one server of a bundle, for a client. */
export const mcpServerEntry = z
  .strictObject({ url: z.url(), transport: mcpTransport })
  .meta({ id: 'McpServerUrl' });

export type McpServerEntry = z.infer<typeof mcpServerEntry>;

/** Answer of `POST /v2/mcp-presign`. */
export const mcpPresignAnswer = z
  .strictObject({
    bundle_url: z.url().meta({ description: "Returns an MCP client's configuration with all servers." }),
    bundle_token: z.string().meta({ description: 'The last part of bundle_url.' }),
    expires_at: expiresAt,
    session_id: z.guid(),
    servers: z
      .record(z.string(), mcpServerEntry)
      .meta({ description: 'The servers by their names in the request.' }),
    grant_id: grantId,
    claims: mcpBundleClaims.meta({ description: 'The claims that bundle_token carries.' }),
    warnings,
  })
  .meta({
    id: 'McpPresignAnswer',
    examples: [
      {
        bundle_url: 'https://gateway.example.com/mcp/bundle/v4.public.eyJ...',
        bundle_token: 'v4.public.eyJ...',
        expires_at: 1_767_225_600,
        session_id: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
        servers: {
          docs: {
            url: 'https://gateway.example.com/mcp/mcp?url=https%3A%2F%2Fmcp.example.com%2Fmcp&token=v4.public.eyJ...',
            transport: 'http',
          },
        },
        grant_id: '9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69',
        claims: {
          jti: '9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69',
          sub: '3f2504e0-4f89-41d3-9a0c-0305e82c3301',
          iat: '2025-12-31T23:00:00.000Z',
          exp: '2026-01-01T00:00:00.000Z',
          iss: 'https://presign.example.com',
          aud: 'https://gateway.example.com',
          prt: 17,
          knd: 'mcp_bundle',
        },
      },
    ],
  });

export type McpPresignAnswer = z.infer<typeof mcpPresignAnswer>;

/** The answer of `bundle_url`: the common form of an MCP client's configuration. */
export const mcpBundle = z.strictObject({ mcpServers: z.record(z.string(), mcpServerEntry) });

export type McpBundle = z.infer<typeof mcpBundle>;
