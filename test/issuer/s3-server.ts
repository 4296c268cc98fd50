import { createHash } from 'node:crypto';
import { type Answer, type Seen, startUpstream, type Upstream } from '../harness/upstream.ts';
import { signatureOf } from '../sdk/upstreams/bedrock.ts';

/** The key of the bucket's owner. Both texts are marked, so that a test finds them wherever they are. */
export const S3_KEY = { accessKeyId: 'AKIDMARKED', secretAccessKey: 'marked/secret+of/the+archive' };
export const BUCKET = 'archive.test';
const REGION = 'eu-test-1';

/** How the bucket fails: after it kept a file, by keeping only a part of it, or at once. */
export type Fault = 'cut' | 'half' | 'denied' | 'away';

export type S3Server = {
  readonly endpoint: string;
  /** Files by their names within the bucket. */
  readonly files: ReadonlyMap<string, Buffer>;
  /** The names that were written, each as often as it was. */
  readonly puts: readonly string[];
  fault: Fault | undefined;
  readonly close: Upstream['close'];
};

/** A bucket that takes only requests that are signed with the owner's key, by AWS's own steps. */
export async function startS3(): Promise<S3Server> {
  const files = new Map<string, Buffer>();
  const puts: string[] = [];
  const answer: Answer = (seen, response) => {
    const refuse = (status: number, code: string) =>
      void response
        .writeHead(status, { 'content-type': 'application/xml' })
        .end(`<Error><Code>${code}</Code><AWSAccessKeyId>${S3_KEY.accessKeyId}</AWSAccessKeyId></Error>`);
    const [, name = ''] = new RegExp(`^/${BUCKET}/([\\w./-]+)$`).exec(seen.url) ?? [];
    if (!isSigned(seen)) return refuse(403, 'SignatureDoesNotMatch');
    if (server.fault === 'denied') return refuse(403, 'AccessDenied');
    if (server.fault === 'away') return void response.destroy();
    const file = files.get(name);
    if (seen.method === 'GET') return file ? void response.end(file) : refuse(404, 'NoSuchKey');
    if (seen.method !== 'PUT' || seen.headers['content-md5'] !== md5(seen.body))
      return refuse(400, 'BadDigest');
    puts.push(name);
    files.set(name, server.fault === 'half' ? seen.body.subarray(0, seen.body.length / 2) : seen.body);
    return void (server.fault === 'cut' ? response.destroy() : response.end());
  };
  const { url, close } = await startUpstream(answer);
  const server: S3Server = { endpoint: url, files, puts, fault: undefined, close };
  return server;
}

/** A target in this bucket. */
export const s3At = (endpoint: string) => ({
  s3: { endpoint, region: REGION, bucket: BUCKET, prefix: 'presign/a/', credentials: S3_KEY },
});

const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('base64');

function isSigned(seen: Seen): boolean {
  const { authorization = '' } = seen.headers;
  const [, names = '', signature] =
    /, SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})$/.exec(authorization) ?? [];
  const signed = names.split(';');
  const needed = ['host', ...Object.keys(seen.headers).filter((name) => /^x-amz-|^content-md5$/.test(name))];
  if (!needed.every((name) => signed.includes(name))) return false;
  if (!authorization.includes(`Credential=${S3_KEY.accessKeyId}/`)) return false;
  return signature === signatureOf(seen, signed, { secret: S3_KEY.secretAccessKey, scope: [REGION, 's3'] });
}
