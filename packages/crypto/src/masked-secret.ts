import { randomFillSync } from 'node:crypto';

/**
 * A secret as a process keeps it between two uses: XORed with random bytes of its own, so that nothing that shows a part of
 * memory (a heap snapshot, a search in a core dump) shows it. Someone who reads all of the memory finds both parts, as well as the
 * keys that the secret is sealed with.
 */
export class MaskedSecret {
  readonly #pad: Buffer;
  readonly #masked: Buffer;

  constructor(secret: string) {
    // Not `Buffer.from`: it would leave a copy in a pool.
    const masked = Buffer.allocUnsafeSlow(Buffer.byteLength(secret));
    masked.write(secret);
    this.#pad = randomFillSync(Buffer.allocUnsafeSlow(masked.length));
    this.#masked = masked;
    xor(masked, this.#pad, masked);
  }

  /** How many bytes it takes. */
  get size(): number {
    return 2 * this.#masked.length;
  }

  reveal(): string {
    const { length } = this.#masked;
    if (scratch.length < length) scratch = Buffer.allocUnsafeSlow(length);
    xor(this.#masked, this.#pad, scratch);
    const secret = scratch.toString('utf8', 0, length);
    scratch.fill(0, 0, length);
    return secret;
  }
}

let scratch = Buffer.allocUnsafeSlow(4_096);

function xor(bytes: Buffer, pad: Buffer, into: Buffer): void {
  for (let i = 0; i < bytes.length; i++) into[i] = (bytes[i] as number) ^ (pad[i] as number);
}
