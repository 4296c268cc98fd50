type Entry<T> = { at: number; readonly item: T };

/**
 * Holds things that come and go in any order, as calls do. A `Set` or `Map` would keep calls after they end: V8 links the table of a full one
 * to its next table. Once a table is old, it keeps all later tables and everything that they held, until V8 collects the whole heap.
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

  /** From the last to the first, so that an item that is removed meanwhile hides no other. The last one may then come twice. */
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
