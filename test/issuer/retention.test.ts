import { randomBytes, randomUUID } from 'node:crypto';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { keys } from '@presign/limits';
import { archiveParts, callHours, ledger, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import { grants } from '@presign/schema/tables';
import { pendingUsage } from '@presign/schema/webhook-tables';
import { and, eq, sql } from 'drizzle-orm';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { seeded } from '../chaos/random.ts';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { thorough } from '../harness/thorough.ts';
import { canMount, makeSmallDisk } from '../outages/small-disk.ts';
import { refused } from './ask.ts';
import { addToLedger, csv, fresh, get, type Query, type Reader, report, row } from './ask-usage.ts';
import { randomLedger, randomQuery } from './random-ledger.ts';
import { rowsIn, type Sweeps, startSweeps } from './sweeps.ts';

const DAY_MS = 86_400_000;
let stack: Stack;
let sweeps: Sweeps;
const sweep: Sweeps['sweep'] = (...of) => sweeps.sweep(...of);

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());
beforeEach(async () => {
  sweeps = await startSweeps(stack);
});
afterEach(() => sweeps.close());

async function sweepCalls(of: Reader, ledgerDays: number): Promise<void> {
  await sweep({ ledgerDays });
  const cutoff = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS - ledgerDays * DAY_MS);
  const old = and(eq(ledger.accountId, of.account), sql`${ledger.settledAt} < ${cutoff.toISOString()}`);
  await eventually(async () => (await stack.db.$count(ledger, old)) === 0);
}

/** Lets an issuer sum all days. */
async function sumDays(of: Reader): Promise<void> {
  await sweep({});
  const mark = eq(usageMarks.accountId, of.account);
  await eventually(async () => (await stack.db.$count(usageMarks, mark)) === 1);
}
async function callsInDays(of: Reader): Promise<number> {
  const calls = sql<number>`coalesce(sum(${usageDays.calls}), 0)::int`;
  const [row] = await stack.db.select({ calls }).from(usageDays).where(eq(usageDays.accountId, of.account));
  return row?.calls ?? 0;
}

test.each(thorough ? [1, 2, 3, 4, 5, 6] : [1])(
  'reports of whole days are the same after calls and URLs are deleted, and other reports say why not (seed %i)',
  async (seed) => {
    const random = seeded(seed);
    const of = await fresh(stack);
    const made = await randomLedger(stack, of, random);
    const days = Math.floor((Date.now() - Date.parse('2026-02-01T00:00:00Z')) / DAY_MS);
    const midnight = (time = '', round = Math.floor) =>
      new Date(round(Date.parse(time) / DAY_MS) * DAY_MS).toISOString();
    const queries = Array.from({ length: 24 }, () => randomQuery(random, made));
    const whole = queries.map(
      ({ session_id: _, timezone: _zone, group_by: by, ...query }): Query => ({
        ...query,
        ...{ from: midnight(query.from), to: midnight(query.to, Math.ceil) },
        ...(by && by !== 'session_id'
          ? { group_by: by.replace(/(^|,)session_id/, '').replace(/^,/, '') }
          : {}),
      }),
    );
    const before = await Promise.all([...whole, ...queries].map((query) => csv(of, query)));
    const answers = () => Promise.all([...whole, ...queries].map((query) => csv(of, query)));

    // With sums of all days, and all calls.
    await sumDays(of);
    const calls = made.rows.filter(({ outcome }) => outcome !== 'refunded');
    expect(await callsInDays(of)).toBe(calls.length);
    expect(await answers()).toEqual(before);

    await sweepCalls(of, days);
    await sweep({ grantDays: 2 });
    const ofAccount = eq(grants.accountId, of.account);
    await eventually(async () => (await stack.db.$count(grants, ofAccount)) === 0);
    expect(await callsInDays(of)).toBe(calls.length);
    for (const [i, query] of whole.entries())
      expect(await csv(of, query), JSON.stringify(query)).toBe(before[i]);
    for (const [i, query] of queries.entries()) {
      const sent = await get(of, { ...query, format: 'csv' });
      if (sent.status === 200) expect(sent.text, JSON.stringify(query)).toBe(before[whole.length + i]);
      else expect([sent.status, sent.text]).toEqual([400, expect.stringContaining('kept as sums by day')]);
    }
  },
);

test('a report by parts of an hour, sessions or requests is refused for days with sums only', async () => {
  const of = await fresh(stack);
  const sessionId = randomUUID();
  const old = row(of, { sessionId, settledAt: new Date('2026-01-01T12:00:00Z') });
  await stack.db.insert(ledger).values([old, row(of, { settledAt: new Date() })]);
  await sweepCalls(of, 32);
  const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-03T00:00:00Z' };
  for (const [param, query] of [
    ['from', { ...range, from: '2026-01-01T12:00:00.001Z' }],
    ['to', { ...range, to: '2026-01-01T12:20:00Z' }],
    ['session_id', { ...range, session_id: sessionId }],
    ['request_id', { ...range, request_id: randomUUID() }],
    ['group_by', { ...range, group_by: 'session_id' }],
  ] as const)
    expect(refused(await get(of, query), 'invalid_request', param)).toContain(
      'are kept as sums by day (UTC)',
    );
  const yesterday = new Date(Date.now() - DAY_MS).toISOString();
  for (const query of [range, { from: '0' }, { from: yesterday, group_by: 'session_id' }])
    expect((await get(of, query)).status).toBe(200);
  for (const [from, to, calls] of [
    ['00:00', '12:00', 0],
    ['12:00', '13:00', 1],
    ['11:15', '18:15', 1],
    ['13:00', '18:30', 0],
  ])
    expect(
      (await report(of, { from: `2026-01-01T${from}:00Z`, to: `2026-01-01T${to}:00Z` })).total,
    ).toMatchObject({ calls });
});

