import { MAX_TOKEN_CHARS, signToken } from '@presign/crypto';
import { type LlmClaims, type PresignAnswer, RefusedError } from '@presign/schema';
import type { IssuerDeps } from '../deps.ts';
import type { EarlierGrant } from '../middleware/idempotency.ts';

/** What of a grant goes into its token. */
export type IssuedGrant = {
  readonly id: string;
  readonly sessionId: string;
  readonly provider: string;
  readonly method: string;
  readonly paths: readonly string[];
  readonly partition: number;
  readonly config: Record<string, unknown> | null;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
};

/** An LLM grant as it was written earlier. */
export function asIssued(grant: EarlierGrant): IssuedGrant {
  const { method, paths } = grant;
  if (method === null || paths === null) throw new Error(`grant ${grant.id} is no LLM grant`);
  return { ...grant, method, paths };
}

/** Tokens and answers speak in whole seconds. */
export const wholeSecond = (ms: number) => new Date(Math.floor(ms / 1000) * 1000);

/** Signs a grant's token and forms the answer. Ed25519 is deterministic: the same grant gives the same URL. */
export function signGrant(deps: IssuerDeps, grant: IssuedGrant): PresignAnswer {
  const claims: LlmClaims = {
    ...registeredClaims(deps, grant),
    knd: 'llm',
    prv: grant.provider,
    mth: grant.method,
    pth: [...grant.paths],
    ...modelInPath(deps, grant),
  };
  return {
    url: `${deps.gatewayUrl}/llm/t/${signed(deps, claims)}${grant.paths[0]}`,
    session_id: grant.sessionId,
    expires_at: grant.expiresAt.getTime() / 1000,
  };
}

/** What the tokens of all kinds say. */
export const registeredClaims = (
  { issuerUrl, gatewayUrl }: IssuerDeps,
  grant: Pick<IssuedGrant, 'id' | 'sessionId' | 'partition' | 'issuedAt' | 'expiresAt'>,
) => ({
  jti: grant.id,
  sub: grant.sessionId,
  iat: grant.issuedAt.toISOString(),
  exp: grant.expiresAt.toISOString(),
  iss: issuerUrl,
  aud: gatewayUrl,
  prt: grant.partition,
});

/** Paths within their own limit fit; a long model name, or long addresses of the services, may leave no room. */
function signed({ signingKey }: IssuerDeps, claims: LlmClaims): string {
  try {
    return signToken(claims, signingKey);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const what = claims.mdl === undefined ? 'the paths are' : 'the paths and config.model together are';
    const message = `path: ${what} too long for a token of ${MAX_TOKEN_CHARS} characters.`;
    throw new RefusedError({ code: 'invalid_request', param: 'path', message });
  }
}

/** `config.model` rides in the token where the provider has the model in the path, which is matched by the token. */
function modelInPath({ providers }: IssuerDeps, { provider, config }: IssuedGrant): { mdl?: string } {
  const model = config?.model;
  const inPath = providers.get(provider)?.routes.some(({ dialect }) => dialect.modelInPath);
  return inPath && typeof model === 'string' ? { mdl: model } : {};
}
