import { expect, test } from 'vitest';
import { causeOf } from '../src/await-store.ts';

const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:5432'), { code: 'ECONNREFUSED' });
const shown = { error: 'Error', code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 127.0.0.1:5432' };

test.each([
  ['itself', refused],
  ['through every wrapping', new Error('params: marked', { cause: new Error('more', { cause: refused }) })],
  ['of the first address of a name', new AggregateError([refused, new Error('::1')])],
])('the cause of a failure is shown, %s', (_, error) => {
  expect(causeOf(error)).toEqual(shown);
});

test.each([
  ['invalid input syntax for type uuid: "marked"', 'invalid input syntax for type uuid:'],
  ["ERR unknown command 'marked', with args beginning with: 'marked'", 'ERR unknown command'],
  ['Failed query: select\nparams: marked', 'Failed query: select'],
  [`"marked" is not valid`, ''],
  ["the path isn't there", "the path isn't there"],
])('the shown message contains no quotation and no second line (%s)', (message, first) => {
  expect(causeOf(new Error(message)).message.trim()).toBe(first);
});

test('a message about an option of the Redis client is explained', () => {
  const message = "Stream isn't writeable and enableOfflineQueue options is false";
  expect(causeOf(new Error(message)).message).toBe('there is no connection to Redis');
});

test('a value that is not an error has an unknown cause', () => {
  expect(causeOf('marked')).toEqual({ error: 'unknown', message: '' });
});
