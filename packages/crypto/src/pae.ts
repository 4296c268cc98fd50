/**
 * PASETO's pre-authentication encoding (PASETO Common, "PAE Definition"): the number of pieces, then each
 * piece behind its length, so that no bytes can be moved from one piece to its neighbour unnoticed.
 */
export function pae(pieces: readonly Uint8Array[]): Buffer {
  const size = pieces.reduce((sum, piece) => sum + LENGTH_BYTES + piece.length, LENGTH_BYTES);
  const out = Buffer.alloc(size);
  let at = writeLength(out, pieces.length, 0);
  for (const piece of pieces) {
    at = writeLength(out, piece.length, at);
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

const LENGTH_BYTES = 8;

/** A little-endian 64-bit length; no buffer is longer than 48 bits can say, and `out` starts as zeros. */
function writeLength(out: Buffer, length: number, at: number): number {
  out.writeUIntLE(length, at, 6);
  return at + LENGTH_BYTES;
}
