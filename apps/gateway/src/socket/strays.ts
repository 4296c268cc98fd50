import type { Running, Unasked } from './dialects/dialect.ts';
import { MOST_TURNS } from './dialects/end.ts';

export const STRAY = 'a response ended that is no turn of its socket';

/** The responses of one socket that no running turn started. */
export class Strays {
  #unheard: Pick<Running, 'requestId' | 'lane'>[] | undefined;
  #known: Set<unknown> | undefined;

  /** Records a turn that was cut. Its response may still start. */
  turnOver({ requestId, lane, responseId }: Running): void {
    if (responseId !== undefined) return;
    this.#unheard ??= [];
    this.#unheard.push({ requestId, lane });
  }

  /** Whether a response is new and belongs to no turn that was cut. The number of such responses is bounded. */
  isNew({ id, turnId, lane }: Unasked): boolean {
    this.#known ??= new Set();
    if (this.#known.has(id) || this.#known.size > 2 * MOST_TURNS) return false;
    this.#known.add(id);
    const at = this.#unheard?.findIndex((turn) => turn.requestId === turnId || turn.lane === lane) ?? -1;
    if (at >= 0) this.#unheard?.splice(at, 1);
    return at < 0;
  }
}
