import { sign } from 'node:crypto';
import { signAws } from '@presign/outbound/sign-aws';
import {
  type AwsKey,
  type AwsSignature,
  credentialOf,
  PAYING_PROJECT_HEADERS,
  type Provider,
  readAwsKey,
  readServiceAccount,
  type ServiceAccount,
} from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { Policy } from '../grant/policy.ts';
import { type Body, inOnePiece, isInMemory } from '../http/body.ts';
import { type FlatHeaders, headerOf, withoutHeaders } from '../http/headers.ts';
import type { OauthClient } from '../mcp/auth/tokens.ts';
import type { LlmDeps } from './llm-deps.ts';
import type { Call } from './plan.ts';

/** A request without the provider's credential. */
type Unauthorized = {
  readonly origin: string;
  readonly path: string;
  readonly method: string;
  readonly headers: FlatHeaders;
};

/** The parts of a request that the credential changes, and the secrets in them that an answer may quote. */
type Authorized = {
  readonly changes: { readonly origin?: string; readonly headers: FlatHeaders };
  readonly secrets: readonly string[];
  /** Called when the provider answers 401: an access token may have been revoked before it expires. */
  readonly refused?: () => void;
};

/** Whether a provider requires signed bodies, so that the body must be complete before the call is sent. */
export const signsBody = ({ credential }: Pick<Provider, 'credential'>): boolean =>
  credential.scheme === 'AWS4-HMAC-SHA256';

/**
 * Adds the provider's credential to an otherwise complete request.
 * @param body in one piece, for providers that require a signature
 * @returns a refusal if the provider's key has the wrong form or gets no access token
 */
export function authorize(
  deps: Pick<LlmDeps, 'now' | 'accessTokens'>,
  call: Pick<Call, 'grant' | 'target' | 'policy'>,
  key: VersionedKey,
  request: Unauthorized,
  body: Body,
): Result | Promise<Result> {
  const credential = credentialOf(call.grant.provider, call.target.path);
  const { scheme } = credential;
  if (scheme === 'AWS4-HMAC-SHA256') return byAws(deps.now(), credential, call, key.secret, request, body);
  if (scheme === 'service account') return byServiceAccount(deps, credential, call, key, request);
  const value = scheme === undefined ? key.secret : `${scheme} ${key.secret}`;
  return { changes: { headers: [...request.headers, credential.header, value] }, secrets: [key.secret] };
}

type VersionedKey = { readonly secret: string; readonly version: number };
type Result = Authorized | { readonly refusal: Refusal };
type Of<K extends keyof Call> = Pick<Call, 'grant' | 'target' | K>;

async function byAws(
  nowMs: number,
  credential: AwsSignature,
  { grant, target: { path } }: Of<never>,
  secret: string,
  request: Unauthorized,
  body: Body,
): Promise<Result> {
  const key = readAwsKey(secret);
  if (!key) return UNREADABLE;
  const origin = grant.provider.originIn?.({ region: key.region, path }) ?? request.origin;
  const signed = await signedByAws(nowMs, credential, key, { ...request, origin }, body);
  return { ...signed, secrets: [secret, ...signed.secrets] };
}

async function byServiceAccount(
  { now, accessTokens }: Pick<LlmDeps, 'now' | 'accessTokens'>,
  credential: ServiceAccount,
  { grant, target: { path }, policy }: Of<'policy'>,
  { secret, version }: VersionedKey,
  request: Unauthorized,
): Promise<Result> {
  const client = serviceAccountClient(now, credential, policy, secret, version);
  if (!client) return UNREADABLE;
  const access = await accessTokens.get(client);
  if ('refusal' in access) return access;
  const origin = grant.provider.originIn?.({ region: undefined, path }) ?? request.origin;
  const own = withoutHeaders(request.headers, PAYING_PROJECT_HEADERS);
  const headers = [...own, 'authorization', `Bearer ${access.token}`];
  const refused = () => accessTokens.forget(client, access.token);
  return { changes: { origin, headers }, secrets: [secret, access.token], refused };
}

const UNREADABLE = {
  refusal: {
    code: 'upstream_auth_failed',
    message: 'The provider key of this URL is not in the form that its provider needs. Issue a new URL.',
  },
} as const;

/** How long a signed request for a token is valid: the hour that Google documents. */
const ASSERTION_SECONDS = 3_600;

/**
 * A service account as an OAuth client of Google's token endpoint. Its tokens are cached by the version of the key. The key is read only
 * while a token is fetched. https://developers.google.com/identity/protocols/oauth2/service-account#httprest
 */
function serviceAccountClient(
  now: () => number,
  { tokenUrl, scope }: ServiceAccount,
  { accountId, ref }: Pick<Policy, 'accountId' | 'ref'>,
  secret: string,
  version: number,
): OauthClient | undefined {
  const key = readServiceAccount(secret, tokenUrl);
  if (!key) return undefined;
  const { clientEmail, privateKeyId, privateKey } = key;
  const assertion = () => {
    const issuedAt = Math.floor(now() / 1000);
    const header = { alg: 'RS256', typ: 'JWT', ...(privateKeyId === undefined ? {} : { kid: privateKeyId }) };
    const claims = {
      iss: clientEmail,
      scope,
      aud: tokenUrl,
      iat: issuedAt,
      exp: issuedAt + ASSERTION_SECONDS,
    };
    const signed = [header, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.');
    return `${signed}.${sign('sha256', Buffer.from(signed), privateKey).toString('base64url')}`;
  };
  const named = { id: `${ref.credentialId}.${version}`, accountId, tokenUrl, clientId: clientEmail };
  return { ...named, secret: undefined, refreshToken: undefined, parameters: {}, assertion };
}

/** The request with AWS's signature, or with a Bedrock API key. */
async function signedByAws(
  nowMs: number,
  credential: AwsSignature,
  key: AwsKey,
  request: Unauthorized,
  body: Body,
): Promise<Authorized> {
  const { origin } = request;
  const own = withoutAwsHeaders(request.headers);
  if ('apiKey' in key) {
    const headers = [...own, 'authorization', `Bearer ${key.apiKey}`];
    return { changes: { origin, headers }, secrets: [key.apiKey] };
  }
  const { region, ...credentials } = key;
  const contentType = headerOf(own, 'content-type');
  const signed = await signAws(
    { service: credential.service, region, credentials },
    {
      method: request.method,
      url: new URL(origin + request.path),
      headers: contentType === undefined ? {} : { 'content-type': contentType },
      body: isInMemory(body) ? inOnePiece(body) : undefined,
    },
    new Date(nowMs),
  );
  const headers = [...own, ...Object.entries(signed).flat()];
  return { changes: { origin, headers }, secrets: [...secretsOf(key), signed.authorization ?? ''] };
}

type SigningKey = Extract<AwsKey, { accessKeyId: string }>;

/** An error about a signature quotes the signed request, including its session token. */
const secretsOf = ({ accessKeyId, secretAccessKey, sessionToken }: SigningKey): readonly string[] => [
  accessKeyId,
  secretAccessKey,
  ...(sessionToken === undefined ? [] : [sessionToken]),
];

/** The headers of the holder's own signature. Every `x-amz-` header would have to be signed. */
const withoutAwsHeaders = (headers: FlatHeaders): FlatHeaders =>
  headers.filter((_, i) => !/^x-amz-/i.test(headers[i - (i % 2)] ?? ''));
