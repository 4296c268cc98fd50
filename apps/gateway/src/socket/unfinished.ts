import type { WebSocket } from 'ws';
import type { BodyMemory, Reservation } from '../share/body-memory.ts';
import { watchChunks } from './framing.ts';

/** Memory is reserved in steps of this size. */
const STEP_BYTES = 4 * 1024;
/** The most memory of a chunk in addition to its bytes. */
const CHUNK_OVERHEAD_BYTES = 1024;

/**
 * Reserves body memory for incomplete messages of a holder. A part of a chunk keeps the whole chunk alive, so all chunks since the
 * beginning of the message count.
 */
export class Unfinished {
  readonly #bodies: BodyMemory;
  readonly #grantId: string;
  readonly #full: () => void;
  #memory: Reservation | undefined;
  #kept = 0;
  #reserved = 0;
  #isFull = false;

  /** @param full called when there is no memory. All received bytes stay reserved until the socket closes. */
  constructor(holder: WebSocket, bodies: BodyMemory, grantId: string, full: () => void) {
    this.#bodies = bodies;
    this.#grantId = grantId;
    this.#full = full;
    watchChunks(holder, (bytes, keeps) => this.#came(bytes, keeps));
  }

  /** Records that a message is complete. Its memory then counts with complete messages. */
  whole(): void {
    this.#kept = 0;
    if (this.#reserved > 0 && !this.#isFull) this.release();
  }

  release(): void {
    this.#memory?.release();
    this.#reserved = 0;
  }

  #came(bytes: number, keeps: boolean): void {
    this.#kept = keeps ? this.#kept + bytes + CHUNK_OVERHEAD_BYTES : 0;
    if (this.#isFull || (this.#kept === 0 && this.#reserved === 0)) return;
    if (this.#kept < this.#reserved - STEP_BYTES || this.#kept === 0) this.release();
    if (this.#kept <= this.#reserved) return;
    this.#memory ??= this.#newMemory();
    const more = Math.ceil((this.#kept - this.#reserved) / STEP_BYTES) * STEP_BYTES;
    this.#isFull = !this.#memory.reserve(more);
    if (this.#isFull) this.#full();
    else this.#reserved += more;
  }

  #newMemory(): Reservation {
    const memory = this.#bodies.newReservation();
    memory.belongsTo(this.#grantId);
    return memory;
  }
}
