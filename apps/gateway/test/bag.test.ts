import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Bag } from '../src/bag.ts';

test('a bag contains the items that were added and not removed, in any order of adding and removing', () => {
  const steps = fc.array(fc.oneof(fc.constant('add'), fc.nat(20)), { maxLength: 200 });
  fc.assert(
    fc.property(steps, (all) => {
      const bag = new Bag<number>();
      const model = new Set<number>();
      const added: { readonly item: number; readonly remove: () => void }[] = [];
      for (const step of all) {
        if (step === 'add') {
          const item = added.length;
          added.push({ item, remove: bag.add(item) });
          model.add(item);
        } else {
          // One that was removed before may come again.
          const one = added[Number(step) % Math.max(1, added.length)];
          one?.remove();
          model.delete(one?.item ?? -1);
        }
        expect([...bag].sort((a, b) => a - b)).toEqual([...model]);
        expect(bag.size).toBe(model.size);
      }
    }),
  );
});

test('removing an item during iteration skips no other item', () => {
  const bag = new Bag<string>();
  const remove = new Map(['a', 'b', 'c', 'd'].map((name) => [name, bag.add(name)]));
  const seen: string[] = [];
  for (const name of bag) {
    seen.push(name);
    remove.get(name === 'd' && bag.size === 4 ? 'a' : name)?.();
  }
  // The last one took the place of the first, and came again.
  expect(seen).toEqual(['d', 'c', 'b', 'd']);
  expect([...bag]).toEqual([]);
});

/** How many bytes of each item stay after it was removed, until all of the heap is collected. An item takes 800. */
async function keptAfterRemoval(add: string): Promise<number> {
  const file = JSON.stringify(new URL('../src/bag.ts', import.meta.url).href);
  const code = `
    import { Bag } from ${file};
    const bag = new Bag();
    const set = new Set();
    const add = ${add};
    const used = () => process.memoryUsage().heapUsed;
    const removeOf = Array.from({ length: 16 }, () => () => {});
    gc();
    const before = used();
    for (let i = 0; i < 20_000; i++) {
      removeOf[i % 16]();
      removeOf[i % 16] = add(new Array(100).fill(i));
      if (i % 100 === 0) gc({ type: 'minor' });
    }
    gc({ type: 'minor' });
    console.log((used() - before) / 20_000);`;
  // V8 may put objects that often live long where only a full collection looks.
  const flags = ['--expose-gc', '--no-allocation-site-pretenuring'];
  const args = [...flags, '--import', 'tsx', '--input-type=module', '-e', code];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: import.meta.dirname });
  return Number(stdout);
}

test('a bag releases the memory of removed items, and a Set does not', async () => {
  const [bag, set] = await Promise.all([
    keptAfterRemoval('(item) => bag.add(item)'),
    keptAfterRemoval('(item) => (set.add(item), () => set.delete(item))'),
  ]);
  expect(bag).toBeLessThan(50);
  expect(set).toBeGreaterThan(100);
});
