import { randomUUID } from 'node:crypto';
import { SEARCHED, searchAnswer } from '@presign/schema';
import { sessions } from '@presign/schema/tables';
import { sql } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { deferred } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey } from './accounts.ts';
import { issue, refused, send } from './ask.ts';
import { addToLedger, fresh, type Reader, row } from './ask-usage.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
});
afterAll(() => stack.close());

const get = (of: Pick<Reader, 'issuerUrl' | 'apiKey'>, query: Record<string, string>) =>
  send(of, { method: 'GET', path: `/v1/search?${new URLSearchParams(query)}` });
async function find(of: Reader, contains: string, query: Record<string, string> = {}) {
  const sent = await get(of, { contains, ...query });
  expect(sent.status, sent.text).toBe(200);
  return searchAnswer.parse(JSON.parse(sent.text));
}
const names = async (...asked: Parameters<typeof find>) =>
  (await find(...asked)).data.map(({ name }) => name);
const user = (name: string) => ({ kind: 'external_user', id: name, name });

const called = (of: Reader, users: readonly string[]) =>
  addToLedger(
    stack,
    users.map((externalUser) => row(of, { externalUser })),
  );
/** Users whose names are a beginning and five digits, with a call each. */
const calledByMany = ({ db }: Stack, of: Reader, beginning: string, count: number) =>
  db.execute(sql`insert into ledger (hold_id, account_id, session_id, grant_id, provider, external_user, uses, outcome,
      started_at, settled_at)
    select gen_random_uuid(), ${of.account}::uuid, gen_random_uuid(), gen_random_uuid(), 'openai',
      ${beginning}::text || lpad(n::text, 5, '0'), 1, 'settled', now(), now() from generate_series(1, ${count}::int) as n`);

