/** Requests of one change that are under way at once. */
const AT_ONCE = 4;

/** Runs a task for each item, a few at once. After an abort, those under way end and no other begins. */
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

/** The answers of a question about each item, in their order, asked a few at once. Throws the first error. */
export async function mapAll<T, U>(items: readonly T[], ask: (item: T) => Promise<U>): Promise<U[]> {
  const answers: U[] = [];
  await runAll([...items.entries()], async ([at, item]) => {
    answers[at] = await ask(item);
  });
  return answers;
}
