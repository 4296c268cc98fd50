import { expect, test } from 'vitest';
import { CountMemory, keyOfText } from '../src/share/count-memory.ts';

const json = JSON.stringify('a text');

test('a text has the same key as a string and as bytes', () => {
  const memory = new CountMemory();
  memory.set(keyOfText('one', 'o200k_base', json), 7);
  expect(memory.get(keyOfText('one', 'o200k_base', Buffer.from(json)))).toBe(7);
});

test('accounts, encodings and texts do not share counts', () => {
  const memory = new CountMemory();
  memory.set(keyOfText('one', 'o200k_base', json), 7);
  expect(memory.get(keyOfText('two', 'o200k_base', json))).toBeUndefined();
  expect(memory.get(keyOfText('one', 'cl100k_base', json))).toBeUndefined();
  expect(memory.get(keyOfText('one', 'o200k_base', JSON.stringify('a texT')))).toBeUndefined();
});

test('texts whose lone surrogates have the same UTF-8 have different keys', () => {
  const texts = ['\ud800', '\udc00', '\ufffd'].map((text) => `${'a'.repeat(200)}${text}`);
  expect(new Set(texts.map((text) => keyOfText('one', 'o200k_base', JSON.stringify(text)))).size).toBe(3);
});
