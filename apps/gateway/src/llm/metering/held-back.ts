/** Up to this many bytes without data are delayed together with an event. */
const VOIDS_MAX_BYTES = 1024;

/**
 * The end of an answer, which waits until the call is settled. Only the next bytes show that the earlier ones are not the end, so some
 * bytes always wait.
 */
export class HeldBack {
  #bytes: Buffer[] = [];
  #voidBytes = 0;

  /** Delays these bytes. Returns the bytes that no longer need to wait. */
  hold(...bytes: Buffer[]): Buffer[] {
    const before = this.#bytes;
    this.#bytes = bytes;
    this.#voidBytes = 0;
    return before;
  }

  /** Delays bytes without data together with the event before them. Returns false if there is no such event, or no room. */
  add(bytes: Buffer, isVoid: (bytes: Buffer) => boolean): boolean {
    const size = this.#voidBytes + bytes.length;
    if (this.#bytes.length === 0 || size > VOIDS_MAX_BYTES || !isVoid(bytes)) return false;
    this.#bytes.push(bytes);
    this.#voidBytes = size;
    return true;
  }
}
