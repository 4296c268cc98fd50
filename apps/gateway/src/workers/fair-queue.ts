/** Runs tasks, a few at a time, so that no owner can keep the others waiting. */
export type FairQueue = {
  /**
   * Runs a task when it is its owner's turn.
   * @returns undefined, at once, when too many tasks are waiting
   */
  readonly run: <T>(owner: string, task: () => Promise<T>) => Promise<T> | undefined;
};

export type FairQueueLimits = {
  /** How many tasks may run at once, each of another owner. */
  readonly running: number;
  readonly waiting: number;
  readonly waitingPerOwner: number;
};

/** One task of an owner runs at a time. Owners take turns: who has just had one goes to the end. */
export function fairQueue(most: FairQueueLimits): FairQueue {
  /** In the order of their turns. */
  const waiting = new Map<string, (() => void)[]>();
  const running = new Set<string>();
  let count = 0;
  const goLast = (owner: string) => {
    const starts = waiting.get(owner);
    if (!starts) return;
    waiting.delete(owner);
    waiting.set(owner, starts);
  };
  const startNext = () => {
    if (running.size >= most.running) return;
    for (const [owner, starts] of waiting) {
      if (running.has(owner)) continue;
      const start = starts.shift();
      if (starts.length === 0) waiting.delete(owner);
      count--;
      running.add(owner);
      start?.();
      return;
    }
  };
  return {
    run: (owner, task) => {
      const own = waiting.get(owner) ?? [];
      if (count >= most.waiting || own.length >= most.waitingPerOwner) return undefined;
      const turn = new Promise<void>((resolve) => own.push(resolve));
      waiting.set(owner, own);
      count++;
      const ran = turn.then(task).finally(() => {
        running.delete(owner);
        goLast(owner);
        startNext();
      });
      startNext();
      return ran;
    },
  };
}
