import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, gzip } from 'node:zlib';
import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';

const zip = promisify(gzip);

/** A public answer that is made once and kept. Only the zipped form is kept, which is a quarter of the other. */
export type Kept = {
  readonly zipped: Buffer;
  readonly etag: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** Makes an answer. A client that has it asks again whether it is still the same, unless the headers say otherwise. */
export const keep = async (body: string | Buffer, headers: Kept['headers']): Promise<Kept> => ({
  zipped: await zip(body),
  // Weak, because the zipped form has the same (RFC 9110 §8.8.1).
  etag: `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`,
  headers: { 'cache-control': 'no-cache', ...headers },
});

/** Answers with gzip if the client takes it, and with 304 if the client has it (RFC 9110 §13.1.2). */
export async function sendKept(c: Context<IssuerEnv>, { zipped, etag, headers }: Kept): Promise<Response> {
  const sent: Record<string, string> = { ...headers, etag, vary: 'accept-encoding' };
  const has = c.req.header('if-none-match')?.split(',') ?? [];
  if (has.some((tag) => [etag, '*'].includes(tag.trim()))) return c.body(null, 304, sent);
  const takesGzip = GZIP.test(c.req.header('accept-encoding') ?? '');
  if (takesGzip) Object.assign(sent, { 'content-encoding': 'gzip' });
  if (c.req.method === 'HEAD') return c.body(null, 200, sent);
  // Unzipped piece by piece, so that a client that reads slowly takes little memory.
  const body = takesGzip ? new Uint8Array(zipped) : webStream(Readable.from([zipped]).pipe(createGunzip()));
  return c.body(body, 200, sent);
}

/** `gzip` with any other weight than 0 (RFC 9110 §12.5.3). */
const GZIP = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/;

const webStream = (stream: Readable) => Readable.toWeb(stream) as ReadableStream<Uint8Array>;

/** Keeps the result of a function. After a failure the function runs again at the next request. */
export function onceMade<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    if (made) return made;
    const making = make();
    making.catch(() => {
      if (made === making) made = undefined;
    });
    made = making;
    return making;
  };
}
