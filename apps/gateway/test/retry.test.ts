import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RedisClient } from '@presign/limits';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDoubts, retry } from '../src/limits/retry.ts';
import { boundWaiting } from '../src/limits/waiting.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['Date'] }));
afterEach(() => vi.useRealTimers());

const GRANT = { budgetIds: ['own', 'shared'] };
const connection = () => ({
  redis: new EventEmitter() as RedisClient,
  doubts: createDoubts(),
  waiting: boundWaiting(() => {}),
  closing: new AbortController().signal,
});

const repeated = <T>(run: () => Promise<T>, giveUpMs: number, bytes = 0) => ({ run, giveUpMs, bytes });

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
  expect(await retry(connection(), GRANT, repeated(failing(2, 100), 60_000))).toBe(3);
});

test('the last error is thrown if the next try would be too late', async () => {
  await expect(retry(connection(), GRANT, repeated(failing(9, 100), 300))).rejects.toThrow('failure 3');
  await expect(retry(connection(), GRANT, repeated(failing(9, 100), 100))).rejects.toThrow('failure 1');
});

test('a closing gateway gives up after a minute', async () => {
  const deps = { ...connection(), closing: AbortSignal.abort() };
  await expect(retry(deps, GRANT, repeated(failing(9, 30_000), 3_600_000))).rejects.toThrow('failure 2');
});

test('a script that failed runs again as soon as Redis reconnects', async () => {
  const deps = connection();
  const tries: boolean[] = [];
  const run = async () => {
    tries.push(true);
    if (tries.length < 100) throw new Error('away');
  };
  const done = retry(deps, GRANT, repeated(run, 60_000_000));
  // With its waits alone, a hundred tries would take a minute and a half.
  while (tries.length < 100) {
    await new Promise(setImmediate);
    deps.redis.emit('ready');
  }
  await done;
  expect(deps.redis.listenerCount('ready')).toBe(0);
});

test('the budgets of a grant are marked uncertain from the first failure until the script has run', async () => {
  const deps = connection();
  const seen: boolean[] = [];
  const run = failing(2, 0);
  const look = () => {
    seen.push(deps.doubts.touch(['other', 'shared']));
    return run();
  };
  await retry(deps, GRANT, repeated(look, 60_000));
  expect(seen).toEqual([false, true, true]);
  expect(deps.doubts.touch(GRANT.budgetIds)).toBe(false);
  await retry(deps, GRANT, repeated(failing(9, 100), 100)).catch(() => {});
  expect(deps.doubts.touch(GRANT.budgetIds)).toBe(false);
});

test('a script is not tried while there is no connection', async () => {
  const deps = connection();
  let tries = 0;
  const run = async () => {
    tries += 1;
    if (tries === 1) throw new Error('away');
  };
  Object.assign(deps.redis, { status: 'reconnecting' });
  const done = retry(deps, GRANT, repeated(run, 60_000_000));
  await sleep(400);
  expect(tries).toBe(1);
  Object.assign(deps.redis, { status: 'ready' });
  deps.redis.emit('ready');
  await done;
  expect(tries).toBe(2);
});

test('if too many scripts wait, the oldest give up and are counted', async () => {
  let dropped = 0;
  const deps = { ...connection(), waiting: boundWaiting(() => dropped++, 10_000) };
  const ended: string[] = [];
  let isAway = true;
  const run = () => (isAway ? Promise.reject(new Error('away')) : Promise.resolve());
  const all = Array.from({ length: 5 }, (_, i) =>
    retry(deps, GRANT, repeated(run, 60_000, 1_000)).then(
      () => ended.push(`${i} ran`),
      () => ended.push(`${i} gave up`),
    ),
  );
  while (ended.length < 2) await new Promise(setImmediate);
  expect([dropped, ...ended]).toEqual([2, '0 gave up', '1 gave up']);
  isAway = false;
  await Promise.all(all);
  expect(ended.slice(2).sort()).toEqual(['2 ran', '3 ran', '4 ran']);
  expect(deps.doubts.touch(GRANT.budgetIds)).toBe(false);
});
