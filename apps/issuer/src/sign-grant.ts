import { MAX_TOKEN_CHARS, signToken } from '@presign/crypto';
import { type LlmClaims, type PresignAnswer, RefusedError } from '@presign/schema';
import type { IssuerDeps } from './app.ts';

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

/** Signs a grant's token and forms the answer. Ed25519 is deterministic: the same grant gives the same URL. */
export function signGrant(deps: IssuerDeps, grant: IssuedGrant): PresignAnswer {
  const claims: LlmClaims = {
    jti: grant.id,
    sub: grant.sessionId,
    iat: grant.issuedAt.toISOString(),
    exp: grant.expiresAt.toISOString(),
    iss: deps.issuerUrl,
    aud: deps.gatewayUrl,
    prt: grant.partition,
    knd: 'llm',
    prv: grant.provider,
    mth: grant.method,
    pth: [...grant.paths],
    ...modelInPath(deps, grant),
  };
  const token = signToken(claims, deps.signingKey);
  if (token.length > MAX_TOKEN_CHARS) {
    const message = `path: the paths make a token of ${token.length} characters; at most ${MAX_TOKEN_CHARS} fit.`;
    throw new RefusedError({ code: 'invalid_request', param: 'path', message });
  }
  return {
    url: `${deps.gatewayUrl}/llm/t/${token}${grant.paths[0]}`,
    session_id: grant.sessionId,
    expires_at: grant.expiresAt.getTime() / 1000,
  };
}

/** `config.model` rides in the token where the provider has the model in the path, which is matched by the token. */
function modelInPath({ providers }: IssuerDeps, { provider, config }: IssuedGrant): { mdl?: string } {
  const model = config?.model;
  const inPath = providers.get(provider)?.routes.some(({ dialect }) => dialect.modelInPath);
  return inPath && typeof model === 'string' ? { mdl: model } : {};
}
