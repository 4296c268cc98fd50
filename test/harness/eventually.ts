import { setTimeout as sleep } from 'node:timers/promises';

/** To ask costs CPU that what is waited for needs, so the longer it takes, the less often it asks. */
const LONGEST_PAUSE_MS = 250;

/** Asks again and again until the answer is neither undefined nor false; fails after `timeoutMs`. */
export async function eventually<T>(
  ask: () => Promise<T | undefined | false>,
  timeoutMs = 60_000,
): Promise<T> {
  const began = Date.now();
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() - began > timeoutMs) throw new Error('did not come about in time');
    await sleep(Math.min(LONGEST_PAUSE_MS, 30 + (Date.now() - began) / 8));
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
