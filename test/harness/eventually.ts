import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again and again until the answer is neither undefined nor false; fails after `timeoutMs`. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | false>,
  timeoutMs = 60_000,
): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > end) throw new Error('did not come about in time');
    await sleep(50);
  }
}

/** A promise and what settles it. */
export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
