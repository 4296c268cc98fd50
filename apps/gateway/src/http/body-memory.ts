/** How many bytes of request bodies a gateway holds in memory, all its calls together. */
export type BodyBudget = {
  /** One call's share, empty at first. */
  readonly open: () => HeldBytes;
};

/** What one call holds of the budget. */
export type HeldBytes = {
  /** Takes so many more; false, and nothing is taken, when too many are held already. */
  readonly take: (bytes: number) => boolean;
  /** Gives back all that the call holds. Twice is once. */
  readonly giveBack: () => void;
};

/** A body this small has room even when large ones fill their part. */
export const SMALL_BODY_BYTES = 64 * 1024;

/** Kept free for small bodies: a few holders of large ones, sent slowly, must not stop everybody's calls. */
const SMALL_SHARE = 1 / 8;

export function bodyBudget(mostBytes: number): BodyBudget {
  const mostForLarge = Math.floor(mostBytes * (1 - SMALL_SHARE));
  let all = 0;
  return {
    open: () => {
      let own = 0;
      return {
        take: (bytes) => {
          const most = own + bytes > SMALL_BODY_BYTES ? mostForLarge : mostBytes;
          if (all + bytes > most) return false;
          all += bytes;
          own += bytes;
          return true;
        },
        giveBack: () => {
          all -= own;
          own = 0;
        },
      };
    },
  };
}
