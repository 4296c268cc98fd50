import { compilePaths, type PathMatcher, type Provider } from '@presign/providers';
import { llmClaims } from '@presign/schema';
import { createVerifier, type VerifiedGrant, type Verifier, type VerifierDeps } from './verify.ts';

/** What an LLM token allows, ready to judge a call by. */
export type LlmGrant = VerifiedGrant & {
  readonly provider: Provider;
  /** The provider's base URL: `scheme://host:port`, and the path before every call's, '' or `/…`. */
  readonly origin: string;
  readonly basePath: string;
  readonly method: string;
  readonly paths: readonly string[];
  readonly matches: PathMatcher;
  /** The model that is written into the path before it is matched, where the provider has it there. */
  readonly model: string | undefined;
};

/** Makes the check of LLM tokens. */
export function llmVerifier(
  deps: VerifierDeps & { readonly providers: ReadonlyMap<string, Provider> },
): Verifier<LlmGrant> {
  return createVerifier(deps, readClaims, (claims, grant) => {
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
      },
    };
  });
}

const readClaims = (claims: unknown) => llmClaims.safeParse(claims).data;
