/** Requests of one change that are under way at once. */
const AT_ONCE = 4;

/** Runs a task for each item, a few at once. After an abort, running tasks finish and no new task starts. */
export async function runAll<T>(
  items: readonly T[],
  task: (item: T) => Promise<void>,
  signal?: AbortSignal,
  atOnce = AT_ONCE,
): Promise<void> {
  const rest = items.values();
  const work = async () => {
    for (const item of rest) {
      if (signal?.aborted) return;
      await task(item);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
