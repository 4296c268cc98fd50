import { DAY_STARTS, startOfDay } from '@presign/schema';
import { ledger, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { refused } from './ask.ts';
import { addToLedger, csv, fresh, get, type Reader, report, row } from './ask-usage.ts';
import { startSweeps } from './sweeps.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

/** A call of one microdollar at each of these moments. */
const callsAt = async (...moments: readonly string[]): Promise<Reader> => {
  const of = await fresh(stack);
  const rows = moments.map((moment) => row(of, { settledAt: new Date(moment), costMicrousd: 1 }));
  await addToLedger(stack, rows);
  return of;
};
async function summed(of: Reader): Promise<void> {
  const sweeps = await startSweeps(stack);
  await sweeps.sweep({ ledgerDays: 10_000, usageDays: 10_000 });
  await eventually(async () => {
    const [mark] = await stack.db.select().from(usageMarks).where(eq(usageMarks.accountId, of.account));
    return mark && mark.summedUntil > new Date('2026-06-01');
  });
  await sweeps.close();
}

describe('the days of a range', () => {
  test.each([
    ['UTC', '2026-01-31', '2026-01-31T00:00:00Z'],
    ['Europe/Berlin', '2026-01-31', '2026-01-30T23:00:00Z'],
    ['Europe/Berlin', '2026-07-31', '2026-07-30T22:00:00Z'],
    ['Asia/Kathmandu', '2026-01-31', '2026-01-30T18:15:00Z'],
    ['Pacific/Kiritimati', '2026-01-31', '2026-01-30T10:00:00Z'],
    ['America/New_York', '2026-03-08', '2026-03-08T05:00:00Z'],
    ['America/New_York', '2026-03-09', '2026-03-09T04:00:00Z'],
    // Clocks were put forward from midnight to 1, and back from midnight to 23.
    ['America/Santiago', '2025-09-07', '2025-09-07T04:00:00Z'],
    ['America/Santiago', '2025-04-06', '2025-04-06T04:00:00Z'],
    // The island had no 30 December.
    ['Pacific/Apia', '2011-12-31', '2011-12-30T10:00:00Z'],
  ])('begin in %s: %s', async (timezone, day, moment) => {
    const begin = Date.parse(moment);
    const of = await callsAt(...[begin - 1, begin].map((ms) => new Date(ms).toISOString()));
    const later = await report(of, {
      from: day,
      to: new Date(begin + 1).toISOString(),
      timezone,
      group_by: 'day',
    });
    expect(later).toMatchObject({ from: begin / 1000, total: { calls: 1 } });
    expect(later.data.map((each) => each.day)).toEqual([day]);
    const before = await report(of, { from: new Date(begin - 1).toISOString(), to: day, timezone });
    expect(before).toMatchObject({ to: begin / 1000, total: { calls: 1 } });
  });
});

describe('months in a time zone', () => {
  const MOMENTS = [
    // One month in UTC, two in Kolkata; the days between belong to one.
    ...['2026-01-31T18:29:59.999Z', '2026-01-31T18:30:00Z', '2026-02-01T00:00:00Z', '2026-02-10T12:00:00Z'],
    ...['2026-02-28T18:29:59Z', '2026-02-28T23:00:00Z', '2026-03-15T12:00:00Z'],
  ];
  const months = async (of: Reader, timezone: string) =>
    (await report(of, { from: '2026-01-01', to: '2026-05-01', timezone, group_by: 'month' })).data.map(
      ({ month, calls, cost }) => [month, calls, cost],
    );
  const IN_KOLKATA = [
    ['2026-01', 1, 1],
    ['2026-02', 4, 4],
    ['2026-03', 2, 2],
  ];

  test('are summed exactly, from the ledger and from daily sums', async () => {
    const of = await callsAt(...MOMENTS);
    expect(await months(of, 'Asia/Kolkata')).toEqual(IN_KOLKATA);
    await summed(of);
    expect(await months(of, 'Asia/Kolkata')).toEqual(IN_KOLKATA);
    expect(await months(of, 'UTC')).toEqual([
      ['2026-01', 2, 2],
      ['2026-02', 4, 4],
      ['2026-03', 1, 1],
    ]);
  });

  test.each(['day', 'month'])('read no call of the ledger once days are summed, by %s', async (unit) => {
    const zones = [
      'UTC',
      'Asia/Kolkata',
      'Asia/Kathmandu',
      'America/New_York',
      'Pacific/Kiritimati',
      'Europe/London',
    ];
    const of = await callsAt(
      ...MOMENTS,
      '2026-03-29T22:30:00Z',
      '2026-03-29T23:30:00Z',
      '2026-03-29T00:30:00Z',
    );
    const answers = () =>
      Promise.all(
        zones.map((timezone) =>
          csv(of, { from: '2026-01-01', to: '2026-05-01', timezone, group_by: `external_user,${unit}` }),
        ),
      );
    const before = await answers();
    await summed(of);
    await stack.db.delete(ledger).where(eq(ledger.accountId, of.account));
    await stack.db
      .update(usageMarks)
      .set({ keptFrom: new Date('2026-06-01') })
      .where(eq(usageMarks.accountId, of.account));
    expect(await answers()).toEqual(before);
    expect(new Set(before).size).toBeGreaterThan(1);
  });

  test('are read from the ledger for days that were summed before days had parts, and refused once those calls are deleted', async () => {
    const of = await callsAt(...MOMENTS);
    await summed(of);
    const own = eq(usageMarks.accountId, of.account);
    await stack.db
      .update(usageDays)
      .set({ pieces: [], running: [] })
      .where(eq(usageDays.accountId, of.account));
    await stack.db
      .update(usageMarks)
      .set({ dividedFrom: new Date('2026-06-01') })
      .where(own);
    expect(await months(of, 'Asia/Kolkata')).toEqual(IN_KOLKATA);
    await stack.db
      .update(usageMarks)
      .set({ keptFrom: new Date('2026-03-01') })
      .where(own);
    const asked = { from: '2026-01-01T00:00:00Z', to: '2026-05-01', group_by: 'month' };
    refused(await get(of, { ...asked, timezone: 'Asia/Kolkata' }), 'invalid_request', 'timezone');
    for (const timezone of ['UTC', 'Etc/UTC'])
      expect((await get(of, { ...asked, timezone })).status).toBe(200);
  });
});

test('in every zone begin where UTC days are divided', () => {
  const begins = new Set<number>();
  for (const zone of Intl.supportedValuesOf('timeZone'))
    for (const month of ['01', '04', '07', '10'])
      for (const year of [2020, 2026, 2036])
        begins.add((startOfDay(`${year}-${month}-15`, zone).getTime() / 60_000) % 1440);
  expect([...begins].toSorted((a, b) => a - b)).toEqual(DAY_STARTS);
});
