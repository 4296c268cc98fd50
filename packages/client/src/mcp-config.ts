import type { McpPresignAnswer } from '../generated/types.ts';

/** The configuration that MCP clients read. */
export type McpConfig = { readonly mcpServers: McpPresignAnswer['servers'] };

/**
 * The configuration of all servers of a bundle: what its `bundle_url` gives, without asking for it.
 * It is as secret as the URLs in it.
 */
export function mcpConfig({ servers }: Pick<McpPresignAnswer, 'servers'>): McpConfig {
  return { mcpServers: structuredClone(servers) };
}
