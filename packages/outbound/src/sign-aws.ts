import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { clearCredentialCache, SignatureV4 } from '@smithy/signature-v4';

/** An access key of AWS, and the service and region for which it signs. */
export type AwsSigner = {
  readonly service: string;
  readonly region: string;
  readonly credentials: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
};

/** A request to sign. All of these headers are signed, and the host. */
export type AwsRequest = {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
};

/**
 * The headers that AWS's Signature Version 4 adds to a request. The signature covers method, path, query, host, headers and body. The
 * library caches derived keys for the day of their validity, so they are cleared, and no key outlives its call.
 */
export async function signAws(
  { service, region, credentials }: AwsSigner,
  { method, url: { host, protocol, pathname, searchParams }, headers, body }: AwsRequest,
  signingDate: Date,
): Promise<Readonly<Record<string, string>>> {
  const signer = new SignatureV4({ service, region, credentials, sha256: Sha256 });
  const signed = await signer
    .sign(
      {
        method,
        protocol,
        hostname: host,
        path: pathname,
        query: Object.fromEntries(
          [...new Set(searchParams.keys())].map((name) => [name, searchParams.getAll(name)]),
        ),
        headers: { host, ...headers },
        body,
      },
      { signingDate },
    )
    .finally(clearCredentialCache);
  return Object.fromEntries(
    Object.entries(signed.headers).filter(([name]) => name !== 'host' && !Object.hasOwn(headers, name)),
  );
}

/** The hash that the library needs, from Node. */
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
