import { checkAlerts, readFigures } from '@presign/issuer';
import { keys } from '@presign/limits';
import { type AlertCondition, PARTITIONS } from '@presign/schema';
import { alerts } from '@presign/schema/alert-tables';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets } from '@presign/schema/tables';
import type { Database } from '@presign/service/database';
import { and, eq, inArray, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { ago, createAlert, evaluate, firingsOf, type Owner, ownerOf } from './alerts.ts';
import { issue, send } from './ask.ts';
import { addToLedger, row } from './ask-usage.ts';
import { type OwnIssuer, startOwnIssuer } from './own-issuer.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DOLLAR = 1_000_000;
/** No task of an issuer runs a second time, so only a test evaluates. */
const NEVER = { idleMs: 2 ** 31 - 1 };

let stack: Stack;
let upstream: Upstream;
let issuer: OwnIssuer;

beforeAll(async () => {
  upstream = await startUpstream();
  stack = await startStack({ providers: { openai: { base_url: upstream.url } }, issuer: NEVER });
  await stack.issuer.close();
  issuer = await startOwnIssuer(stack, NEVER);
});
afterAll(async () => {
  await issuer.close();
  await stack.close();
  await upstream.close();
});

const owner = async () => ({ ...(await ownerOf(stack)), issuerUrl: issuer.issuerUrl });
const silent = pino({ level: 'silent' });

/** Adds many calls, one every so many milliseconds before a moment. `failed`: in SQL, of the number `i` of the call. */
const addMany = (of: Owner, endMs: number, { calls, everyMs, failed }: Many) =>
  stack.db.execute(sql`insert into ledger (hold_id, account_id, session_id, grant_id, provider, uses, outcome, failure, status, started_at, settled_at)
    select gen_random_uuid(), ${of.account}, gen_random_uuid(), gen_random_uuid(), 'openai', 1, 'settled',
      case when ${sql.raw(failed)} then 'upstream_unreachable' end, case when ${sql.raw(failed)} then null else 200 end, at, at
    from (select i, ${new Date(endMs).toISOString()}::timestamptz - i * ${everyMs}::float8 * interval '1 ms' as at
      from generate_series(0, ${calls - 1}::int) as i) as each`);
type Many = { readonly calls: number; readonly everyMs: number; readonly failed: string };

const NONE = { budget: undefined, spend: undefined, spend_jump: undefined, errors: undefined };
const read = (
  db: Database,
  condition: Partial<AlertCondition>,
  of: Owner,
  nowMs: number,
  checkedMs: number,
) =>
  db.transaction((tx) =>
    readFigures(tx, { ...NONE, ...condition }, { accountId: of.account, nowMs, checkedMs }),
  );

describe('an alert for errors', () => {
  const condition = { errors: { percent: 5, calls: 20, minutes: 15, provider: undefined } };

  test('does not fire for a provider with 2 % random failures', async () => {
    const of = await owner();
    const end = Math.floor(Date.now() / HOUR) * HOUR;
    const hours = 4;
    const often = { errors: { ...condition.errors, minutes: 5 } };
    const failed = `('x' || substr(md5(i::text), 1, 7))::bit(28)::int % 100 < 2`;
    await addMany(of, end, { calls: hours * 6_000, everyMs: 600, failed });
    const held: number[] = [];
    for (let now = end - (hours - 1) * HOUR; now < end; now += 17_000) {
      const { past, present } = await read(stack.db, often, of, now, now - 30_000);
      for (const each of [...past, present]) if (each?.holds) held.push(each.value);
    }
    expect(held).toEqual([]);
    const { present } = await read(stack.db, often, of, end, end - 30_000);
    expect(present?.value).toBeGreaterThan(0);
  });

  test('skips a window of which it reads only the newest calls', async () => {
    const of = await owner();
    const now = Math.floor(Date.now() / HOUR) * HOUR - 1;
    // 12 to 27 minutes ago 25,000 calls settled, of which the last 2,000 failed: 8 percent.
    const busy = { errors: { percent: 50, calls: 20, minutes: 15, provider: undefined } };
    await addMany(of, now - 15 * MINUTE, { calls: 25_000, everyMs: 35, failed: 'i < 2000' });
    await addMany(of, now, { calls: 19_000, everyMs: 40, failed: 'false' });
    const { past, present } = await read(stack.db, busy, of, now, now - 50 * MINUTE);
    expect([past, present?.value]).toEqual([[], 0]);
  });

  test('evaluates each whole window of a pause', async () => {
    const of = await owner();
    const now = Math.floor(Date.now() / HOUR) * HOUR + 7 * MINUTE;
    await addMany(of, now, { calls: 120, everyMs: MINUTE, failed: 'i between 60 and 90' });
    const { past } = await read(stack.db, condition, of, now, now - HOUR);
    const minutesAgo = past.map(({ window }) => (now - window) / MINUTE);
    expect(minutesAgo).toEqual([67, 52, 37, 22]);
    expect(past.map(({ value }) => value > 0)).toEqual([true, false, false, false]);
  });
});

/** Moves all calls that settled to another time: to a stream that was empty, because times in a stream only rise. */
async function settledBefore(agoMs: number): Promise<void> {
  const { redis } = stack;
  const partitions = Array.from({ length: PARTITIONS }, (_, id) => id);
  const streams = await Promise.all(partitions.map((id) => redis.xrange(keys.usage(id), '-', '+')));
  const from = streams.findIndex((entries) => entries.length > 0);
  const to = streams.findIndex((entries) => entries.length === 0);
  for (const [i, [, fields]] of (streams[from] ?? []).entries())
    await redis.xadd(keys.usage(to), `${Date.now() - agoMs}-${i}`, ...fields);
  await redis.xtrim(keys.usage(from), 'MAXLEN', 0);
}

test('an alert for an hour fires for calls that waited three hours for the ledger, even if it was evaluated before they arrived', async () => {
  const of = await owner();
  const condition = { spend: { window: 'hour', amount: 1 } };
  const { id } = await createAlert(of, { condition });
  await evaluate(stack, id);
  await ago(stack, id, '5 hours');
  const { url } = await issue(of as Stack, { path: '/v1/models', method: 'GET' });
  await issuer.close();
  expect((await fetch(url)).status).toBe(200);
  const partitions = Array.from({ length: PARTITIONS }, (_, each) => each);
  await eventually(async () => {
    const lengths = await Promise.all(partitions.map((each) => stack.redis.xlen(keys.usage(each))));
    return lengths.some((length) => length > 0);
  });
  await settledBefore(3 * HOUR);
  await evaluate(stack, id);
  const [waiting] = await stack.db.select().from(alerts).where(eq(alerts.id, id));
  const reachedMs = Date.now() - (waiting?.checkedAt?.getTime() ?? 0);
  expect(Math.abs(reachedMs - 3 * HOUR)).toBeLessThan(HOUR / 2);
  issuer = await startOwnIssuer(stack, NEVER);
  await issuer.ledger.drainAll();
  // The call was free.
  await stack.db.update(ledger).set({ costMicrousd: 5 }).where(eq(ledger.accountId, of.account));
  await evaluate(stack, id);
  expect(await firingsOf({ ...of, issuerUrl: issuer.issuerUrl }, id)).toMatchObject([
    { resolved_at: expect.any(Number) },
  ]);
});

describe('an evaluation that takes too long', () => {
  /** Each evaluation of an alert of an account takes so long. */
  const slow = (account: string) =>
    stack.db.execute(
      sql.raw(`
      create or replace function slow() returns trigger language plpgsql as $$
        begin perform pg_sleep(0.2); return new; end $$;
      create trigger slow before update of checked_at on alerts for each row when (new.account_id = '${account}') execute function slow()`),
    );

  test('postpones all alerts of its account, and none of another account', async () => {
    const [of, other] = [await owner(), await owner()];
    const condition = { spend: { window: 'hour', amount: 1 } };
    const ids: string[] = [];
    for (let i = 0; i < 4; i++) ids.push((await createAlert(of, { condition })).id);
    const { id: foreign } = await createAlert(other, { condition });
    await slow(of.account);
    const due = (minutes: number) => sql`now() - ${minutes} * interval '1 minute'`;
    await stack.db.update(alerts).set({ dueAt: sql`now() + interval '1 day'` });
    await stack.db
      .update(alerts)
      .set({ dueAt: due(5) })
      .where(inArray(alerts.id, ids));
    await stack.db
      .update(alerts)
      .set({ dueAt: due(1) })
      .where(eq(alerts.id, foreign));
    const check = checkAlerts({ ...stack, log: silent });
    expect(await check()).toBe(true);
    const rests = await stack.db
      .select({ id: alerts.id, checkedAt: alerts.checkedAt, dueAt: alerts.dueAt })
      .from(alerts)
      .where(inArray(alerts.id, ids));
    const [evaluated] = rests.filter(({ checkedAt }) => checkedAt !== null);
    const least = (evaluated?.checkedAt?.getTime() ?? 0) + 20 * 200;
    for (const { dueAt } of rests) expect(dueAt.getTime()).toBeGreaterThan(least);
    await check();
    const [next] = await stack.db.select().from(alerts).where(eq(alerts.id, foreign));
    expect(next?.checkedAt).not.toBeNull();
    await stack.db.execute(sql`drop trigger slow on alerts`);
  });
});

test('the log names an alert that cannot be evaluated, and its account', async () => {
  const of = await owner();
  const { id } = await createAlert(of, { condition: { spend: { window: 'hour', amount: 1 } } });
  await stack.db
    .update(alerts)
    .set({ condition: {} as never, dueAt: new Date(0) })
    .where(eq(alerts.id, id));
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  await expect(checkAlerts({ ...stack, log })()).rejects.toThrow('without a condition');
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { msg: 'alert put off', alert: id, account: of.account, message: 'an alert without a condition' },
  ]);
});

