import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { retry } from '../src/limits/retry.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => vi.useRealTimers());

/** Fails so many times; each try takes `tookMs` of the clock. */
function failing(failures: number, tookMs: number) {
  let tries = 0;
  return async () => {
    vi.setSystemTime(Date.now() + tookMs);
    if (++tries <= failures) throw new Error(`failure ${tries}`);
    return tries;
  };
}

test('a script that fails runs again until it returns', async () => {
  expect(await retry(failing(2, 100), 60_000)).toBe(3);
});

test('the last error is thrown when the next try would be too late', async () => {
  await expect(retry(failing(9, 100), 300)).rejects.toThrow('failure 3');
  await expect(retry(failing(9, 100), 100)).rejects.toThrow('failure 1');
});
