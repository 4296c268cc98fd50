import { randomUUID } from 'node:crypto';
import { USAGE_DIMENSIONS, USAGE_SUMS, USAGE_TOP_MAX } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Random, seeded } from '../chaos/random.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { refused } from './ask.ts';
import {
  addToLedger,
  csv,
  fresh,
  get,
  type LedgerRow,
  parseCsv,
  type Query,
  type Reader,
  report,
  row,
} from './ask-usage.ts';
import { asText, expected } from './random-ledger.ts';
import { sumAll } from './sweeps.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {}, issuer: { usageMetadata: ['team'] } });
});
afterAll(() => stack.close());

const HOUR = 3_600_000;
const START = Date.parse('2026-01-30T00:00:00Z');
const DAYS = 4;
const ZONES = ['UTC', 'Asia/Kathmandu', 'America/New_York', 'Pacific/Kiritimati'];
const ids = (many: number) => Array.from({ length: many }, () => randomUUID());
const SESSIONS = ids(6);
const KEYS = ids(3);
const VIRTUAL_KEYS = ids(2);
const USERS = [null, ...Array.from({ length: 12 }, (_, n) => `user-${n}`)];

const oneOf = <T>(random: Random, values: readonly T[]) => values[random.int(0, values.length - 1)] as T;

/** Calls of few costs, so that many groups have the same one. */
const randomCalls = (of: Reader, random: Random): LedgerRow[] =>
  Array.from({ length: 300 }, () =>
    row(of, {
      sessionId: oneOf(random, SESSIONS),
      apiKeyId: oneOf(random, [null, ...KEYS]),
      virtualKeyId: oneOf(random, [null, ...VIRTUAL_KEYS]),
      provider: oneOf(random, ['openai', 'mcp']),
      model: oneOf(random, [null, 'm1', 'm2', 'm3']),
      server: oneOf(random, [null, 's1']),
      tool: oneOf(random, [null, 't1', 't2']),
      externalUser: oneOf(random, USERS),
      costMicrousd: oneOf(random, [null, 0, 10, 20]),
      inputTokens: oneOf(random, [null, 5]),
      outputTokens: null,
      failure: oneOf(random, [null, null, 'provider_error', 'holder_left']),
      status: null,
      totalMs: null,
      settledAt: new Date(START + random.int(0, DAYS * 24 * HOUR - 1)),
    }),
  );

/** A query of full hours, which kept sums answer as well. */
function randomQuery(random: Random, dimensions: readonly string[]): Query & { readonly group_by: string } {
  const hours = DAYS * 24;
  const from = random.int(0, hours - 1);
  const to = random.int(from + 1, hours);
  const by = dimensions.filter(() => random.int(0, 3) === 0);
  return {
    from: new Date(START + from * HOUR).toISOString(),
    to: new Date(START + to * HOUR).toISOString(),
    timezone: oneOf(random, ZONES),
    group_by: by.join() || oneOf(random, dimensions),
    ...(random.int(0, 3) === 0 && { provider: 'openai' }),
  };
}

const keyIn = (each: object, by: readonly string[]) =>
  JSON.stringify(by.map((name) => (each as Readonly<Record<string, unknown>>)[name]));
const more = (a = 0n, b = 0n) => (a === b ? 0 : a > b ? -1 : 1);

/** Asks for the groups that cost most, and adds the calls up one by one to compare. */
async function expectTop(
  of: Reader,
  rows: readonly LedgerRow[],
  query: Query & { group_by: string },
  top: number,
) {
  const by = query.group_by.split(',');
  // Groups of the same cost and calls are in the order of the whole report.
  const whole = await report(of, query);
  const place = new Map(whole.data.map((each, at) => [keyIn(each, by), at]));
  const groups = expected({ rows: [...rows], keyIds: [], sessionIds: [] }, query);
  const ranked = [...groups].sort(
    ([a, x], [b, y]) =>
      more(x['cost'], y['cost']) || more(x['calls'], y['calls']) || (place.get(a) ?? 0) - (place.get(b) ?? 0),
  );
  const wanted = ranked.slice(0, top).map(([key, sums]) => [key, asText(sums)]);
  const answer = await report(of, { ...query, top: String(top) });
  expect(
    answer.data.map((each) => [keyIn(each, by), asText(each)]),
    JSON.stringify({ ...query, top }),
  ).toEqual(wanted);
  expect([answer.groups, answer.next_cursor, answer.total]).toEqual([groups.size, null, whole.total]);
  const lines = parseCsv(await csv(of, { ...query, top: String(top) }));
  expect(lines[0]).toEqual([...by, ...USAGE_SUMS]);
  expect(lines.slice(1).map((cells) => cells.slice(by.length).join(' '))).toEqual(
    wanted.map(([, sums]) => sums),
  );
}

test.each([1, 2, 3, 4])(
  'the groups that cost most are those of the ledger, added call by call, and of its sums when the calls are deleted (seed %i)',
  async (seed) => {
    const random = seeded(seed);
    const of = await fresh(stack);
    const rows = randomCalls(of, random);
    await addToLedger(stack, rows);
    for (let i = 0; i < 10; i++)
      await expectTop(of, rows, randomQuery(random, USAGE_DIMENSIONS), random.int(1, 12));
    // In the middle of the calls, and behind them.
    await sumAll(stack, START + (DAYS / 2) * 24 * HOUR + random.int(0, 24) * HOUR);
    for (let i = 0; i < 10; i++)
      await expectTop(of, rows, randomQuery(random, USAGE_DIMENSIONS), random.int(1, 12));
    await sumAll(stack, START + (DAYS + 1) * 24 * HOUR);
    await stack.db.delete(ledger).where(eq(ledger.accountId, of.account));
    const kept = USAGE_DIMENSIONS.filter((name) => name !== 'session_id');
    for (let i = 0; i < 10; i++) await expectTop(of, rows, randomQuery(random, kept), random.int(1, 12));
  },
);

