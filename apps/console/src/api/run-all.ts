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

/** Runs a query for each item, a few at a time, and returns the answers in the order of the items. Throws the first error. */
export async function mapAll<T, U>(items: readonly T[], ask: (item: T) => Promise<U>): Promise<U[]> {
  const answers: U[] = [];
  await runAll([...items.entries()], async ([at, item]) => {
    answers[at] = await ask(item);
  });
  return answers;
}
