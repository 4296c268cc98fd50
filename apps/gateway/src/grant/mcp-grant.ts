import { createHash } from 'node:crypto';
import { mcpBundleClaims, mcpClaims } from '@presign/schema';
import { createVerifier, type VerifiedGrant, type Verifier, type VerifierDeps } from './verify.ts';

/** What the token of one MCP server's URL allows. */
export type McpGrant = VerifiedGrant & {
  /** SHA-256 of the server's URL, base64url. */
  readonly server: string;
};

/** Makes the check of MCP server tokens. */
export const mcpVerifier = (deps: VerifierDeps): Verifier<McpGrant> =>
  createVerifier(
    deps,
    (claims) => mcpClaims.safeParse(claims).data,
    (claims, grant) => ({ grant: { ...grant, server: claims.srv } }),
  );

/** Makes the check of bundle tokens. */
export const bundleVerifier = (deps: VerifierDeps): Verifier<VerifiedGrant> =>
  createVerifier(
    deps,
    (claims) => mcpBundleClaims.safeParse(claims).data,
    (_claims, grant) => ({ grant }),
  );

/** Whether a URL is byte for byte the one that a token was issued for. */
export const isServer = ({ server }: McpGrant, url: string): boolean =>
  createHash('sha256').update(url).digest('base64url') === server;
