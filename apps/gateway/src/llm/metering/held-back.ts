/** So few bytes without data are held back together with an event. */
const VOIDS_MAX_BYTES = 1024;

/**
 * The end of an answer, which waits until the call is settled. Only the next bytes show which bytes are not the last, so some
 * always wait.
 */
export class HeldBack {
  #bytes: Buffer[] = [];
  #voidBytes = 0;

  /** Holds back these bytes. Returns those that need not wait any longer. */
  hold(...bytes: Buffer[]): Buffer[] {
    const before = this.#bytes;
    this.#bytes = bytes;
    this.#voidBytes = 0;
    return before;
  }

  /** Holds back bytes without data together with the event before them. Returns false if there is none, or no room. */
  add(bytes: Buffer, isVoid: (bytes: Buffer) => boolean): boolean {
    const size = this.#voidBytes + bytes.length;
    if (this.#bytes.length === 0 || size > VOIDS_MAX_BYTES || !isVoid(bytes)) return false;
    this.#bytes.push(bytes);
    this.#voidBytes = size;
    return true;
  }
}
