import type { McpPricing, McpServer } from './mcp-presign.ts';

/** What the issuer laid down for one MCP server of a bundle; nothing secret. */
export type McpServerPolicy = {
  readonly name: string;
  readonly url: string;
  readonly transport: McpServer['transport'];
  readonly pricing?: McpPricing;
  /** The tools that may be called; all of them when left out. */
  readonly tools?: readonly string[];
};
