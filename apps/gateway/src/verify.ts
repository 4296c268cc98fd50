import { type PublicKeys, verifyToken } from '@presign/crypto';
import type { Provider } from '@presign/providers';
import { compilePaths, type PathMatcher } from '@presign/providers';
import { IAT_LEEWAY_SECONDS, llmClaims, type Refusal } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/** What a valid token says, ready to judge a call by. */
export type VerifiedGrant = {
  readonly id: string;
  readonly sessionId: string;
  readonly partition: number;
  readonly provider: Provider;
  /** The provider's base URL: `scheme://host:port`, and the path before every call's, '' or `/…`. */
  readonly origin: string;
  readonly basePath: string;
  readonly method: string;
  readonly paths: readonly string[];
  readonly matches: PathMatcher;
  /** The model that is written into the path before it is matched, where the provider has it there. */
  readonly model: string | undefined;
  readonly expiresAtMs: number;
};

export type Verified = { readonly grant: VerifiedGrant } | { readonly refusal: Refusal };
export type Verifier = (token: string) => Verified;

type VerifierDeps = {
  readonly publicKeys: PublicKeys;
  readonly providers: ReadonlyMap<string, Provider>;
  readonly gatewayUrl: string;
  readonly now: () => number;
};

/** Tokens remembered after their signature was found good; a token and its grant take about 2 KB. */
const REMEMBERED = 10_000;

/** Makes the check of tokens: signature once, expiry every time. */
export function createVerifier(deps: VerifierDeps): Verifier {
  const seen = new LRUCache<string, VerifiedGrant>({ max: REMEMBERED });
  return (token) => {
    const known = seen.get(token);
    const verified = known ? { grant: known } : verify(deps, token);
    if ('refusal' in verified) return verified;
    if (!known) seen.set(token, verified.grant);
    // No leeway: an expired URL is expired.
    return verified.grant.expiresAtMs <= deps.now() ? { refusal: { code: 'token_expired' } } : verified;
  };
}

function verify(deps: VerifierDeps, token: string): Verified {
  const signed = verifyToken(token, deps.publicKeys);
  if (!signed.ok) return { refusal: { code: 'token_invalid' } };
  const read = llmClaims.safeParse(signed.claims);
  if (!read.success || read.data.aud !== deps.gatewayUrl) return { refusal: { code: 'token_invalid' } };
  const claims = read.data;
  if (Date.parse(claims.iat) > deps.now() + IAT_LEEWAY_SECONDS * 1000)
    return { refusal: { code: 'token_invalid' } };
  const provider = deps.providers.get(claims.prv);
  if (provider?.baseUrl === undefined) return { refusal: { code: 'unknown_provider' } };
  const base = new URL(provider.baseUrl);
  return {
    grant: {
      id: claims.jti,
      sessionId: claims.sub,
      partition: claims.prt,
      provider,
      origin: base.origin,
      basePath: base.pathname === '/' ? '' : base.pathname,
      method: claims.mth,
      paths: claims.pth,
      matches: compilePaths(claims.pth),
      model: claims.mdl,
      expiresAtMs: Date.parse(claims.exp),
    },
  };
}
