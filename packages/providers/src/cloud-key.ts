import { z } from 'zod';
import type { Provider } from './provider.ts';

/** The key of an AWS account, or a Bedrock API key, and the region that its calls go to. */
export type AwsKey = { readonly region: string } & (
  | { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string }
  | { readonly apiKey: string }
);

/**
 * Reads the JSON text of an AWS key. Undefined if it has another form. The region becomes part of a host's name. Regions of other
 * partitions (GovCloud, China) have other prices or other hosts, and longer or unknown names, so they are not read.
 */
export function readAwsKey(text: string): AwsKey | undefined {
  const read = awsKey.safeParse(jsonIn(text)).data;
  if (!read) return undefined;
  if ('api_key' in read) return { region: read.region, apiKey: read.api_key };
  return {
    region: read.region,
    accessKeyId: read.access_key_id,
    secretAccessKey: read.secret_access_key,
    ...(read.session_token === undefined ? {} : { sessionToken: read.session_token }),
  };
}

/** Why a provider cannot use a key, for the person who gives it. The key is not quoted. Undefined if it can. */
export function keyProblem({ credential }: Pick<Provider, 'credential'>, key: string): string | undefined {
  switch (credential.scheme) {
    case 'AWS4-HMAC-SHA256':
      return readAwsKey(key) ? undefined : AWS_FORM;
    default:
      return VISIBLE.test(key) ? undefined : 'expected visible ASCII characters without spaces';
  }
}

const AWS_FORM =
  'expected the JSON text {"access_key_id": …, "secret_access_key": …, "session_token": … (if it has one), "region": "us-east-1"}, or {"api_key": …, "region": …}';

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

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
