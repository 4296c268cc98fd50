type Entry<T> = { at: number; readonly item: T };

/**
 * A collection whose items are added and removed in any order, as calls are. A `Set` or `Map` would keep calls in memory after they end: V8
 * links the table of a full one to the next table. An old table therefore keeps all later tables and their contents alive until V8 collects
 * the whole heap.
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

  /** Iterates from last to first, so that removing an item skips no other. The last item may then appear twice. */
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
