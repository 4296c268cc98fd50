import { randomBytes, randomUUID } from 'node:crypto';
import { addEnded, keys } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { ledger, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import { and, eq, sql } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seeded } from '../chaos/random.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { csv, fresh, type Reader, report, row } from './ask-usage.ts';
import { randomLedger, randomQuery } from './random-ledger.ts';
import { sumAll } from './sweeps.ts';

const HOUR_MS = 3_600_000;
let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const sumAt = (ms: number) => sumAll(stack, ms);
const markOf = async ({ account }: Reader) =>
  (await stack.db.select().from(usageMarks).where(eq(usageMarks.accountId, account)))[0]?.summedUntil;

test.each(thorough ? [1, 2, 3, 4, 5, 6] : [1])(
  'reports are the same wherever the sums end, at any hour of any day (seed %i)',
  async (seed) => {
    const random = seeded(seed);
    const of = await fresh(stack);
    const made = await randomLedger(stack, of, random);
    const queries = Array.from({ length: 24 }, () => randomQuery(random, made));
    const answers = async () => {
      const all: string[] = [];
      for (const query of queries) all.push(await csv(of, query));
      return all;
    };
    const before = await answers();
    const start = Date.parse('2026-01-29T20:00:00Z');
    for (let hour = 0; hour < 5 * 24; hour += random.int(1, thorough ? 3 : 12)) {
      await sumAt(start + hour * HOUR_MS + 59 * 60_000);
      expect(await markOf(of)).toEqual(new Date(start + (hour - 1) * HOUR_MS));
      expect(await answers(), `summed until hour ${hour}`).toEqual(before);
    }
  },
);

test('calls of the last hour are read from the ledger, and earlier calls from sums', async () => {
  const of = await fresh(stack);
  const now = Date.now();
  const calls = Array.from({ length: 60 }, (_, i) => row(of, { settledAt: new Date(now - i * 10 * 60_000) }));
  await stack.db.insert(ledger).values(calls);
  await sumAt(now);
  const mark = (await markOf(of)) ?? new Date(0);
  expect(mark.getTime()).toBeGreaterThan(now - 2 * HOUR_MS - 1);
  await stack.db
    .delete(ledger)
    .where(and(eq(ledger.accountId, of.account), sql`${ledger.settledAt} < ${mark.toISOString()}`));
  expect((await report(of, { group_by: 'day' })).total).toMatchObject({ calls: 60, cost: 600 });
});

test('the sums of many accounts advance together, and those of a busy account in parts', async () => {
  const many = await Promise.all(Array.from({ length: 60 }, () => fresh(stack)));
  const settledAt = new Date('2026-02-20T12:00:00Z');
  await stack.db
    .insert(ledger)
    .values(many.flatMap((of) => [row(of, { settledAt }), row(of, { settledAt })]));
  const busy = many[7] as Reader;
  for (let i = 0; i < 9; i++)
    await stack.db.execute(sql`insert into ledger (hold_id, account_id, session_id, grant_id, provider, uses, outcome, started_at, settled_at)
      select gen_random_uuid(), ${busy.account}, gen_random_uuid(), gen_random_uuid(), 'openai', 1, 'settled', at, at
      from (select '2026-02-21T00:00:00Z'::timestamptz + n * interval '1 microsecond' as at from generate_series(1, 5000) n) as each`);
  await sumAt(Date.parse('2026-02-23T00:00:00Z'));
  const sums = await stack.db
    .select({ account: usageDays.accountId, calls: sql<number>`sum(${usageDays.calls})::int` })
    .from(usageDays)
    .groupBy(usageDays.accountId);
  const callsOf = new Map(sums.map(({ account, calls }) => [account, calls]));
  for (const of of many) expect(callsOf.get(of.account)).toBe(of === busy ? 45_002 : 2);
});

test('an MCP call that ends after it was summed moves to its outcome once, while other calls arrive late', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-03-01T12:00:00Z');
  const ids = Array.from({ length: PARTITIONS * 2 }, () => randomBytes(16).toString('hex'));
  await stack.db
    .insert(ledger)
    .values(ids.map((holdId, i) => row(of, { holdId, settledAt, provider: 'mcp', server: `s${i % 3}` })));
  await sumAt(Date.parse('2026-03-01T15:00:00Z'));
  const day = { from: '2026-03-01', to: '2026-03-02', group_by: 'outcome' };
  expect((await report(of, day)).data).toMatchObject([{ outcome: 'under_way', calls: ids.length }]);
  const ends: object[] = [];

  const grant = randomUUID();
  const record = { acc: of.account, ses: randomUUID(), grt: grant, prv: 'openai', mod: 'm', beg: 0 };
  for (const [i, chg] of ids.entries()) {
    const late = { hold: randomBytes(16).toString('hex'), grant, budgets: randomUUID(), uses: 1, cost: 10 };
    const entry = { ...late, outcome: 'settled', record: JSON.stringify(record) };
    const id = `${settledAt.getTime()}-${i + 1}`;
    await stack.redis.xadd(keys.usage(i % PARTITIONS), id, ...Object.entries(entry).flat());
    const [sta, cod] = i % 4 === 0 ? [502, 'provider_error'] : [200];
    ends.push({ chg, sta, cod, fby: 5, tot: 9, own: 1 });
  }
  for (const [i, end] of ends.entries())
    for (const both of [
      [end, ends[(i + 7) % ends.length]],
      [end, end],
    ])
      await addEnded(stack.redis, i % PARTITIONS, JSON.stringify(both));
  await Promise.all([stack.issuer.ledger.drainAll(), stack.issuer.ledger.drainAll()]);
  await stack.issuer.ledger.drainAll();
  const calls = (outcome: string) => expect.objectContaining({ outcome, calls: expect.any(Number) });
  const { data, total } = await report(of, day);
  expect(data).toEqual([calls('passed'), calls('provider_error')]);
  expect(total).toMatchObject({ calls: 2 * ids.length, uses: 2 * ids.length });
  expect(data.map((each) => each.calls)).toEqual([ids.length * 1.75, ids.length * 0.25]);
});
