/** The memory for request bodies that are read whole. All calls of one gateway share it. */
export type BodyMemory = {
  /** An empty reservation for one call. */
  readonly newReservation: () => Reservation;
};

/** The memory that one call has reserved. */
export type Reservation = {
  /** Reserves this many bytes more. Returns false, and reserves nothing, when too much is reserved already. */
  readonly reserve: (bytes: number) => boolean;
  /** Releases everything that the call has reserved. A second release does nothing. */
  readonly release: () => void;
};

/** Bodies up to this size find room even when large ones fill their share. */
export const SMALL_BODY_BYTES = 64 * 1024;

/** Kept free for small bodies, so that a few large bodies that arrive slowly do not stop all other calls. */
const SMALL_SHARE = 1 / 8;

export function bodyMemory(mostBytes: number): BodyMemory {
  const mostForLarge = Math.floor(mostBytes * (1 - SMALL_SHARE));
  let all = 0;
  return {
    newReservation: () => {
      let own = 0;
      return {
        reserve: (bytes) => {
          const most = own + bytes > SMALL_BODY_BYTES ? mostForLarge : mostBytes;
          if (all + bytes > most) return false;
          all += bytes;
          own += bytes;
          return true;
        },
        release: () => {
          all -= own;
          own = 0;
        },
      };
    },
  };
}
