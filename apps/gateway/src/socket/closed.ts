import type { Refusal } from '@presign/schema';
import { causeOf, cutWith, type End, isOfGateway } from './dialects/end.ts';
import { sendable } from './framing.ts';
import type { UnsentBy } from './turn.ts';

/** How a socket closed: the code of its close, and the side that closed it, or the cause for which the gateway did. */
export type Closed = { readonly code: number; readonly cause: string };

/** How a socket ends, and how it closed. */
export class Closing {
  /** How it closes once no turn runs. Undefined: it goes on. */
  end: End | undefined;
  closed: Closed | undefined;
  #sides = 0;

  /** Records that it is cut. */
  cut(refusal: Refusal, why: string): void {
    const end = cutWith(refusal, why);
    this.end = why === 'failure' ? (this.end ?? end) : end;
  }

  /** Records that the gateway closes the side of the holder. @returns how */
  closes(end = this.end): End | undefined {
    if (end) this.closed ??= { code: end.code, cause: causeOf(end) };
    return end;
  }

  /** Records that a side has closed. Returns whether both have. */
  sideClosed(side: 'holder' | 'provider', code: number): boolean {
    // A holder that leaves does not learn of an end that waits for turns.
    if (side === 'provider') this.closes();
    // The holder gets 1011 for a code of the provider that cannot be sent.
    const passes = side === 'holder' || code === 1005 || sendable(code);
    this.closed ??= { code: passes ? code : 1011, cause: side };
    return ++this.#sides === 2;
  }

  /** The cause for which a turn is not sent that was admitted meanwhile. */
  unsentBy(): UnsentBy {
    if (this.closed?.cause === 'holder') return 'holder';
    return isOfGateway(this.end) ? 'gateway' : 'others';
  }
}
