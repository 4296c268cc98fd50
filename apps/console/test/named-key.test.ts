import { expect, test } from 'vitest';
import { idOfKey } from '../src/data/format/named-key.ts';

const ID = '0b0e7a6c-6a3f-4e0e-9a53-0d6f0a1b2c3d';
const keys = [
  { id: 'a', name: 'Backend', revoked_at: null },
  { id: 'b', name: 'Backend', revoked_at: 1_700_000_000 },
  { id: 'c', name: 'Twice', revoked_at: null },
  { id: 'd', name: 'Twice', revoked_at: null },
  { id: 'e', name: 'Gone', revoked_at: 1_700_000_000 },
];
const idOf = (which: string) => () => idOfKey(which, 'API key', keys);

test('a name finds the active key with that name, not a revoked key with the same name', () => {
  expect(idOf('Backend')()).toBe('a');
  expect(idOfKey('Backend', 'API key', keys.toReversed())).toBe('a');
});

test('an id finds its key, even if the list lacks that key', () => {
  expect(idOf(ID)()).toBe(ID);
  expect(idOf(`vk_${ID}`)()).toBe(`vk_${ID}`);
});

test('a name is refused with a reason if two keys, only a revoked key or no key has it', () => {
  expect(idOf('Twice')).toThrow('2 API keys have the name Twice. Enter the id');
  expect(idOf('Gone')).toThrow('the API key Gone is revoked');
  expect(idOf('Other')).toThrow('no API key among the newest has the name Other. Enter its id');
});
