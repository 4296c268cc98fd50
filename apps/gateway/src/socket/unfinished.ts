import type { WebSocket } from 'ws';
import type { BodyMemory, Reservation } from '../share/body-memory.ts';
import { watchChunks } from './framing.ts';

/** Memory is reserved in steps of this size. */
const STEP_BYTES = 4 * 1024;
/** A chunk takes at most this much besides its bytes. */
const CHUNK_OVERHEAD_BYTES = 1024;

/**
 * Reserves the memory of a holder's messages that are not whole yet, as that of bodies. A part of a chunk keeps the whole chunk, so all chunks
 * count that have come since the message began.
 */
export class Unfinished {
  readonly #bodies: BodyMemory;
  readonly #grantId: string;
  readonly #full: () => void;
  #memory: Reservation | undefined;
  #kept = 0;
  #reserved = 0;
  #isFull = false;

  /** @param full called when there is no memory. All that has come stays reserved until the socket closes. */
  constructor(holder: WebSocket, bodies: BodyMemory, grantId: string, full: () => void) {
    this.#bodies = bodies;
    this.#grantId = grantId;
    this.#full = full;
    watchChunks(holder, (bytes, keeps) => this.#came(bytes, keeps));
  }

  /** Notes that a message is whole. Its memory is that of whole messages then. */
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
