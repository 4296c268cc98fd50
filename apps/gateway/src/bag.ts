type Entry<T> = { at: number; readonly item: T };

/**
 * Things that come and go in any order, as calls do. A `Set` or `Map` would keep calls after their end: when its table is full, V8 links the
 * old table to the next one, and one that has grown old keeps all later ones, with what they held, until all of the heap is collected.
 */
export class Bag<T> {
  readonly #entries: Entry<T>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  /** @returns removes it; a second time does nothing */
  add(item: T): () => void {
    const entry = { at: this.#entries.length, item };
    this.#entries.push(entry);
    return () => this.#remove(entry);
  }

  /** From the last to the first, so that one which is removed meanwhile hides no other. It may let the last one come twice. */
  *[Symbol.iterator](): Generator<T> {
    for (let at = this.#entries.length - 1; at >= 0; at--) {
      const entry = this.#entries[at];
      if (entry) yield entry.item;
    }
  }

  #remove(entry: Entry<T>): void {
    if (this.#entries[entry.at] !== entry) return;
    const last = this.#entries.pop();
    if (!last || last === entry) return;
    last.at = entry.at;
    this.#entries[entry.at] = last;
  }
}