/** A call in a usage stream, as `settle` leaves it. */
function addEntry(of: Reader, partition: number, id: string, hold: string) {
  const record = { acc: of.account, ses: randomUUID(), grt: randomUUID(), prv: 'openai', mod: 'm', beg: 0 };
  const entry = { hold, grant: record.grt, budgets: randomUUID(), uses: 1, cost: 10, outcome: 'settled' };
  const fields = { ...entry, record: JSON.stringify(record) };
  return stack.redis.xadd(keys.usage(partition), id, ...Object.entries(fields).flat());
}

test('calls that reach the ledger while their days are summed count once', async () => {
  const arriving = thorough ? 320 : 64;
  const accounts = await Promise.all(Array.from({ length: thorough ? 8 : 2 }, () => fresh(stack)));
  const calls = accounts.flatMap((of) =>
    Array.from({ length: 200 }, (_, i) => row(of, { settledAt: new Date(Date.UTC(2026, 0, 1, i % 24)) })),
  );
  await addToLedger(stack, calls);
  const began = Date.UTC(2025, 11, 30);
  for (let i = 0; i < accounts.length * arriving; i++) {
    const of = accounts[i % accounts.length] as Reader;
    await addEntry(of, i % 64, `${began + i * 60_000}-0`, randomBytes(16).toString('hex'));
  }
  await Promise.all([sweep({}), sweep({}), stack.issuer.ledger.drainAll()]);
  for (const of of accounts) {
    const own = eq(ledger.accountId, of.account);
    await eventually(async () => (await stack.db.$count(ledger, own)) === 200 + arriving);
    await eventually(async () => (await callsInDays(of)) >= 200 + arriving);
    expect(await callsInDays(of)).toBe(200 + arriving);
  }
});

test('a call that reaches the ledger after its day was summed counts once, even if it arrives twice', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  await stack.db.insert(ledger).values(row(of, { settledAt, model: 'm' }));
  await sumDays(of);
  const hold = randomBytes(16).toString('hex');
  for (const i of [1, 2]) await addEntry(of, 63, `${settledAt.getTime()}-${i}`, hold);
  await stack.issuer.ledger.drainAll();
  expect(await callsInDays(of)).toBe(2);
  for (const query of [
    { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' },
    { from: '2026-01-01T12:00:00Z', to: '2026-01-01T12:00:01Z' },
  ])
    expect(JSON.parse((await get(of, query)).text)).toMatchObject({ total: { calls: 2, cost: 20 } });
  const ofHour = await stack.db.select().from(callHours).where(eq(callHours.accountId, of.account));
  expect(ofHour.map(({ calls }) => calls)).toEqual([1]);
});

test('sums are built in parts for a day with many calls, and for many calls settled at one moment', async () => {
  const of = await fresh(stack);
  const at = (i: number) => new Date(Date.parse('2026-01-01T12:00:00Z') + (i < 25_000 ? 0 : i));
  const ofAccount = { account_id: of.account, session: randomUUID(), grant: randomUUID() };
  for (let i = 0; i < 45_000; i += 5_000) {
    const ids = Array.from({ length: 5_000 }, (_, j) => ({ id: randomUUID(), at: at(i + j).toISOString() }));
    await stack.db.execute(sql`insert into ledger (hold_id, account_id, session_id, grant_id, provider, uses, outcome,
        started_at, settled_at)
      select id, ${ofAccount.account_id}, ${ofAccount.session}, ${ofAccount.grant}, 'openai', 1, 'settled', at, at
      from json_to_recordset(${JSON.stringify(ids)}::json) as each(id uuid, at timestamptz)`);
  }
  await sumDays(of);
  await eventually(async () => (await callsInDays(of)) >= 45_000);
  const query = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
  expect(JSON.parse((await get(of, query)).text)).toMatchObject({ total: { calls: 45_000 } });
});

test('the archive has the price lines of a call as they were recorded', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const lines = [
    ['input_tokens', 1_200, 150_000],
    ['other', 1, -3],
  ] as const;
  const [priced, empty, old] = [row(of, { priceLines: lines }), row(of, { priceLines: [] }), row(of)];
  await stack.db.insert(ledger).values([priced, empty, old].map((each) => ({ ...each, settledAt })));
  await sweepCalls(of, 32);
  const found = await eventually(async () => {
    const own = (await sweeps.archived('ledger')).filter((each) => each['account_id'] === of.account);
    return own.length === 3 && new Map(own.map((each) => [each['hold_id'], each['price_lines']]));
  });
  expect(JSON.parse(found.get(priced.holdId) ?? '')).toEqual(lines);
  expect([found.get(empty.holdId), found.get(old.holdId)]).toEqual(['[]', '']);
});

