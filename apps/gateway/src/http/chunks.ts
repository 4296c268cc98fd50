import type { ServerResponse } from 'node:http';

/**
 * Takes over the framing of an answer whose head says `Transfer-Encoding: chunked` (RFC 9112 §7.1): what is written from now on must
 * be `framed`, and the answer must end with `lastFrame`. Node writes each chunk as four parts, which takes longer than the rest of its way.
 * @returns whether the answer is chunked
 */
export function takesFraming(response: ServerResponse): boolean {
  const isChunked = response.chunkedEncoding;
  response.chunkedEncoding = false;
  return isChunked;
}

const CR = 13;
const LF = 10;
const END = Buffer.from('0\r\n\r\n');

/** These bytes as one chunk. No chunk, if there are none: an empty one would end the answer. */
export function framed(bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes;
  const size = bytes.length.toString(16);
  const start = size.length + 2;
  const frame = Buffer.allocUnsafe(start + bytes.length + 2);
  frame.write(size, 'latin1');
  frame[start - 2] = CR;
  frame[start - 1] = LF;
  frame.set(bytes, start);
  frame[start + bytes.length] = CR;
  frame[start + bytes.length + 1] = LF;
  return frame;
}

/** These bytes as the last chunk, and the end. */
export const lastFrame = (bytes: Buffer): Buffer => Buffer.concat([framed(bytes), END]);
