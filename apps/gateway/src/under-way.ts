/** Calls and settles that are still on their way, so that a closing gateway can wait for them. */
export type UnderWay = {
  readonly track: (work: Promise<unknown>) => void;
  /** Resolves when none is left. */
  readonly done: () => Promise<void>;
};

export function trackUnderWay(): UnderWay {
  const open = new Set<Promise<unknown>>();
  return {
    track: (work) => {
      open.add(work);
      const remove = () => open.delete(work);
      work.then(remove, remove);
    },
    done: async () => {
      while (open.size > 0) await Promise.allSettled(open);
    },
  };
}
