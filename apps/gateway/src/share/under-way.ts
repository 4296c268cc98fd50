import { Bag } from '../bag.ts';

/** Calls and settles that have not ended. A closing gateway waits for them. */
export type UnderWay = {
  readonly track: (work: Promise<unknown>) => void;
  /** Resolves when all tracked work has ended. */
  readonly done: () => Promise<void>;
};

export function trackUnderWay(): UnderWay {
  const pending = new Bag<Promise<unknown>>();
  return {
    track: (work) => {
      const remove = pending.add(work);
      work.then(remove, remove);
    },
    done: async () => {
      while (pending.size > 0) await Promise.allSettled(pending);
    },
  };
}
