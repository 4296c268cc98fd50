import { expect, test } from 'vitest';
import { causeOf } from '../src/await-store.ts';

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
const told = { error: 'Error', code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 127.0.0.1:5432' };

test.each([
  ['itself', refused],
  ['through every wrapping', new Error('params: marked', { cause: new Error('more', { cause: refused }) })],
  ['of the first address of a name', new AggregateError([refused, new Error('::1')])],
])('why something failed is told, %s', (_, error) => {
  expect(causeOf(error)).toEqual(told);
});

test.each([
  ['invalid input syntax for type uuid: "marked"', 'invalid input syntax for type uuid:'],
  ["ERR unknown command 'marked', with args beginning with: 'marked'", 'ERR unknown command'],
  ['Failed query: select\nparams: marked', 'Failed query: select'],
  [`"marked" is not valid`, ''],
  [
    "Stream isn't writeable and enableOfflineQueue options is false",
    "Stream isn't writeable and enableOfflineQueue options is false",
  ],
])('nothing that a message quotes is told, nor a second line of it (%s)', (message, first) => {
  expect(causeOf(new Error(message)).message.trim()).toBe(first);
});

test('what is no error is told as unknown', () => {
  expect(causeOf('marked')).toEqual({ error: 'unknown', message: '' });
});