describe('of groups with the same cost', () => {
  /** A user's calls, which cost nothing, so many. */
  const callsOf = (of: Reader, user: string | null, calls: number, cost: number | null = null) =>
    Array.from({ length: calls }, () => row(of, { externalUser: user, costMicrousd: cost }));

  test('those of more calls are first, then the order of their names, those without a name last', async () => {
    const of = await fresh(stack);
    await addToLedger(stack, [
      ...callsOf(of, 'zoe', 3),
      ...callsOf(of, 'ada', 2, 0),
      ...callsOf(of, null, 2),
      ...callsOf(of, 'bob', 2),
      ...callsOf(of, 'dear', 1, 1),
    ]);
    const names = async (top: number) =>
      (await report(of, { group_by: 'external_user', top: String(top) })).data.map(
        (each) => each.external_user,
      );
    expect(await names(5)).toEqual(['dear', 'zoe', 'ada', 'bob', null]);
    for (const top of [1, 2, 3, 4]) expect(await names(top)).toEqual((await names(5)).slice(0, top));
  });

  test('refunds count against the cost of their group', async () => {
    const of = await fresh(stack);
    const refund = row(of, { externalUser: 'ada', costMicrousd: -90, uses: -1, outcome: 'refunded' });
    await addToLedger(stack, [...callsOf(of, 'ada', 1, 100), refund, ...callsOf(of, 'bob', 1, 20)]);
    const { data } = await report(of, { group_by: 'external_user', top: '2' });
    expect(data.map(({ external_user: user, cost }) => [user, cost])).toEqual([
      ['bob', 20],
      ['ada', 10],
    ]);
  });
});

test('values of metadata are ranked, too, and a limit below top is kept to', async () => {
  const of = await fresh(stack);
  const team = (name: string, costMicrousd: number) => row(of, { costMicrousd, tags: { team: name } });
  await addToLedger(stack, [team('red', 5), team('blue', 7), team('red', 5), team('green', 1)]);
  const query = { group_by: 'metadata.team', top: '2' };
  const answer = await report(of, query);
  expect(answer.data.map(({ metadata, cost }) => [metadata?.['team'], cost])).toEqual([
    ['red', 10],
    ['blue', 7],
  ]);
  expect([answer.groups, answer.total.cost]).toEqual([3, 18]);
  const one = await report(of, { ...query, limit: '1' });
  expect([one.data.length, one.groups, one.next_cursor]).toEqual([1, 3, null]);
});

test('a thousand groups of more are returned, and those of another account are no groups', async () => {
  const [of, other] = [await fresh(stack), await fresh(stack)];
  const USERS_OF_MANY = 1_234;
  await addToLedger(
    stack,
    Array.from({ length: USERS_OF_MANY }, (_, n) => row(of, { externalUser: `user-${n}`, costMicrousd: n })),
  );
  await addToLedger(stack, [row(other, { costMicrousd: 1_000_000 })]);
  const { data, groups, total } = await report(of, { group_by: 'external_user', top: String(USAGE_TOP_MAX) });
  expect(data.map(({ cost }) => cost)).toEqual(
    Array.from({ length: USAGE_TOP_MAX }, (_, at) => USERS_OF_MANY - 1 - at),
  );
  expect([groups, total.calls]).toEqual([USERS_OF_MANY, USERS_OF_MANY]);
});

test('a report says how many groups there are in all, on every page the same', async () => {
  const of = await fresh(stack);
  await addToLedger(
    stack,
    ['a', 'b', 'c'].map((externalUser) => row(of, { externalUser })),
  );
  const query = { from: '0', to: '2026-02-01', group_by: 'external_user', limit: '2' };
  const first = await report(of, query);
  const second = await report(of, { ...query, cursor: first.next_cursor ?? '' });
  expect([first.groups, second.groups, second.data.length, second.next_cursor]).toEqual([3, 3, 1, null]);
  expect((await report(of, {})).groups).toBe(1);
  expect((await report(await fresh(stack), { group_by: 'external_user' })).groups).toBe(0);
});

test.each([
  ['no group_by', { top: '5' }],
  ['0', { top: '0', group_by: 'external_user' }],
  ['too many', { top: String(USAGE_TOP_MAX + 1), group_by: 'external_user' }],
  ['no number', { top: 'five', group_by: 'external_user' }],
  ['a part of a number', { top: '1.5', group_by: 'external_user' }],
] as const)('top with %s is refused, and the refusal names top', async (_what, query) => {
  const of = await fresh(stack);
  for (const format of ['json', 'csv'] as const)
    refused(await get(of, { ...query, format }), 'invalid_request', 'top');
});

test('top with a cursor is refused, and the refusal names top', async () => {
  const of = await fresh(stack);
  await addToLedger(
    stack,
    ['a', 'b'].map((externalUser) => row(of, { externalUser })),
  );
  const { next_cursor: cursor } = await report(of, { group_by: 'external_user', limit: '1' });
  const query = { group_by: 'external_user', cursor: cursor ?? '' };
  expect((await get(of, query)).status).toBe(200);
  refused(await get(of, { ...query, top: '1' }), 'invalid_request', 'top');
});
