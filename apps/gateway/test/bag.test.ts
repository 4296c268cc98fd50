import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Bag } from '../src/bag.ts';

test('a bag has what was added and not removed, in whatever order that happens', () => {
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

test('an item that removes itself, or others, while the bag is looked through hides none', () => {
  const bag = new Bag<string>();
  const remove = new Map(['a', 'b', 'c', 'd'].map((name) => [name, bag.add(name)]));
  const seen: string[] = [];
  for (const name of bag) {
    seen.push(name);
    remove.get(name)?.();
    if (name === 'c') remove.get('a')?.();
  }
  expect(new Set(seen)).toEqual(new Set(['d', 'c', 'b']));
  expect([...bag]).toEqual([]);
});
