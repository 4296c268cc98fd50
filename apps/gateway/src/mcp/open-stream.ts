import type { McpDeps } from '../deps.ts';
import type { McpCall } from './call.ts';
import type { Listening } from './legacy-sse.ts';
import { sealEndpoint } from './sealed-session.ts';

/** The older transport's stream: its endpoint is rewritten, and it listens for refusals. */
export type OpenStream = {
  /**
   * Takes the server's `endpoint` and gives the holder's: a path on this gateway that carries the server's own,
   * sealed. Undefined when that is of another origin, which would get our credential.
   */
  readonly rewrite: (data: string, tell: (message: string) => void) => Promise<Buffer | undefined>;
  readonly close: () => void;
};

export function openStream(deps: McpDeps, { grant, server, incoming, requestId }: McpCall): OpenStream {
  let listening: Listening | undefined;
  let isClosed = false;
  return {
    rewrite: async (data, tell) => {
      const named = data.trim();
      const endpoint = URL.canParse(named, server.url) ? new URL(named, server.url) : undefined;
      if (endpoint?.origin !== new URL(server.url).origin) {
        deps.log.warn(
          { request_id: requestId, grant: grant.id },
          'an MCP server named an endpoint elsewhere',
        );
        return undefined;
      }
      // A stream that names a second endpoint is not listened to twice.
      listening ??= await deps.listeners.listen(grant.partition, tell);
      if (isClosed) listening.close();
      const sealed = sealEndpoint(deps.encryptionKeys, grant, {
        href: endpoint.href,
        channel: listening.channel,
      });
      return Buffer.from(`event: endpoint\ndata: ${pathOf(deps, incoming.url ?? '')}&ep=${sealed}\n\n`);
    },
    close: () => {
      isClosed = true;
      listening?.close();
    },
  };
}

/** The stream's own address, without its origin, which clients want unchanged. */
function pathOf({ gatewayUrl }: McpDeps, target: string): string {
  const prefix = new URL(gatewayUrl).pathname.replace(/\/$/, '');
  const kept = target
    .slice(target.indexOf('?') + 1)
    .split('&')
    .filter((part) => part.startsWith('url=') || part.startsWith('token='));
  return `${prefix}/mcp/mcp?${kept.join('&')}`;
}
