import { createPrivateKey } from 'node:crypto';
import { parseJson } from '@presign/schema';
import * as z from 'zod';
import type { Provider } from './provider.ts';

/** The key of an AWS account, or a Bedrock API key, and the region that its calls go to. */
export type AwsKey = { readonly region: string } & (
  | { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string }
  | { readonly apiKey: string }
);

/**
 * Reads the JSON text of an AWS key. Undefined if it has another form. The region becomes part of a host's name. Regions of
 * GovCloud and China are refused, because their prices or hosts differ.
 */
export function readAwsKey(text: string): AwsKey | undefined {
  const read = awsKey.safeParse(parseJson(text)).data;
  if (!read) return undefined;
  if ('api_key' in read) return { region: read.region, apiKey: read.api_key };
  return {
    region: read.region,
    accessKeyId: read.access_key_id,
    secretAccessKey: read.secret_access_key,
    ...(read.session_token === undefined ? {} : { sessionToken: read.session_token }),
  };
}

/** The key of a service account of Google. */
export type ServiceAccountKey = {
  readonly clientEmail: string;
  readonly privateKeyId: string | undefined;
  /** PKCS #8 in PEM, as Google's file has it. */
  readonly privateKey: string;
};

/**
 * Reads the JSON file of a service account's key. Undefined if it is no such key, or if it wants its tokens from another
 * address than `tokenUrl`: a key from outside must not choose where its signature goes.
 */
export function readServiceAccount(text: string, tokenUrl: string): ServiceAccountKey | undefined {
  const read = serviceAccount.safeParse(parseJson(text)).data;
  if (!read || ![undefined, GOOGLE_TOKEN_URL, tokenUrl].includes(read.token_uri)) return undefined;
  const { client_email: clientEmail, private_key_id: privateKeyId, private_key: privateKey } = read;
  return isRsaKey(privateKey) ? { clientEmail, privateKeyId, privateKey } : undefined;
}

/** https://developers.google.com/identity/protocols/oauth2/service-account#httprest */
export const GOOGLE_TOKEN_URL = 'https://oauth2.googleapis.com/token';

/** Signing with a longer key takes too long. Google's own have 2,048 bits. */
const KEY_MAX_BITS = 4_096;

function isRsaKey(pem: string): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = createPrivateKey(pem);
    return asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? Infinity) <= KEY_MAX_BITS;
  } catch {
    return false;
  }
}

/** Says why a provider cannot use a key, without quoting it. Undefined if the provider can. */
export function keyProblem({ credential }: Pick<Provider, 'credential'>, key: string): string | undefined {
  switch (credential.scheme) {
    case 'AWS4-HMAC-SHA256':
      return readAwsKey(key) ? undefined : AWS_FORM;
    case 'service account':
      return readServiceAccount(key, credential.tokenUrl) ? undefined : GOOGLE_FORM;
    default:
      return VISIBLE.test(key) ? undefined : 'expected visible ASCII characters without spaces';
  }
}

const AWS_FORM =
  'expected the JSON text {"access_key_id": …, "secret_access_key": …, "session_token": … (if it has one), "region": "us-east-1"}, or {"api_key": …, "region": …}';

const GOOGLE_FORM =
  'expected the JSON file of a service account key, with client_email and an RSA private_key, and no other token_uri than https://oauth2.googleapis.com/token';

/** RFC 9110 §5.5: a header's value that cannot begin another header. */
const VISIBLE = /^[\x21-\x7e]+$/;

const visible = z.string().regex(VISIBLE);
const region = z.string().regex(/^(?!cn-)[a-z]{2}-[a-z]{4,9}-\d{1,2}$/);
const awsKey = z.union([
  z.strictObject({
    access_key_id: z.string().regex(/^[A-Z0-9]{16,128}$/),
    secret_access_key: visible,
    session_token: visible.optional(),
    region,
  }),
  z.strictObject({ api_key: visible, region }),
]);

/** The file has further fields, which are not read. */
const serviceAccount = z.object({
  type: z.literal('service_account'),
  client_email: z.string().regex(/^[\x21-\x7e]{3,320}$/),
  private_key_id: z
    .string()
    .regex(/^[\w-]{1,128}$/)
    .optional(),
  private_key: z.string().max(8_192),
  token_uri: z.string().optional(),
});
