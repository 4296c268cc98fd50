import { EventEmitter } from 'node:events';
import type { RedisClient } from '@presign/limits';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDoubts, retry } from '../src/limits/retry.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => vi.useRealTimers());

const GRANT = { budgetIds: ['own', 'shared'] };
const connection = () => ({
  redis: new EventEmitter() as RedisClient,
  doubts: createDoubts(),
  closing: new AbortController().signal,
});

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
  expect(await retry(connection(), GRANT, failing(2, 100), 60_000)).toBe(3);
});

test('the last error is thrown when the next try would be too late', async () => {
  await expect(retry(connection(), GRANT, failing(9, 100), 300)).rejects.toThrow('failure 3');
  await expect(retry(connection(), GRANT, failing(9, 100), 100)).rejects.toThrow('failure 1');
});

test('a closing gateway gives up after a minute', async () => {
  const deps = { ...connection(), closing: AbortSignal.abort() };
  await expect(retry(deps, GRANT, failing(9, 30_000), 3_600_000)).rejects.toThrow('failure 2');
});

test('a script that failed runs again as soon as Redis is connected', async () => {
  const deps = connection();
  const tries: boolean[] = [];
  const done = retry(
    deps,
    GRANT,
    async () => {
      tries.push(true);
      if (tries.length < 100) throw new Error('away');
    },
    60_000_000,
  );
  // With its waits alone, a hundred tries would take a minute and a half.
  while (tries.length < 100) {
    await new Promise(setImmediate);
    deps.redis.emit('ready');
  }
  await done;
  expect(deps.redis.listenerCount('ready')).toBe(0);
});

test('the budgets of a grant are in doubt from the first failure until the script has run', async () => {
  const deps = connection();
  const seen: boolean[] = [];
  const run = failing(2, 0);
  await retry(
    deps,
    GRANT,
    () => {
      seen.push(deps.doubts.touch(['other', 'shared']));
      return run();
    },
    60_000,
  );
  expect(seen).toEqual([false, true, true]);
  expect(deps.doubts.touch(GRANT.budgetIds)).toBe(false);
  await retry(deps, GRANT, failing(9, 100), 100).catch(() => {});
  expect(deps.doubts.touch(GRANT.budgetIds)).toBe(false);
});
