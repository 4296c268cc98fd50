import { expect, test } from 'vitest';
import { inTurn } from '../src/in-time.ts';

/** A request of an account, as far as the queue looks at it. */
const of = (accountId: string) =>
  ({
    get: () => ({ accountId }),
    req: { raw: new Request('http://issuer.example') },
  }) as unknown as Parameters<ReturnType<typeof inTurn>>[0];

test('an account with many reports leaves a turn for the report of another one', async () => {
  const take = inTurn();
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (account: string) =>
    take(of(account), () => {
      begun.push(account);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const asked = [...'aaaaaa', 'b', 'c', 'c'].map(ask);
  await Promise.resolve();
  expect(begun).toEqual(['a', 'a', 'b']);
  for (let done = 0; done < asked.length; done++) {
    ends.shift()?.();
    await new Promise(setImmediate);
    expect(begun.length).toBe(Math.min(asked.length, done + 4));
  }
  await Promise.all(asked);
  expect(begun.join('')).toBe('aabacacaa');
});

test('an account that may read one at a time leaves all other turns to others', async () => {
  const take = inTurn(8_000, 1);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (account: string) =>
    take(of(account), () => {
      begun.push(account);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const asked = [...'aaa', 'b', 'c', 'c'].map(ask);
  await Promise.resolve();
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const _ of asked) {
    ends.shift()?.();
    await new Promise(setImmediate);
  }
  await Promise.all(asked);
  expect(begun.join('')).toBe('abcaca');
});
