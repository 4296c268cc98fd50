import { ledger } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { refused } from './ask.ts';
import { csv, fresh, get, parseCsv, type Query, type Reader, report, row } from './ask-usage.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const DAY_MS = 86_400_000;
const GROUP_BY = 'external_user,model,day';

/** An account with 12 groups, some of which lack a user, a model or both. */
async function withGroups(): Promise<Reader> {
  const of = await fresh(stack);
  const days = [1, 2].map((day) => new Date(Date.UTC(2026, 0, day)));
  const rows = [null, '', 'Ünal'].flatMap((externalUser) =>
    [null, 'model-1'].flatMap((model) =>
      days.map((settledAt) => row(of, { externalUser, model, settledAt })),
    ),
  );
  await stack.db.insert(ledger).values(rows);
  return of;
}

/** Every page of a report, one after another. */
async function pages(of: Reader, query: Query, between = async () => {}) {
  const all = [await report(of, query)];
  for (let cursor = all[0]?.next_cursor; cursor; cursor = all.at(-1)?.next_cursor) {
    await between();
    const sent = await get(of, { group_by: GROUP_BY, ...query, from: '0', cursor });
    refusedNever(sent.status, sent.text);
    all.push(JSON.parse(sent.text));
  }
  return all;
}
const refusedNever = (status: number, text: string) => expect(status, text).toBe(200);

describe('pages of a report', () => {
  test('have every group once, in the order of the whole report, with its total, at any page size', async () => {
    const of = await withGroups();
    const whole = await report(of, { group_by: GROUP_BY });
    expect([whole.data.length, whole.next_cursor]).toEqual([12, null]);
    const to = String(whole.to);
    for (const limit of ['1', '5', '6', '11', '12']) {
      const all = await pages(of, { group_by: GROUP_BY, limit, to });
      expect(all.flatMap(({ data }) => data)).toEqual(whole.data);
      expect(all).toHaveLength(Math.ceil(12 / Number(limit)));
      for (const { total } of all) expect(total).toEqual(whole.total);
    }
  });

  test("repeat and skip no group when new groups appear, and keep the end of the first page's range", async () => {
    const of = await withGroups();
    const before = await report(of, { group_by: GROUP_BY });
    const add = async () => {
      const settledAt = new Date('2026-01-01T00:00:01Z');
      await stack.db.insert(ledger).values(row(of, { externalUser: '', model: 'a', settledAt }));
      await stack.db.insert(ledger).values(row(of, { externalUser: 'z', settledAt: new Date() }));
    };
    const all = await pages(of, { group_by: GROUP_BY, limit: '4' }, add);
    const seen = all.flatMap(({ data }) =>
      data.map(({ external_user: user, model, day }) => [user, model, day]),
    );
    expect(new Set(seen.map((group) => JSON.stringify(group))).size).toBe(seen.length);
    for (const { external_user: user, model, day } of before.data)
      expect(seen).toContainEqual([user, model, day]);
    expect(seen.map(([user]) => user)).not.toContain('z');
    expect(new Set(all.map(({ to }) => to)).size).toBe(1);
  });

  test('as CSV have the address of the next page in the Link header', async () => {
    const of = await withGroups();
    const whole = parseCsv(await csv(of, { group_by: GROUP_BY })).slice(1);
    const seen: string[][] = [];
    let query: Query = { from: '0', group_by: GROUP_BY, format: 'csv', limit: '5' };
    for (let page = 0; page < 3; page++) {
      const sent = await get(of, query);
      refusedNever(sent.status, sent.text);
      seen.push(...parseCsv(sent.text).slice(1));
      const [, next] = /^<\?([^>]*)>; rel="next"$/.exec(sent.headers.get('link') ?? '') ?? [];
      expect(next === undefined, `page ${page}`).toBe(page === 2);
      query = Object.fromEntries(new URLSearchParams(next));
    }
    expect(seen).toEqual(whole);
  });

  test('need the grouping and the range of the first page, and a cursor from a report', async () => {
    const of = await withGroups();
    const { next_cursor: cursor } = await report(of, { group_by: GROUP_BY, limit: '1' });
    if (cursor === null) throw new Error('there is no second page');
    const forged = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const wrong: Query[] = [
      { cursor },
      { cursor, group_by: 'day' },
      { cursor, group_by: GROUP_BY, from: '1' },
      { cursor, group_by: GROUP_BY, to: '2026-01-02T00:00:00Z' },
      { cursor: 'x', group_by: GROUP_BY },
      { cursor: `${cursor}=`, group_by: GROUP_BY },
      { cursor: forged([0, 1]), group_by: 'day' },
      { cursor: forged([0, 1, ['a\0']]), group_by: 'day' },
      { cursor: forged([0, 1e300, ['a']]), group_by: 'day' },
      { cursor: 'x'.repeat(14_001), group_by: 'day' },
    ];
    for (const query of wrong) refused(await get(of, query), 'invalid_request', 'cursor');
    for (const limit of ['0', '100001', '-1', 'x'])
      refused(await get(of, { group_by: GROUP_BY, limit }), 'invalid_request', 'limit');
  });

  test("show nothing when another account uses this account's cursor", async () => {
    const [of, other] = [await withGroups(), await fresh(stack)];
    const { next_cursor: cursor } = await report(of, { group_by: GROUP_BY, limit: '1' });
    const sent = await get(other, { group_by: GROUP_BY, cursor: cursor ?? '' });
    expect(JSON.parse(sent.text)).toMatchObject({ data: [], total: { calls: 0 }, next_cursor: null });
  });
});

test('a report without a range covers the last 30 days', async () => {
  const of = await fresh(stack);
  const ago = (days: number) => new Date(Date.now() - days * DAY_MS);
  const settled = [0.01, 29.9, 30.1].map((days) => row(of, { settledAt: ago(days) }));
  await stack.db.insert(ledger).values(settled);
  const sent = await get(of, {});
  refusedNever(sent.status, sent.text);
  const { from, to, total } = JSON.parse(sent.text);
  expect(total.calls).toBe(2);
  expect(to - from).toBe(30 * 86_400);
  const until = await get(of, { to: String(ago(29).getTime() / 1000) });
  expect(JSON.parse(until.text).total.calls).toBe(2);
});
