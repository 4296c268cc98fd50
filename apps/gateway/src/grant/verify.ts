import { type PublicKeys, verifyToken } from '@presign/crypto';
import { IAT_LEEWAY_SECONDS, type Refusal, type TokenClaims } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/** What every valid token says. */
export type VerifiedGrant = {
  readonly id: string;
  readonly sessionId: string;
  readonly partition: number;
  readonly expiresAtMs: number;
};

export type Verified<G extends VerifiedGrant> = { readonly grant: G } | { readonly refusal: Refusal };
export type Verifier<G extends VerifiedGrant> = (token: string) => Verified<G>;

export type VerifierDeps = {
  readonly publicKeys: PublicKeys;
  readonly gatewayUrl: string;
  readonly now: () => number;
};

/** Tokens remembered after their signature was found good; a token and its grant take about 2 KB. */
const REMEMBERED = 10_000;

/**
 * Makes the check of tokens of one kind: signature once, expiry every time.
 * @param read claims of this kind; undefined for those of another kind
 * @param grantOf what such claims allow
 */
export function createVerifier<C extends TokenClaims, G extends VerifiedGrant>(
  deps: VerifierDeps,
  read: (claims: unknown) => C | undefined,
  grantOf: (claims: C, grant: VerifiedGrant) => Verified<G>,
): Verifier<G> {
  const seen = new LRUCache<string, G>({ max: REMEMBERED });
  return (token) => {
    const known = seen.get(token);
    const verified = known ? { grant: known } : verify(deps, read, grantOf, token);
    if ('refusal' in verified) return verified;
    if (!known) seen.set(token, verified.grant);
    // No leeway: an expired URL is expired.
    return verified.grant.expiresAtMs <= deps.now() ? { refusal: { code: 'token_expired' } } : verified;
  };
}

function verify<C extends TokenClaims, G extends VerifiedGrant>(
  deps: VerifierDeps,
  read: (claims: unknown) => C | undefined,
  grantOf: (claims: C, grant: VerifiedGrant) => Verified<G>,
  token: string,
): Verified<G> {
  const signed = verifyToken(token, deps.publicKeys);
  if (!signed.ok) return { refusal: { code: 'token_invalid' } };
  const claims = read(signed.claims);
  if (claims?.aud !== deps.gatewayUrl) return { refusal: { code: 'token_invalid' } };
  if (Date.parse(claims.iat) > deps.now() + IAT_LEEWAY_SECONDS * 1000)
    return { refusal: { code: 'token_invalid' } };
  return grantOf(claims, {
    id: claims.jti,
    sessionId: claims.sub,
    partition: claims.prt,
    expiresAtMs: Date.parse(claims.exp),
  });
}
