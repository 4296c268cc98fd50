import { setTimeout as sleep } from 'node:timers/promises';

const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 5_000;

/**
 * Runs a Redis script again until Redis answers. Waits 50 ms before the second try, twice as long before each further
 * one, and at most 5 s. Only for scripts that change nothing when they run a second time.
 * @returns what the script returned. Throws the last error when the next try would be later than `giveUpMs` after the first.
 */
export async function retry<T>(run: () => Promise<T>, giveUpMs: number): Promise<T> {
  const giveUpAt = Date.now() + giveUpMs;
  for (let wait = FIRST_WAIT_MS; ; wait = Math.min(wait * 2, LONGEST_WAIT_MS)) {
    try {
      return await run();
    } catch (error) {
      if (Date.now() + wait > giveUpAt) throw error;
      await sleep(wait);
    }
  }
}
