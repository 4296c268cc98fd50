import type { Running, Unasked } from './dialects/dialect.ts';
import { MOST_TURNS } from './dialects/end.ts';

/** The responses of one socket that no turn under way began. */
export class Strays {
  #unheard: Set<unknown> | undefined;
  #known: Set<unknown> | undefined;

  /** Notes a turn that was cut. Its response may still begin. */
  turnOver({ requestId, responseId }: Running): void {
    if (responseId !== undefined) return;
    this.#unheard ??= new Set();
    this.#unheard.add(requestId);
  }

  /** Whether a response is of no turn that was cut, and was not known before. Those of an API that goes on and on are bounded. */
  isNew({ id, turnId }: Unasked): boolean {
    this.#known ??= new Set();
    if (this.#known.has(id) || this.#known.size > 2 * MOST_TURNS) return false;
    this.#known.add(id);
    return !this.#unheard?.delete(turnId);
  }
}
