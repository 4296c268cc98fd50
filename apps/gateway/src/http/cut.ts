import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Why the gateway ended a call itself. `unleased`: its place among the calls under way may be taken by another call soon.
 * `unread`: the rest of its answer is of no use. `over`: each of its requests is answered or cancelled.
 */
export type CutReason = 'revoked' | 'suspended' | 'expired' | 'closing' | 'unleased' | 'unread' | 'over';

export const isCut = (why: string): why is CutReason =>
  why === 'revoked' ||
  why === 'suspended' ||
  why === 'expired' ||
  why === 'closing' ||
  why === 'unleased' ||
  why === 'unread' ||
  why === 'over';

class CutError extends Error {
  override readonly name = 'CutError';
  readonly reason: CutReason;

  constructor(reason: CutReason) {
    super(`the gateway ended the call: ${reason}`);
    this.reason = reason;
  }
}

/**
 * Lets the gateway end one call itself. The first reason counts. Each call has one, and needs less than an `AbortController`
 * has: no signal, no events, one listener. An `AbortController` with one listener takes 4 µs on Node 20 and 0.4 on Node 24, and this 0.04.
 */
export class Cutter {
  #error: CutError | undefined;
  #whenCut: ((error: Error) => void) | undefined;

  cut(reason: CutReason): void {
    if (this.#error) return;
    this.#error = new CutError(reason);
    this.#whenCut?.(this.#error);
  }

  /** Calls back when the call is cut, also if that was before. One call back at a time. */
  watch(whenCut: ((error: Error) => void) | undefined): void {
    this.#whenCut = whenCut;
    if (this.#error) whenCut?.(this.#error);
  }
}

export const cutReason = (error: Error) => (error instanceof CutError ? error.reason : undefined);

/**
 * Breaks an answer off: destroys its connection, so that it does not look complete. An answer that waits for an earlier one has no
 * socket yet, and from Node 24 on it would not destroy the one that it gets.
 */
export function breakOff(response: ServerResponse): void {
  if (!response.socket) response.once('socket', (socket: Socket) => socket.destroy());
  response.destroy();
}
