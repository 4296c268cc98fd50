import type { WebSocket } from 'ws';
import type { Reservation } from '../share/body-memory.ts';
import { watchUnfinished } from './framing.ts';

/** Memory is reserved in steps of this size. */
const STEP_BYTES = 4 * 1024;

/**
 * Reserves the memory of a holder's messages that are not whole yet, as that of bodies. Whole ones are reserved by their turns.
 * @param full called when there is no memory. All that has come stays reserved until the socket closes.
 */
export function reserveUnfinished(holder: WebSocket, memory: Reservation, full: () => void): void {
  let reserved = 0;
  let isFull = false;
  watchUnfinished(holder, (bytes) => {
    if (isFull) return;
    if (bytes < reserved - STEP_BYTES || bytes === 0) {
      memory.release();
      reserved = 0;
    }
    if (bytes <= reserved) return;
    const more = Math.ceil((bytes - reserved) / STEP_BYTES) * STEP_BYTES;
    isFull = !memory.reserve(more);
    if (isFull) full();
    else reserved += more;
  });
  holder.once('close', memory.release);
}
