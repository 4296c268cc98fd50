import { createHash } from 'node:crypto';
import { mkdir, open, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { guardedDispatcher, type OutboundProxy } from '@presign/outbound';
import { type AwsSigner, signAws } from '@presign/outbound/sign-aws';
import { type Dispatcher, request } from 'undici';
import type { ArchiveStore } from './archive.ts';

/** Where rows go before they leave Postgres. */
export type ArchiveTarget = { readonly folder: string } | { readonly s3: S3Target };

export const archiveStoreOf = (target: ArchiveTarget, proxy: OutboundProxy | undefined): ArchiveStore =>
  's3' in target ? s3Store(target.s3, proxy) : folderStore(target.folder);

/** Files in subfolders of a folder, readable only by their owner. A file whose name does not begin with a dot is complete. */
function folderStore(folder: string): ArchiveStore {
  const put: ArchiveStore['put'] = async (name, bytes) => {
    const to = join(folder, name);
    await mkdir(dirname(to), { recursive: true, mode: 0o700 });
    const unfinished = join(dirname(to), `.${name.replace(/^.*\//, '')}`);
    const file = await open(unfinished, 'w', 0o600);
    try {
      await file.writeFile(bytes);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, to);
    // A power failure must not undo the rename.
    const parent = await open(dirname(to));
    await parent.sync().finally(() => parent.close());
  };
  return { put, close: async () => {} };
}

/** A bucket of S3, or of a store that speaks as S3 does. */
type S3Target = {
  /** Without a slash at the end. Undefined: the address of AWS in the region. */
  readonly endpoint: string | undefined;
  readonly region: string;
  readonly bucket: string;
  /** The prefix of all names: empty, or with a trailing slash. */
  readonly prefix: string;
  readonly credentials: AwsSigner['credentials'];
};

/** How long one request may take. A part needs at most three. */
const REQUEST_MS = 60_000;
/** An error of S3 is a short XML document. */
const ERROR_MAX_BYTES = 65_536;

/**
 * Keeps files in a bucket. A file counts as stored once a read returns the same bytes. This works with every store, and needs no checksum
 * that only some stores support.
 */
function s3Store(target: S3Target, proxy: OutboundProxy | undefined): ArchiveStore {
  const { region, bucket, prefix, credentials } = target;
  const { endpoint = `https://s3.${region}.amazonaws.com` } = target;
  // The operator chose the address, so it may be private.
  const dispatcher = guardedDispatcher(true, proxy);
  const ask = async (method: 'GET' | 'PUT', name: string, body?: Buffer) => {
    const url = new URL(`${endpoint}/${bucket}/${prefix}${name}`);
    const own = body ? { 'content-type': 'application/gzip', 'content-md5': md5(body) } : {};
    const signer = { service: 's3', region, credentials };
    const signed = await signAws(signer, { method, url, headers: own, body }, new Date());
    const signal = AbortSignal.timeout(REQUEST_MS);
    return request(url, { method, dispatcher, headers: { ...own, ...signed }, body: body ?? null, signal });
  };
  /** The problem with reading a file back. Undefined: the bucket has the whole file. */
  const problemOf = async (name: string, bytes: Buffer): Promise<string | undefined> => {
    const answer = await ask('GET', name);
    if (answer.statusCode !== 200) return `${await refusal(answer)} to GET`;
    const kept = await read(answer, bytes.length);
    return kept?.equals(bytes) ? undefined : 'has other bytes than it got';
  };
  return {
    put: async (name, bytes) => {
      // An issuer may have died after its upload. Then no second version is created.
      if ((await problemOf(name, bytes)) === undefined) return;
      const answer = await ask('PUT', name, bytes);
      if (answer.statusCode !== 200) throw new Error(`S3 ${await refusal(answer)} to PUT`);
      await answer.body.dump();
      const problem = await problemOf(name, bytes);
      if (problem !== undefined) throw new Error(`S3 ${problem}`);
    },
    close: () => dispatcher.destroy(),
  };
}

/** S3 compares it with the received bytes, and requires it for buckets with a lock. */
const md5 = (bytes: Buffer) => createHash('md5').update(bytes).digest('base64');

/** The status and the code of an error. The rest may quote the request, its key id included. */
async function refusal(answer: Dispatcher.ResponseData): Promise<string> {
  const text = (await read(answer, ERROR_MAX_BYTES))?.toString() ?? '';
  const [, code] = /<Code>(\w{1,64})<\/Code>/.exec(text) ?? [];
  return `answered ${answer.statusCode}${code === undefined ? '' : ` ${code}`}`;
}

/** A body of at most this many bytes. Undefined if it has more. */
async function read({ body }: Dispatcher.ResponseData, most: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Leaving the loop destroys the answer.
    if (length > most) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
