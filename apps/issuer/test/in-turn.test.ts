import { RefusedError } from '@presign/schema';
import { expect, test, vi } from 'vitest';
import { CallerLeft } from '../src/middleware/caller-left.ts';
import { inTurn, type Turn } from '../src/middleware/in-time.ts';

/** A request of an account, as far as the queue looks at it. */
const of = (accountId: string, { signal } = new AbortController()) =>
  ({
    get: () => ({ accountId }),
    req: { raw: new Request('http://issuer.example', { signal }) },
  }) as unknown as Parameters<ReturnType<typeof inTurn>>[0];

test("an account with many reports leaves a turn for another account's report", async () => {
  const take = inTurn();
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (account: string) =>
    take(of(account), () => {
      begun.push(account);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const asked = [...'aaaaaa', 'b', 'c', 'c'].map(ask);
  await new Promise(setImmediate);
  expect(begun).toEqual(['a', 'a', 'b']);
  for (let done = 0; done < asked.length; done++) {
    ends.shift()?.();
    await new Promise(setImmediate);
    expect(begun.length).toBe(Math.min(asked.length, done + 4));
  }
  await Promise.all(asked);
  expect(begun.join('')).toBe('aabacacaa');
});

test('an account that may run one report at a time leaves all other turns to others', async () => {
  const take = inTurn(8_000, 1);
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const ask = (account: string) =>
    take(of(account), () => {
      begun.push(account);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const asked = [...'aaa', 'b', 'c', 'c'].map(ask);
  await new Promise(setImmediate);
  expect(begun).toEqual(['a', 'b', 'c']);
  for (const _ of asked) {
    ends.shift()?.();
    await new Promise(setImmediate);
  }
  await Promise.all(asked);
  expect(begun.join('')).toBe('abcaca');
});

test('a caller that disconnects while it waits frees its place, and this is not reported as an outage', async () => {
  const take = inTurn(8_000, 1);
  const ends: (() => void)[] = [];
  const busy = take(of('a'), () => new Promise<void>((resolve) => ends.push(resolve)));
  const leaving = new AbortController();
  const left = take(of('a', leaving), async () => expect.unreachable());
  const next = take(of('a'), async () => 'next');
  leaving.abort();
  await expect(left).rejects.toThrow(CallerLeft);
  ends[0]?.();
  await busy;
  expect(await next).toBe('next');
  const gone = new AbortController();
  gone.abort();
  await expect(take(of('b', gone), async () => expect.unreachable())).rejects.toThrow(CallerLeft);
});

test('a request knows whether another account waits for its turn', async () => {
  const take = inTurn(8_000, 1);
  const ends: (() => void)[] = [];
  const asks: (() => boolean)[] = [];
  const ask = (account: string) =>
    take(of(account), ({ isWanted }) => {
      asks.push(isWanted);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const first = ['a', 'b', 'c', 'a'].map(ask);
  await new Promise(setImmediate);
  // The second request of the first account waits for its own account alone.
  expect(asks.map((isWanted) => isWanted())).toEqual([false, false, false]);
  const fourth = ask('d');
  expect(asks.map((isWanted) => isWanted())).toEqual([true, true, true]);
  for (let i = 0; i < 5; i++) {
    ends[i]?.();
    await new Promise(setImmediate);
  }
  await Promise.all([...first, fourth]);
});

test('many kinds of requests leave a database connection for issuing, and those of one account leave turns for others', async () => {
  const kinds = Array.from({ length: 10 }, () => inTurn());
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const asks: (() => boolean)[] = [];
  const ask = (account: string) =>
    kinds.map((take) =>
      take(of(account), ({ isWanted }) => {
        begun.push(account);
        asks.push(isWanted);
        return new Promise<void>((resolve) => ends.push(resolve));
      }),
    );
  const asked = ['a', 'a', 'b', 'c'].flatMap(ask);
  await new Promise(setImmediate);
  expect(begun.join('')).toBe('aaaaaabbb');
  expect(asks[0]?.()).toBe(true);
  for (let done = 1; done <= asked.length; done++) {
    ends.shift()?.();
    await new Promise(setImmediate);
    expect(ends).toHaveLength(Math.min(9, asked.length - done));
  }
  await Promise.all(asked);
});

test('between its queries a request detects that its caller has left or has its answer', async () => {
  let error: unknown;
  const read = async ({ goOn }: Turn) => {
    try {
      for (;;) {
        goOn();
        await new Promise(setImmediate);
      }
    } catch (caught) {
      error = caught;
      throw caught;
    }
  };
  const leaving = new AbortController();
  const left = inTurn()(of('a', leaving), read);
  await new Promise(setImmediate);
  expect(error).toBeUndefined();
  leaving.abort();
  await expect(left).rejects.toThrow(CallerLeft);
  expect(error).toBeInstanceOf(CallerLeft);
  await expect(inTurn(1_000)(of('a'), read)).rejects.toThrow(RefusedError);
  await vi.waitFor(() => expect(error).toBeInstanceOf(RefusedError), 10_000);
});
