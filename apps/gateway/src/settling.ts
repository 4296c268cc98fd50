/** Settles that are still on their way, so that a closing gateway can wait for them. */
export type Settling = {
  readonly track: (settle: Promise<void>) => void;
  /** Resolves when none is left. */
  readonly done: () => Promise<void>;
};

export function trackSettling(): Settling {
  const open = new Set<Promise<void>>();
  return {
    track: (settle) => {
      open.add(settle);
      void settle.finally(() => open.delete(settle));
    },
    done: async () => {
      while (open.size > 0) await Promise.all(open);
    },
  };
}
