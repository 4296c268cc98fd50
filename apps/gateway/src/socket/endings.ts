/** The ends of turns that a socket waits for before it closes. */
export class Endings {
  #running: Set<Promise<void>> | undefined;

  /** @param ending never fails */
  add(ending: Promise<void>): void {
    this.#running ??= new Set();
    const running = this.#running.add(ending);
    void ending.then(() => running.delete(ending));
  }

  async over(): Promise<void> {
    await Promise.all(this.#running ?? []);
  }
}
