/** The bytes of settles and refunds that may wait for Redis in one gateway. */
const MOST_BYTES = 32 * 1024 * 1024;
/** The bytes of one waiting script in addition to its record: its promises, its timer, its listener. */
const EACH_BYTES = 2 * 1024;

/** Bounds the memory of scripts that wait for Redis. When it is full, the oldest script gives up. */
export type Waiting = {
  /**
   * Adds a script.
   * @param bytes of its record
   * @param giveUp called when the memory is needed
   * @returns a function that removes it
   */
  readonly add: (bytes: number, giveUp: () => void) => () => void;
};

/** @param dropped called for each script that gives up because the memory is full */
export function boundWaiting(dropped: () => void, mostBytes = MOST_BYTES): Waiting {
  const waiting = new Map<object, { readonly bytes: number; readonly giveUp: () => void }>();
  let sum = 0;
  const remove = (key: object) => {
    sum -= waiting.get(key)?.bytes ?? 0;
    waiting.delete(key);
  };
  return {
    add: (bytes, giveUp) => {
      const key = {};
      waiting.set(key, { bytes: bytes + EACH_BYTES, giveUp });
      sum += bytes + EACH_BYTES;
      for (const [oldest, { giveUp: end }] of waiting) {
        if (sum <= mostBytes) break;
        remove(oldest);
        dropped();
        end();
      }
      return () => remove(key);
    },
  };
}
