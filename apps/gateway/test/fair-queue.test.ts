import { expect, test } from 'vitest';
import { fairQueue } from '../src/share/turns.ts';

const most = { running: 2, waiting: 6, waitingPerOwner: 4 };

/** Tasks that end when the test ends them, and the order in which they began. */
function tasks() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const task = (name: string) => () =>
    new Promise<string>((resolve) => {
      begun.push(name);
      ends.set(name, () => resolve(name));
    });
  return { begun, task, end: (name: string) => ends.get(name)?.() };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test('an owner runs one task at a time, and another owner does not wait for the queued ones', async () => {
  const { begun, task, end } = tasks();
  const queue = fairQueue(most);
  const ran = ['a1', 'a2', 'a3'].map((name) => queue.run('a', task(name)));
  const other = queue.run('b', task('b1'));
  await settled();
  expect(begun).toEqual(['a1', 'b1']);
  end('a1');
  await ran[0];
  await settled();
  expect(begun).toEqual(['a1', 'b1', 'a2']);
  end('b1');
  expect(await other).toBe('b1');
  await settled();
  expect(begun).toEqual(['a1', 'b1', 'a2']);
});

test('owners take turns', async () => {
  const { begun, task, end } = tasks();
  const queue = fairQueue({ ...most, running: 1 });
  for (const name of ['a1', 'a2', 'b1', 'b2', 'c1']) void queue.run(name.charAt(0), task(name));
  for (const next of ['a1', 'b1', 'c1', 'a2', 'b2']) {
    await settled();
    expect(begun.at(-1)).toBe(next);
    end(next);
  }
});

test('a full queue refuses at once, for one owner and for all', async () => {
  const { task } = tasks();
  const queue = fairQueue(most);
  const of = (owner: string, times: number) =>
    Array.from({ length: times }, (_, i) => queue.run(owner, task(`${owner}${i}`)) !== undefined);
  expect(of('a', 6)).toEqual([true, true, true, true, true, false]);
  expect(of('b', 1)).toEqual([true]);
  expect(of('c', 3)).toEqual([true, true, false]);
});

test('a task that fails frees its place for the next', async () => {
  const { begun, task } = tasks();
  const queue = fairQueue({ ...most, running: 1 });
  const failing = queue.run('a', () => Promise.reject(new Error('no')));
  void queue.run('a', task('a2'));
  await expect(failing).rejects.toThrow('no');
  await settled();
  expect(begun).toEqual(['a2']);
});
