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

test('a name means the key in force that has it, not a revoked one of the same name', () => {
  expect(idOf('Backend')()).toBe('a');
  expect(idOfKey('Backend', 'API key', keys.toReversed())).toBe('a');
});

test('an id means itself, also of a key that the list lacks', () => {
  expect(idOf(ID)()).toBe(ID);
  expect(idOf(`vk_${ID}`)()).toBe(`vk_${ID}`);
});

test('a name of two keys, of a revoked key or of no key is refused in words', () => {
  expect(idOf('Twice')).toThrow('2 API keys have the name Twice. Enter the id');
  expect(idOf('Gone')).toThrow('the API key Gone is revoked');
  expect(idOf('Other')).toThrow('no API key among the newest has the name Other. Enter its id');
});
