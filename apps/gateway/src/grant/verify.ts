import { type PublicKeys, verifyToken } from '@presign/crypto';
import { compilePaths, type PathMatcher, type Provider } from '@presign/providers';
import {
  IAT_LEEWAY_SECONDS,
  llmClaims,
  mcpBundleClaims,
  mcpClaims,
  type Refusal,
  type TokenClaims,
} from '@presign/schema';
import { LRUCache } from 'lru-cache';

/** The content of every valid token, of any kind. */
export type VerifiedGrant = {
  readonly id: string;
  readonly sessionId: string;
  readonly partition: number;
  readonly expiresAtMs: number;
  /** Its policy says where calls may come from. */
  readonly isBound: boolean;
};

/**
 * `expired` is the grant of a token whose only fault is its age. `signed` is the grant in any refused token that a key of this gateway has
 * signed.
 */
export type Verified<G extends VerifiedGrant> =
  | { readonly grant: G }
  | { readonly refusal: Refusal; readonly expired?: G; readonly signed?: VerifiedGrant };
export type Verifier<G extends VerifiedGrant> = (token: string) => Verified<G>;

export type VerifierDeps = {
  readonly publicKeys: PublicKeys;
  readonly gatewayUrl: string;
  readonly now: () => number;
};

/** The calls that an LLM token allows, compiled so that a call can be matched against it. */
export type LlmGrant = VerifiedGrant & {
  readonly provider: Provider;
  /** The provider's base URL: `scheme://host:port`, and the path that precedes every call's path, '' or `/…`. */
  readonly origin: string;
  readonly basePath: string;
  readonly method: string;
  readonly paths: readonly string[];
  readonly matches: PathMatcher;
  /** The model to write into the path before matching, for providers that have the model there. */
  readonly model: string | undefined;
  /** Its paths can be opened as sockets. */
  readonly hasSockets: boolean;
};

/** Creates the verifier of LLM tokens. */
export function llmVerifier(
  deps: VerifierDeps & { readonly providers: ReadonlyMap<string, Provider> },
): Verifier<LlmGrant> {
  return createVerifier(
    deps,
    (claims) => llmClaims.safeParse(claims).data,
    (claims, grant) => {
      const provider = deps.providers.get(claims.prv);
      if (provider?.baseUrl === undefined) return { refusal: { code: 'unknown_provider' } };
      const base = new URL(provider.baseUrl);
      return {
        grant: {
          ...grant,
          provider,
          origin: base.origin,
          basePath: base.pathname === '/' ? '' : base.pathname,
          method: claims.mth,
          paths: claims.pth,
          matches: compilePaths(claims.pth),
          model: claims.mdl,
          hasSockets: claims.crt?.includes('sockets') === true,
        },
      };
    },
    // The facts about a provider may have changed since.
    ({ provider }) => deps.providers.get(provider.id) === provider,
  );
}

/** The calls that the token of an MCP server's URL allows. */
export type McpGrant = VerifiedGrant & {
  /** SHA-256 of the server's URL, base64url. */
  readonly server: string;
  /** Its policy has conditions of arguments. */
  readonly limitsArguments: boolean;
};

/** Creates the verifier of MCP server tokens. */
export const mcpVerifier = (deps: VerifierDeps): Verifier<McpGrant> =>
  createVerifier(
    deps,
    (claims) => mcpClaims.safeParse(claims).data,
    (claims, grant) => ({
      grant: { ...grant, server: claims.srv, limitsArguments: claims.crt?.includes('arguments') === true },
    }),
  );

/** Creates the verifier of bundle tokens. */
export const bundleVerifier = (deps: VerifierDeps): Verifier<VerifiedGrant> =>
  createVerifier(
    deps,
    (claims) => mcpBundleClaims.safeParse(claims).data,
    (_claims, grant) => ({ grant }),
  );

/** The memory for verified tokens of one kind, about 27,000. Verifying a token takes 60 times as long as finding it. */
const MEMORY_BYTES = 48 * 1024 * 1024;
/** The memory that a grant takes, without the text of its token. */
const GRANT_BYTES = 700;

/**
 * Creates the verifier of tokens of one kind. It checks a token's signature once and its expiry every time.
 * @param readClaims returns undefined for claims of another kind
 * @param grantOf returns what such claims allow
 * @param isCurrent whether a grant that was verified before is still what its claims allow
 */
function createVerifier<C extends TokenClaims, G extends VerifiedGrant>(
  deps: VerifierDeps,
  readClaims: (claims: unknown) => C | undefined,
  grantOf: (claims: C, grant: VerifiedGrant) => Verified<G>,
  isCurrent: (grant: G) => boolean = () => true,
): Verifier<G> {
  const seen = new LRUCache<string, G>({
    maxSize: MEMORY_BYTES,
    sizeCalculation: (_grant, token) => 2 * token.length + GRANT_BYTES,
  });
  return (token) => {
    const before = seen.get(token);
    const known = before && isCurrent(before) ? before : undefined;
    const verified = known ? { grant: known } : verify(deps, readClaims, grantOf, token);
    if ('refusal' in verified) return verified;
    if (!known) seen.set(token, verified.grant);
    // Expiry has no leeway.
    const { grant } = verified;
    return grant.expiresAtMs <= deps.now()
      ? { refusal: { code: 'token_expired' }, expired: grant, signed: grant }
      : verified;
  };
}

function verify<C extends TokenClaims, G extends VerifiedGrant>(
  deps: VerifierDeps,
  readClaims: (claims: unknown) => C | undefined,
  grantOf: (claims: C, grant: VerifiedGrant) => Verified<G>,
  token: string,
): Verified<G> {
  const signed = verifyToken(token, deps.publicKeys);
  if (!signed.ok) return { refusal: { code: 'token_invalid', reason: signed.reason } };
  const claims = readClaims(signed.claims);
  if (!claims) return { refusal: { code: 'token_invalid', reason: 'other_kind' } };
  const grant = {
    id: claims.jti,
    sessionId: claims.sub,
    partition: claims.prt,
    expiresAtMs: Date.parse(claims.exp),
    isBound: claims.crt?.includes('bind') === true,
  };
  const invalid = (reason: 'other_gateway' | 'issued_in_the_future') =>
    ({ refusal: { code: 'token_invalid', reason }, signed: grant }) as const;
  if (claims.aud !== deps.gatewayUrl) return invalid('other_gateway');
  if (Date.parse(claims.iat) > deps.now() + IAT_LEEWAY_SECONDS * 1000) return invalid('issued_in_the_future');
  const verified = grantOf(claims, grant);
  return 'refusal' in verified ? { ...verified, signed: grant } : verified;
}
