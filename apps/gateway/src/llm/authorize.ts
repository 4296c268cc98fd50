import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import {
  type AwsKey,
  type AwsSignature,
  type Credential,
  credentialOf,
  type Provider,
  readAwsKey,
} from '@presign/providers';
import type { Refusal } from '@presign/schema';
import { clearCredentialCache, SignatureV4 } from '@smithy/signature-v4';
import type { LlmDeps } from '../deps.ts';
import type { Body } from '../http/body.ts';
import { type FlatHeaders, headerOf } from '../http/headers.ts';
import type { Call } from './plan.ts';

/** A request without the provider's credential. */
type Unauthorized = {
  readonly origin: string;
  readonly path: string;
  readonly method: string;
  readonly headers: FlatHeaders;
};

/** The parts of a request that its credential changes, and every secret in them that an answer may quote. */
type Authorized = {
  readonly changes: { readonly origin?: string; readonly headers: FlatHeaders };
  readonly secrets: readonly string[];
};

/** Whether a provider wants each body signed, so that it must be known before the call is sent. */
export const signsBody = ({ credential }: Pick<Provider, 'credential'>): boolean =>
  credential.scheme === 'AWS4-HMAC-SHA256';

/**
 * Adds the provider's credential to a request that is otherwise complete.
 * @param body in one piece, for providers that want it signed
 * @returns a refusal when the provider's key is not of the form that it needs
 */
export async function authorize(
  { now }: Pick<LlmDeps, 'now'>,
  { grant, target }: Pick<Call, 'grant' | 'target'>,
  secret: string,
  request: Unauthorized,
  body: Body,
): Promise<Authorized | { readonly refusal: Refusal }> {
  const credential = credentialOf(grant.provider, target.path);
  if (credential.scheme !== 'AWS4-HMAC-SHA256')
    return {
      changes: { headers: [...request.headers, ...keyHeader(credential, secret)] },
      secrets: [secret],
    };
  const key = readAwsKey(secret);
  if (!key) return UNREADABLE;
  const origin = grant.provider.originIn?.(key.region) ?? request.origin;
  const placed = { ...request, origin, headers: withoutAwsHeaders(request.headers) };
  if ('apiKey' in key) {
    const headers = [...placed.headers, 'authorization', `Bearer ${key.apiKey}`];
    return { changes: { origin, headers }, secrets: [secret, key.apiKey] };
  }
  const signed = await awsSignature(credential, key, placed, body, new Date(now()));
  const headers = [...placed.headers, ...Object.entries(signed).flat()];
  return { changes: { origin, headers }, secrets: [secret, ...secretsOf(key), signed.authorization ?? ''] };
}

const UNREADABLE = {
  refusal: {
    code: 'upstream_auth_failed',
    message: 'The provider key of this URL is not in the form that its provider needs. Issue a new URL.',
  },
} as const;

const keyHeader = (credential: Exclude<Credential, AwsSignature>, secret: string): FlatHeaders => [
  credential.header,
  credential.scheme === undefined ? secret : `${credential.scheme} ${secret}`,
];

type SigningKey = Extract<AwsKey, { accessKeyId: string }>;

/** An error about a signature quotes the request that was signed, its session token included. */
const secretsOf = ({ accessKeyId, secretAccessKey, sessionToken }: SigningKey): readonly string[] => [
  accessKeyId,
  secretAccessKey,
  ...(sessionToken === undefined ? [] : [sessionToken]),
];

/** The headers of the holder's own signature. Every `x-amz-` header would have to be signed. */
const withoutAwsHeaders = (headers: FlatHeaders): FlatHeaders =>
  headers.filter((_, i) => !/^x-amz-/i.test(headers[i - (i % 2)] ?? ''));

/**
 * The headers of AWS's Signature Version 4 for a request. It covers method, path, query, host, content type and body.
 * The library keeps derived keys for the day in which they hold, so they are cleared: no key outlives its call.
 */
async function awsSignature(
  { service }: AwsSignature,
  { region, ...credentials }: SigningKey,
  { origin, path, method, headers }: Unauthorized,
  body: Body,
  signingDate: Date,
): Promise<Readonly<Record<string, string>>> {
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const { host, protocol, pathname, searchParams } = new URL(origin + path);
  const contentType = headerOf(headers, 'content-type');
  const signed = await signer
    .sign(
      {
        ...{ method, protocol, hostname: host, path: pathname },
        query: Object.fromEntries(
          [...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)]),
        ),
        headers: { host, ...(contentType === undefined ? {} : { 'content-type': contentType }) },
        body: body instanceof Buffer ? body : undefined,
      },
      { signingDate },
    )
    .finally(clearCredentialCache);
  const { host: _host, 'content-type': _type, ...added } = signed.headers;
  return added;
}

/** The hash that the library wants, from Node. */
class Sha256 {
  readonly #hash: Hash | Hmac;

  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = key === undefined ? createHash('sha256') : createHmac('sha256', bytesOf(key));
  }

  update(data: string | ArrayBuffer | ArrayBufferView): void {
    this.#hash.update(bytesOf(data));
  }

  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }

  reset(): void {
    throw new Error('a hash is used once');
  }
}

const bytesOf = (data: string | ArrayBuffer | ArrayBufferView): string | Uint8Array => {
  if (typeof data === 'string') return data;
  return ArrayBuffer.isView(data)
    ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
    : new Uint8Array(data);
};
