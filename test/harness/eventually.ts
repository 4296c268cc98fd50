import { setTimeout as sleep } from 'node:timers/promises';

/** Asks again and again until the answer is not undefined; fails after `timeoutMs`. */
export async function eventually<T>(ask: () => Promise<T | undefined>, timeoutMs = 30_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (Date.now() > end) throw new Error('did not come about in time');
    await sleep(50);
  }
}
