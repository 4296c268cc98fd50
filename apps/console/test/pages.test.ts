import type { Limits } from '@presign/client';
import { InfiniteQueryObserver, QueryClient } from '@tanstack/preact-query';
import { expect, test } from 'vitest';
import { pagesOf, reload } from '../src/api/pages.ts';
import { setSession } from '../src/api/session.ts';

/** A list of which some pages are read, and how many requests that took. */
async function listOf(pages: number, mostLive: number) {
  let asked = 0;
  const ask = async () => ({ page: asked++, next_cursor: 'more' });
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const options = pagesOf(['list'], ask, 5_000, mostLive);
  const list = new InfiniteQueryObserver(client, options);
  const leave = list.subscribe(() => undefined);
  for (let at = 0; at < pages; at++) await list.fetchNextPage();
  const query = client.getQueryCache().findAll()[0];
  if (!query) throw new Error('no list');
  const valueIn = (option: unknown) => (typeof option === 'function' ? option(query) : option);
  return { client, list, leave, asked: () => asked, valueIn, options };
}

test('the pages of a list are fetched again once per interval, however many pages there are', async () => {
  for (const pages of [1, 4]) {
    const { valueIn, options, leave } = await listOf(pages, 5);
    expect(valueIn(options.refetchInterval)).toBe(pages * 5_000);
    expect(valueIn(options.refetchOnWindowFocus)).toBe(true);
    leave();
  }
});

test('a long list is not fetched again by a timer, by focus, or when its page is shown again', async () => {
  const { valueIn, options, leave } = await listOf(6, 5);
  for (const name of [
    'refetchInterval',
    'refetchOnWindowFocus',
    'refetchOnMount',
    'refetchOnReconnect',
  ] as const)
    expect(valueIn(options[name]), name).toBe(false);
  leave();
});

test('after a change, only the first pages of a long list are fetched again', async () => {
  const { client, list, asked, leave } = await listOf(6, 2);
  const before = asked();
  await reload(client);
  expect(asked() - before).toBe(2);
  expect(list.getCurrentResult().data?.pages).toHaveLength(2);
  expect(list.getCurrentResult().hasNextPage).toBe(true);
  leave();
});

test('signing out or in with another key clears all cached data, and signing in with the same key keeps it', () => {
  const limitsOf = (id: string) => ({ api_key: { id } }) as Limits;
  for (const [next, stays] of [
    [limitsOf('a'), true],
    [limitsOf('b'), false],
    [null, false],
  ] as const) {
    const client = new QueryClient();
    setSession(client, limitsOf('a'));
    client.setQueryData(['budgets'], 'of a');
    setSession(client, next);
    expect(client.getQueryData(['budgets']) !== undefined).toBe(stays);
    expect(client.getQueryData(['limits'])).toEqual(next);
  }
});
