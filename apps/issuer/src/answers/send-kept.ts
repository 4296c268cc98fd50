import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { Context } from 'hono';
import type { IssuerEnv } from '../identity/caller.ts';

const zip = promisify(gzip);
const unzip = promisify(gunzip);

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
  const sent = { ...headers, etag, vary: 'accept-encoding' };
  const has = c.req.header('if-none-match')?.split(',') ?? [];
  if (has.some((tag) => [etag, '*'].includes(tag.trim()))) return c.body(null, 304, sent);
  const takesGzip = /\bgzip\b/.test(c.req.header('accept-encoding') ?? '');
  const body = new Uint8Array(takesGzip ? zipped : await unzip(zipped));
  return c.body(body, 200, { ...sent, ...(takesGzip && { 'content-encoding': 'gzip' }) });
}
