import { expect, test } from 'vitest';
import { addressOf, awaitStore } from '../src/await-store.ts';

const store = {
  variable: 'DATABASE_URL',
  url: 'postgres://h/d',
  log: {
    error: () => {
      throw new Error('logged too early');
    },
  },
} as const;

test('a store that starts a little later is waited for, and nothing is logged', async () => {
  let asked = 0;
  await awaitStore({ ...store, ask: async () => (asked++ < 2 ? Promise.reject(new Error('away')) : 1) });
  expect(asked).toBe(3);
});

test('a store that answers with a refusal is not tried again', async () => {
  const refused = new Error('wrong password');
  const ask = () => Promise.reject(refused);
  await expect(awaitStore({ ...store, ask, isFinal: (error) => error === refused })).rejects.toBe(refused);
});

test.each([
  ['redis://localhost:6379/1', 'localhost:6379'],
  ['redis://:marked@redis:6379', 'redis:6379'],
  ['rediss+cluster://user:marked@a:1,b:2', 'a:1,b:2'],
  ['redis+sentinel://a:1,b:2/mymaster', 'a:1,b:2'],
  ['postgres://presign:m%40rked@[::1]:5432/presign?sslmode=require', '[::1]:5432'],
  ['redis://:mar/ked@redis:6379/0', 'redis:6379'],
])('the address in %s is shown without user and password', (url, address) => {
  expect(addressOf(url)).toBe(address);
});
