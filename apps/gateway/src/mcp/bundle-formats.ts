import type { McpBundle, McpServerEntry } from '@presign/schema';

/**
 * A bundle's document as a client's own configuration.
 * @returns undefined for a format that is not one of `FORMATS`
 */
export function inFormat(bundle: McpBundle, format: string): object | undefined {
  const client = CLIENTS.get(format);
  if (client === undefined) return undefined;
  const entries = Object.entries(bundle.mcpServers).map(([name, entry]) => [name, client.entry(entry)]);
  // Unlike an assignment, this makes any name a field of the object's own.
  return { [client.under]: Object.fromEntries(entries) };
}

/** How a client has its servers: the name they stand under, and each one's form. */
type Client = { readonly under: string; readonly entry: (entry: McpServerEntry) => object };

/** https://code.claude.com/docs/en/mcp: `.mcp.json`, `type` is `http` or `sse`. */
const claudeCode = ({ url, transport }: McpServerEntry) => ({ type: transport, url });

/**
 * `claude_desktop_config.json` starts programs (https://modelcontextprotocol.io/docs/develop/connect-local-servers),
 * so mcp-remote stands between: https://github.com/geelen/mcp-remote#readme, "Flags" and "Transport Strategies".
 */
const claudeDesktop = ({ url, transport }: McpServerEntry) => ({
  command: 'npx',
  args: [
    '-y',
    'mcp-remote',
    url,
    '--transport',
    `${transport}-only`,
    ...(url.startsWith('http:') ? ['--allow-http'] : []),
  ],
});

/** https://cursor.com/docs/mcp: `mcp.json`, a `url` alone; the transport is found out by trying. */
const cursor = ({ url }: McpServerEntry) => ({ url });

/** https://code.visualstudio.com/docs/copilot/reference/mcp-configuration: `mcp.json`, under `servers`. */
const vscode = ({ url, transport }: McpServerEntry) => ({ type: transport, url });

/** https://docs.windsurf.com/windsurf/cascade/mcp: `mcp_config.json`, a remote server has a `serverUrl`. */
const windsurf = ({ url }: McpServerEntry) => ({ serverUrl: url });

/**
 * https://docs.cline.bot/mcp/adding-and-configuring-servers: `cline_mcp_settings.json`; without a `type` a `url` is
 * taken for SSE, and Streamable HTTP has a name of its own (`src/services/mcp/schemas.ts` of cline/cline).
 */
const cline = ({ url, transport }: McpServerEntry) => ({
  type: transport === 'http' ? 'streamableHttp' : 'sse',
  url,
});

const CLIENTS: ReadonlyMap<string, Client> = new Map([
  ['claude-code', { under: 'mcpServers', entry: claudeCode }],
  ['claude-desktop', { under: 'mcpServers', entry: claudeDesktop }],
  ['cursor', { under: 'mcpServers', entry: cursor }],
  ['vscode', { under: 'servers', entry: vscode }],
  ['windsurf', { under: 'mcpServers', entry: windsurf }],
  ['cline', { under: 'mcpServers', entry: cline }],
]);

/** Names of the clients whose configuration can be had. */
export const FORMATS: readonly string[] = [...CLIENTS.keys()];
