import { expect, expectTypeOf, test } from 'vitest';
import { type ApiKey, each, type SessionSummary } from '../src/index.ts';
import { json, pretendIssuer, refusal } from './issuer.ts';

const page = (ids: string[], next_cursor: string | null) =>
  json(200, { data: ids.map((id) => ({ id })), next_cursor });

test('iteration yields every item once and in order, page by page, with the same filters', async () => {
  const { presign, seen } = await pretendIssuer([
    page(['a', 'b'], 'one'),
    page([], 'two'),
    page(['c'], null),
  ]);
  const ids: string[] = [];
  for await (const session of each(presign.listSessions, { external_user: 'user-7' })) ids.push(session.id);
  expect(ids).toEqual(['a', 'b', 'c']);
  expect(seen.map(({ url }) => url.search)).toEqual([
    '?external_user=user-7',
    '?external_user=user-7&cursor=one',
    '?external_user=user-7&cursor=two',
  ]);
});

test('a page is requested only when it is needed', async () => {
  const { presign, seen } = await pretendIssuer([page(['a', 'b'], 'one')]);
  for await (const { id } of each(presign.listApiKeys)) if (id === 'b') break;
  expect(seen).toHaveLength(1);
});

test('rows are not read from CSV', async () => {
  const { presign, seen } = await pretendIssuer([]);
  await expect(each(presign.listCalls, { format: 'csv' as 'json' }).next()).rejects.toThrow(
    'format: rows are read',
  );
  expect(seen).toEqual([]);
});

test('a refusal of a later page makes the iteration throw', async () => {
  const { presign } = await pretendIssuer([page(['a'], 'one'), refusal(400, 'invalid_request')]);
  const all = each(presign.listDeliveries, { id: 'webhook-1' });
  expect((await all.next()).value).toEqual({ id: 'a' });
  await expect(all.next()).rejects.toMatchObject({ code: 'invalid_request' });
});

test("types: iteration yields the items of the list, and takes the list's parameters", async () => {
  const { presign } = await pretendIssuer([]);
  expectTypeOf(each(presign.listSessions)).toEqualTypeOf<AsyncGenerator<SessionSummary, void, undefined>>();
  expectTypeOf(each(presign.listApiKeys, { limit: 5 })).toEqualTypeOf<
    AsyncGenerator<ApiKey, void, undefined>
  >();
  expectTypeOf(each<typeof presign.listSessions>)
    .parameter(1)
    .exclude<undefined>()
    .not.toHaveProperty('cursor');
  // @ts-expect-error the webhook whose deliveries they are
  each(presign.listDeliveries);
  // @ts-expect-error not a list
  each(presign.getSession, { id: 'a' });
});