test('an alert for a budget has the present window, after a pause with more windows than it reads', async () => {
  const of = await owner();
  const sent = await send(of, {
    path: '/v1/budgets',
    body: { scope: { account: true }, max_uses: 4, window: 'hour' },
  });
  const { id: budget } = JSON.parse(sent.text) as { id: string };
  const { url } = await issue(of as Stack, { path: '/v1/models', method: 'GET' });
  expect((await fetch(url)).status).toBe(200);
  await issuer.ledger.drainAll();
  const own = and(eq(budgets.sharedId, budget), sql`now() between ${budgets.startsAt} and ${budgets.endsAt}`);
  const [present] = await stack.db.update(budgets).set({ used: 3 }).where(own).returning();
  expect(present).toBeDefined();
  for (let back = 1; back <= 40; back++)
    await stack.db.insert(budgets).values({
      ...(present as NonNullable<typeof present>),
      id: crypto.randomUUID(),
      used: 0,
      startsAt: new Date((present?.startsAt?.getTime() ?? 0) - back * HOUR),
      endsAt: new Date((present?.endsAt?.getTime() ?? 0) - back * HOUR),
    });
  const now = Date.now();
  const { past, present: reading } = await read(
    stack.db,
    { budget: { budget, percent: 50 } },
    of,
    now,
    now - 40 * HOUR,
  );
  expect(reading).toMatchObject({ value: 75, startsAt: present?.startsAt });
  expect(past.at(-1)?.endsAt).toEqual(present?.startsAt);
});

test('an alert for a jump compares an hour with the same hour in its time zone, also after a clock change', async () => {
  const of = await owner();
  const at = (time: string) => new Date(time);
  // Berlin's clocks went forward on 29 March 2026.
  for (const day of [24, 25, 26, 27, 28])
    await addToLedger(of, [
      row(of, { settledAt: at(`2026-03-${day}T09:30:00Z`), costMicrousd: 7 * DOLLAR }),
      row(of, { settledAt: at(`2026-03-${day}T08:30:00Z`), costMicrousd: 900 * DOLLAR }),
    ]);
  const jump = { window: 'hour', time_zone: 'Europe/Berlin', factor: 2, at_least: 1 } as const;
  const now = at('2026-03-30T08:45:00Z').getTime();
  const { present } = await read(stack.db, { spend_jump: jump }, of, now, now - MINUTE);
  expect(present?.threshold).toBe(10 * DOLLAR);
});
