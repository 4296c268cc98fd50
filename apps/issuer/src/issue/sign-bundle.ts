import { createHash } from 'node:crypto';
import { MAX_TOKEN_CHARS, signToken } from '@presign/crypto';
import {
  type McpBundle,
  type McpBundleClaims,
  type McpClaims,
  type McpPresignAnswer,
  type McpServer,
  type McpServerEntry,
  RefusedError,
} from '@presign/schema';
import type { IssuerDeps } from '../deps.ts';
import { registeredClaims } from './sign.ts';

/** Node and common proxies refuse longer ones. */
const MAX_URL_CHARS = 6144;

/** What the tokens of a bundle and of its servers have in common. */
export type IssuedBundle = {
  /** Id of the bundle's own grant. */
  readonly id: string;
  readonly sessionId: string;
  readonly partition: number;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
};

/** A server of a bundle, with the id of its grant. */
export type IssuedServer = { readonly grantId: string; readonly server: McpServer };

/**
 * Signs a URL for each server of a bundle: the bundle's document.
 * @throws RefusedError that names `servers[i].url` when it is too long for an issued URL
 */
export function signServers(
  deps: IssuerDeps,
  bundle: IssuedBundle,
  servers: readonly IssuedServer[],
): McpBundle {
  const entries = servers.map(({ grantId, server }, i): [string, McpServerEntry] => {
    const token = signServer(deps, { ...bundle, id: grantId }, server, `servers[${i}].url`);
    const url = `${deps.gatewayUrl}/mcp/mcp?url=${encodeURIComponent(server.url)}&token=${token}`;
    if (url.length > MAX_URL_CHARS) {
      const problem = `the issued URL would have ${url.length} characters, at most ${MAX_URL_CHARS} are accepted`;
      throw tooLong(`servers[${i}].url`, problem);
    }
    return [server.name, { url, transport: server.transport }];
  });
  // Unlike an assignment, this makes any name a field of the object's own.
  return { mcpServers: Object.fromEntries(entries) };
}

/** Forms the answer. Ed25519 is deterministic: the same grant gives the same bundle token. */
export function answerBundle(deps: IssuerDeps, grant: IssuedBundle, bundle: McpBundle): McpPresignAnswer {
  const claims: McpBundleClaims = { ...registeredClaims(deps, grant), knd: 'mcp_bundle' };
  const token = signToken(claims, deps.signingKey);
  return {
    bundle_url: `${deps.gatewayUrl}/mcp/bundle/${token}`,
    bundle_token: token,
    expires_at: grant.expiresAt.getTime() / 1000,
    session_id: grant.sessionId,
    servers: bundle.mcpServers,
  };
}

/** A token has room enough for all but the longest addresses of the services themselves. */
function signServer(deps: IssuerDeps, grant: IssuedBundle, { url }: McpServer, field: string): string {
  const srv = createHash('sha256').update(url).digest('base64url');
  const claims: McpClaims = { ...registeredClaims(deps, grant), knd: 'mcp', srv };
  try {
    return signToken(claims, deps.signingKey);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw tooLong(field, `its token would have more than ${MAX_TOKEN_CHARS} characters`);
  }
}

const tooLong = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });
