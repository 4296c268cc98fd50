import { createHash } from 'node:crypto';
import { MAX_TOKEN_CHARS, readPublicKeys, signToken } from '@presign/crypto';
import {
  type BudgetLimits,
  type Conditions,
  CRITICAL_LIMIT_NAMES,
  criticalClaim,
  type LlmClaims,
  limitKind,
  type McpBundle,
  type McpBundleClaims,
  type McpClaims,
  type McpPresignAnswer,
  type McpServer,
  type McpServerEntry,
  type PresignAnswer,
  publicKeysAnswer,
  RefusedError,
} from '@presign/schema';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { route } from '../middleware/route.ts';
import type { RouteDeps } from '../middleware/route-deps.ts';

type Needs = Pick<RouteDeps, 'signingKey' | 'providers' | 'issuerUrl' | 'gatewayUrl'>;

/** The fields of a grant that its token needs, of whatever kind it is. */
type Issued = {
  readonly id: string;
  readonly sessionId: string;
  readonly partition: number;
  readonly issuedAt: Date;
  readonly expiresAt: Date;
  readonly conditions: Conditions | null;
  readonly limits: BudgetLimits;
  /** When the token ends, if the grant's end was moved. */
  readonly signedUntil?: Date | null;
  /** The shared budgets that its calls draw on. Null: none. */
  readonly sharedBudgetIds?: readonly string[] | null;
};

/** The fields of an LLM grant that its token needs. */
export type IssuedGrant = Issued & {
  readonly provider: string;
  readonly method: string;
  readonly paths: readonly string[];
  readonly config: Record<string, unknown> | null;
};

/** Signs the token of an LLM grant and makes the answer. Ed25519 is deterministic: one grant has one URL. */
export function signGrant(deps: Needs, grant: IssuedGrant): PresignAnswer {
  const claims: LlmClaims = {
    ...registeredClaims(deps, grant),
    knd: 'llm',
    prv: grant.provider,
    mth: grant.method,
    pth: [...grant.paths],
    ...modelInPath(deps, grant),
  };
  return {
    url: `${deps.gatewayUrl}/llm/t/${signLlm(deps, claims)}${grant.paths[0]}`,
    session_id: grant.sessionId,
    expires_at: unixSeconds(grant.expiresAt),
    grant_id: grant.id,
    claims,
  };
}

/** A gateway that does not know of shared budgets refuses such a token. */
const sharedOf = ({ sharedBudgetIds }: Issued): string[] => (sharedBudgetIds ? ['shared_budgets'] : []);

/** The claims that tokens of all kinds have. */
const registeredClaims = (
  { issuerUrl, gatewayUrl }: Needs,
  grant: Issued,
  ofServer: readonly string[] = [],
) => ({
  jti: grant.id,
  sub: grant.sessionId,
  iat: grant.issuedAt.toISOString(),
  exp: (grant.signedUntil ?? grant.expiresAt).toISOString(),
  iss: issuerUrl,
  aud: gatewayUrl,
  prt: grant.partition,
  ...criticalClaim([
    ...Object.keys(grant.conditions ?? {}),
    ...CRITICAL_LIMIT_NAMES.filter((name) => grant.limits[limitKind(name).property] !== null),
    ...sharedOf(grant),
    ...ofServer,
  ]),
});

/** Paths of the allowed length fit. A long model name, or long addresses of the services, may leave no room. */
function signLlm({ signingKey }: Needs, claims: LlmClaims): string {
  try {
    return signToken(claims, signingKey);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const what = claims.mdl === undefined ? 'the paths are' : 'the paths and config.model together are';
    const message = `path: ${what} too long for a token of ${MAX_TOKEN_CHARS} characters.`;
    throw new RefusedError({ code: 'invalid_request', param: 'path', message });
  }
}

/** The token carries `config.model` if the provider has the model in its path: the token decides on the path. */
function modelInPath({ providers }: Needs, { provider, config }: IssuedGrant): { mdl?: string } {
  const model = config?.model;
  const inPath = providers.get(provider)?.routes.some(({ dialect }) => dialect.modelInPath);
  return inPath && typeof model === 'string' ? { mdl: model } : {};
}

/** The bundle's own grant. */
export type IssuedBundle = Issued;

/** A server of a bundle, with the id of its grant. */
export type IssuedServer = { readonly grantId: string; readonly server: McpServer };

/** Node and common proxies refuse longer URLs. */
const MAX_URL_CHARS = 6144;

/**
 * Signs a URL for each server of a bundle.
 * @returns the bundle's document
 * @throws RefusedError that names `servers[i].url` when it is too long for an issued URL
 */
export function signServers(deps: Needs, bundle: IssuedBundle, servers: readonly IssuedServer[]): McpBundle {
  const entries = servers.map(({ grantId, server }, i): [string, McpServerEntry] => {
    const token = signServer(deps, { ...bundle, id: grantId }, server, `servers[${i}].url`);
    const url = `${deps.gatewayUrl}/mcp/mcp?url=${encodeURIComponent(server.url)}&token=${token}`;
    if (url.length > MAX_URL_CHARS) {
      const problem = `the issued URL would have ${url.length} characters, at most ${MAX_URL_CHARS} are accepted`;
      throw tooLong(`servers[${i}].url`, problem);
    }
    return [server.name, { url, transport: server.transport }];
  });
  // Unlike an assignment, this makes any name an own property, also __proto__.
  return { mcpServers: Object.fromEntries(entries) };
}

/** Signs the bundle's own token and makes the answer. One grant has one token, because Ed25519 is deterministic. */
export function answerBundle(deps: Needs, grant: IssuedBundle, bundle: McpBundle): McpPresignAnswer {
  const claims: McpBundleClaims = { ...registeredClaims(deps, grant), knd: 'mcp_bundle' };
  const token = signToken(claims, deps.signingKey);
  return {
    bundle_url: `${deps.gatewayUrl}/mcp/bundle/${token}`,
    bundle_token: token,
    expires_at: unixSeconds(grant.expiresAt),
    session_id: grant.sessionId,
    servers: bundle.mcpServers,
    grant_id: grant.id,
    claims,
  };
}

/** Only very long addresses of the services leave too little room in a token. */
function signServer(deps: Needs, grant: IssuedBundle, server: McpServer, field: string): string {
  const srv = createHash('sha256').update(server.url).digest('base64url');
  const claims: McpClaims = {
    ...registeredClaims(deps, grant, server.arguments ? ['arguments'] : []),
    knd: 'mcp',
    srv,
  };
  try {
    return signToken(claims, deps.signingKey);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw tooLong(field, `its token would have more than ${MAX_TOKEN_CHARS} characters`);
  }
}

const tooLong = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/** `GET /v1/keys`: the PASERK public keys that verify the tokens of this issuer. Needs no API key. */
export const publicKeys = route(
  {
    method: 'get',
    path: '/v1/keys',
    summary: "Get the public keys that verify this issuer's tokens",
    answer: publicKeysAnswer,
  },
  ({ signingKey, olderPublicKeys }) => {
    const paserks = [...new Set([signingKey.publicKey, ...olderPublicKeys])];
    const keys = paserks.map((paserk) => ({
      kid: [...readPublicKeys(paserk).keys()][0] ?? '',
      public_key: paserk,
    }));
    return async () => ({ keys });
  },
);