test.runIf(thorough)('two issuers delete each call once, and archive it completely', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const texts = [null, '', 'a"b,c', 'line\r\nline', '=1+1'];
  const rows = Array.from({ length: 11_000 }, (_, i) =>
    row(of, { settledAt, model: texts[i % texts.length] ?? null, costMicrousd: i % 7 === 0 ? null : i }),
  );
  await addToLedger(stack, rows);
  const question = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z', group_by: 'model,day' };
  const before = await csv(of, question);
  await Promise.all([sweep({ ledgerDays: 32 }), sweep({ ledgerDays: 32 })]);
  const ofAccount = eq(ledger.accountId, of.account);
  await eventually(async () => (await stack.db.$count(ledger, ofAccount)) === 0);
  expect(await csv(of, question)).toBe(before);
  const found = (await sweeps.archived('ledger')).filter((each) => each['account_id'] === of.account);
  expect(found).toHaveLength(rows.length);
  const byId = new Map(found.map((each) => [each['hold_id'], each]));
  for (const { holdId, model, costMicrousd } of rows)
    expect(byId.get(holdId)).toMatchObject({
      model: model ?? '',
      cost_microusd: costMicrousd === null ? '' : String(costMicrousd),
    });
  const [name = ''] = await readdir(join(sweeps.folder, 'ledger'));
  expect((await stat(join(sweeps.folder, 'ledger', name))).mode & 0o777).toBe(0o600);
});

test('calls that cannot be archived are kept in Postgres, and no later calls are deleted', async () => {
  await stack.db.transaction(async (tx) => {
    // The calls of the tests before: a busy machine may take longer than a statement of a service may.
    await tx.execute(sql`set local statement_timeout = '60s'`);
    await tx.delete(ledger);
  });
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const rows = Array.from({ length: 6_000 }, () => row(of, { settledAt }));
  await addToLedger(stack, rows);
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const file = join(sweeps.folder, 'file');
  await writeFile(file, '');
  const fail = async () => {
    const seen = lines.length;
    const close = await sweep({ ledgerDays: 32, archive: { folder: file } }, { log });
    await eventually(async () =>
      lines.slice(seen).some((line) => line.includes('old calls are not summed and deleted')),
    );
    await close();
  };
  const left = () => stack.db.$count(ledger, eq(ledger.accountId, of.account));
  await fail();
  expect(await left()).toBe(1_000);
  expect(await stack.db.$count(archiveParts)).toBe(1);
  await fail();
  expect(await left()).toBe(1_000);
  // The sums stand, and the report reads them with the calls of no day twice.
  const range = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
  expect(JSON.parse((await get(of, range)).text)).toMatchObject({ total: { calls: 6_000 } });

  await sweepCalls(of, 32);
  const ids = (await sweeps.archived('ledger')).map((each) => each['hold_id']);
  expect(ids.sort()).toEqual(rows.map(({ holdId }) => holdId).sort());
});

test.skipIf(!canMount)('an archive with a full disk gets every call once it has space', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const rows = Array.from({ length: 800 }, () => row(of, { settledAt }));
  await stack.db.insert(ledger).values(rows);
  const disk = makeSmallDisk(1);
  disk.fill();
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(line) });
  const archive = { folder: disk.folder };
  const close = await sweep({ ledgerDays: 32, archive }, { log });
  await eventually(async () => lines.some((line) => line.includes('ENOSPC')));
  await close();
  expect(await stack.db.$count(archiveParts)).toBeGreaterThan(0);
  disk.free();
  await sweep({ ledgerDays: 32, archive });
  await eventually(async () => (await stack.db.$count(archiveParts)) === 0);
  const names = await readdir(join(disk.folder, 'ledger'));
  const files = await Promise.all(names.map((name) => readFile(join(disk.folder, 'ledger', name))));
  const archived = files.flatMap(rowsIn).map((each) => each['hold_id']);
  const ids = new Set(rows.map(({ holdId }) => holdId));
  expect(archived.filter((id) => ids.has(id ?? '')).sort()).toEqual([...ids].sort());
  disk.remove();
});

test('a call that a pending webhook event needs is kept', async () => {
  const of = await fresh(stack);
  const settledAt = new Date('2026-01-01T12:00:00Z');
  const [waits, other] = [row(of, { settledAt }), row(of, { settledAt })];
  await stack.db.insert(ledger).values([waits, other]);
  await stack.db.insert(pendingUsage).values({ holdId: waits.holdId, accountId: of.account });
  await sweep({ ledgerDays: 32 });
  const ids = async () =>
    (await stack.db.select().from(ledger).where(eq(ledger.accountId, of.account))).map((each) => each.holdId);
  await eventually(async () => (await ids()).length === 1);
  expect(await ids()).toEqual([waits.holdId]);
});
