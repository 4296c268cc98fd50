import { expect, test } from 'vitest';
import { runAll } from '../src/api/run-all.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test('tasks run a few at a time, and each item runs once', async () => {
  let under = 0;
  let most = 0;
  const seen: number[] = [];
  const items = Array.from({ length: 30 }, (_, at) => at);
  await runAll(items, async (item) => {
    most = Math.max(most, ++under);
    await turn();
    seen.push(item);
    under--;
  });
  expect(most).toBe(4);
  expect(seen.sort((a, b) => a - b)).toEqual(items);
});

test('after an abort, running tasks finish and no new one starts', async () => {
  const stop = new AbortController();
  const ended: number[] = [];
  await runAll(
    Array.from({ length: 30 }, (_, at) => at),
    async (item) => {
      await turn();
      ended.push(item);
      stop.abort();
    },
    stop.signal,
  );
  expect(ended.length).toBe(4);
});