describe('a search', () => {
  test('finds users by any part of their names in any case, and lists names that begin with it first', async () => {
    const of = await fresh(stack);
    await called(of, ['Big Acme', 'acme', 'acme-2', 'other', 'the acme of b', 'acme']);
    expect(await find(of, 'acme')).toEqual({
      data: ['acme', 'acme-2', 'Big Acme', 'the acme of b'].map(user),
      complete: true,
    });
    expect((await names(of, 'ACME')).toSorted()).toEqual(['Big Acme', 'acme', 'acme-2', 'the acme of b']);
    expect(await find(of, 'nothing')).toEqual({ data: [], complete: true });
  });

  test('treats the text literally: SQL patterns and quotes are ordinary characters', async () => {
    const of = await fresh(stack);
    await called(of, ['50%', "o'brien", 'a_b', 'axb']);
    expect(await names(of, '%')).toEqual(['50%']);
    expect(await names(of, '_')).toEqual(['a_b']);
    expect(await names(of, "'")).toEqual(["o'brien"]);
  });

  test('finds a user with a URL and no call, and a user whose URLs are deleted', async () => {
    const of = await fresh(stack);
    const issuer = await addApiKey(stack, of.account, { scopes: ['presign'] });
    await issue({ ...stack, apiKey: issuer }, { external_user: 'just issued' });
    await called(of, ['issued long ago']);
    expect(await names(of, 'issued')).toEqual(['issued long ago', 'just issued']);
  });

  test('finds sessions by a part of their names, newest first, and never those without a name', async () => {
    const of = await fresh(stack);
    const made = ['Night report', null, 'Report of May', 'chat'].map((name, at) => ({
      ...{ id: randomUUID(), accountId: of.account, name },
      createdAt: new Date(Date.UTC(2026, 0, 1 + at)),
    }));
    await stack.db.insert(sessions).values(made);
    expect(await find(of, 'report')).toEqual({
      data: [made[2], made[0]].map((each) => ({ kind: 'session', id: each?.id, name: each?.name })),
      complete: true,
    });
  });

  test('returns one kind if requested, and at most the limit of each kind', async () => {
    const of = await fresh(stack);
    await called(of, ['x1', 'x2', 'x3']);
    await stack.db
      .insert(sessions)
      .values({ id: randomUUID(), accountId: of.account, name: 'x of a session' });
    expect(await names(of, 'x', { kind: 'session' })).toEqual(['x of a session']);
    expect(await find(of, 'x', { kind: 'external_user', limit: '3' })).toEqual({
      data: ['x1', 'x2', 'x3'].map(user),
      complete: true,
    });
    const cut = await find(of, 'x', { limit: '2' });
    expect(cut.complete).toBe(false);
    expect(cut.data.map(({ name }) => name)).toEqual(['x1', 'x2', 'x of a session']);
  });

  test('finds user 9,999 of 10,000 by a part in the middle', async () => {
    const of = await fresh(stack);
    await calledByMany(stack, of, 'customer-', 10_000);
    expect(await find(of, 'omer-09999')).toEqual({ data: [user('customer-09999')], complete: true });
  });

  test('scans a bounded number of names, says so, and finds any user by the beginning of its name', async () => {
    const of = await fresh(stack);
    await calledByMany(stack, of, 'u', SEARCHED.users);
    await called(of, ['zoe of z', 'zoe']);
    expect(await find(of, 'zoe')).toEqual({ data: ['zoe', 'zoe of z'].map(user), complete: false });
    expect(await find(of, 'of z')).toEqual({ data: [], complete: false });
  });

  test('runs no further query after its caller has the answer', async () => {
    const of = await fresh(stack);
    const answered = deferred();
    const execute = stack.db.execute.bind(stack.db);
    const queries = vi.spyOn(stack.db, 'execute').mockImplementation((async (query: never) => {
      const rows = await execute(query);
      await answered.promise;
      return rows;
    }) as never);
    onTestFinished(() => queries.mockRestore());
    refused(await get(of, { contains: 'x' }), 'database_unavailable');
    const before = queries.mock.calls.length;
    answered.resolve();
    await new Promise(setImmediate);
    expect([before, queries.mock.calls.length]).toEqual([1, 1]);
  });

  test('finds nothing of another account', async () => {
    const [of, another] = [await fresh(stack), await fresh(stack)];
    await called(another, ['secret user']);
    await stack.db
      .insert(sessions)
      .values({ id: randomUUID(), accountId: another.account, name: 'secret session' });
    expect(await find(of, 'secret')).toEqual({ data: [], complete: true });
    expect(await names(another, 'secret')).toEqual(['secret user', 'secret session']);
  });

  test('needs the scope read and a text', async () => {
    const of = await fresh(stack);
    const issuer = await addApiKey(stack, of.account, { scopes: ['presign'] });
    refused(await get({ ...of, apiKey: issuer }, { contains: 'a' }), 'forbidden');
    refused(await get(of, {}), 'invalid_request', 'contains');
    refused(await get(of, { contains: '' }), 'invalid_request', 'contains');
    refused(await get(of, { contains: 'a\0b' }), 'invalid_request', 'contains');
    refused(await get(of, { contains: 'a'.repeat(256) }), 'invalid_request', 'contains');
    refused(await get(of, { contains: 'a', kind: 'budget' }), 'invalid_request', 'kind');
    refused(await get(of, { contains: 'a', limit: '101' }), 'invalid_request', 'limit');
  });
});

/** Its own tables sort as a database with the collation of a language does: `Acme-1` is between `acme-1` and `acme-2`. */
test('a user is found by the beginning of its name in the collation of a language, after names in another case', async () => {
  const own = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
  onTestFinished(() => own.close());
  for (const table of ['ledger', 'grants'])
    await own.db.execute(
      sql.raw(`alter table ${table} alter column external_user type text collate "und-x-icu"`),
    );
  const of = await fresh(own);
  await calledByMany(own, of, 'a', SEARCHED.users);
  await calledByMany(own, of, 'Zoe-', 1_000);
  await addToLedger(own, [row(of, { externalUser: 'zoe-z' })]);
  expect(await find(of, 'zoe-')).toMatchObject({ data: [user('zoe-z')], complete: false });
});
