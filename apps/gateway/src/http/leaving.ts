import { Readable } from 'node:stream';
import { SMALL_BODY_BYTES } from './body-memory.ts';
/** What goes out: the holder's bytes as they come, or in one piece, or none. */
export type Body = Readable | Buffer | null;

/** What is written at a time. */
const PIECE_BYTES = 64 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * A body as it is sent. undici keeps one in one piece until the answer has ended, which may be an hour after it
 * left; so a large one is sent piece by piece and let go.
 * @param gone told when the last piece of it has been taken
 */
export function leaving(body: Body, gone: () => void): Body {
  if (!(body instanceof Buffer) || body.length <= SMALL_BODY_BYTES) return body;
  let rest: Buffer = body;
  return new Readable({
    read() {
      if (rest.length === 0) {
        this.push(null);
        return gone();
      }
      const piece = rest.subarray(0, PIECE_BYTES);
      rest = rest.length > PIECE_BYTES ? rest.subarray(PIECE_BYTES) : NOTHING;
      this.push(piece);
    },
  });
}
