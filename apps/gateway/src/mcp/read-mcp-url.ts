/** What the URL of an MCP call says. */
export type McpUrl = {
  /** The server's address. */
  readonly url: string;
  readonly token: string;
  /** Of the older HTTP+SSE transport: where a session's messages go, sealed. */
  readonly endpoint: string | undefined;
};

/**
 * Takes `…?url=<server>&token=<token>[&ep=<endpoint>]` apart. Parameters of other names say nothing here.
 * @returns undefined when one of them is missing, stands twice or is not percent-encoded UTF-8
 */
export function readMcpUrl(target: string): McpUrl | undefined {
  const mark = target.indexOf('?');
  const found = new Map<string, string>();
  for (const part of mark < 0 ? [] : target.slice(mark + 1).split('&')) {
    const equals = part.indexOf('=');
    const name = equals < 0 ? part : part.slice(0, equals);
    if (!NAMES.has(name)) continue;
    const value = decode(part.slice(equals + 1));
    if (found.has(name) || value === undefined) return undefined;
    found.set(name, value);
  }
  const [url, token] = [found.get('url'), found.get('token')];
  return url && token ? { url, token, endpoint: found.get('ep') } : undefined;
}

const NAMES: ReadonlySet<string> = new Set(['url', 'token', 'ep']);

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
