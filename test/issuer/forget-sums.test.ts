import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readRetention } from '@presign/issuer';
import { ledger, usageDays } from '@presign/schema/ledger-tables';
import { and, eq, lt } from 'drizzle-orm';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { refused } from './ask.ts';
import { addToLedger, fresh, get, type Reader, row } from './ask-usage.ts';
import { type Sweeps, startSweeps } from './sweeps.ts';

const DAY_MS = 86_400_000;
const daysAgo = (days: number) => new Date((Math.floor(Date.now() / DAY_MS) - days) * DAY_MS);
const dayOf = (date: Date) => date.toISOString().slice(0, 10);
let stack: Stack;
let sweeps: Sweeps;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());
beforeEach(async () => {
  sweeps = await startSweeps(stack);
});
afterEach(() => sweeps.close());

/** Adds calls of that many users, so many days ago. */
async function addCalls(of: Reader, users: number, days: number): Promise<void> {
  const settledAt = new Date(daysAgo(days).getTime() + DAY_MS / 2);
  const rows = Array.from({ length: users }, (_, i) => row(of, { settledAt, externalUser: `user-${i}` }));
  await addToLedger(stack, rows);
}
const sumsBefore = (of: Reader, days: number) =>
  stack.db.$count(
    usageDays,
    and(eq(usageDays.accountId, of.account), lt(usageDays.day, dayOf(daysAgo(days)))),
  );
const callsLeft = (of: Reader) => stack.db.$count(ledger, eq(ledger.accountId, of.account));

test('old sums are deleted in steps and archived, and reports that need them are refused', async () => {
  const of = await fresh(stack);
  const other = await fresh(stack);
  await addCalls(of, 5_100, 61);
  await addCalls(of, 3, 60);
  await addCalls(other, 2, 40);
  await sweeps.sweep({ ledgerDays: 32 });
  await eventually(async () => (await callsLeft(of)) + (await callsLeft(other)) === 0);
  expect(await sumsBefore(of, 60)).toBe(5_100);

  await sweeps.sweep({ ledgerDays: 32, usageDays: 60 });
  await eventually(async () => (await sumsBefore(of, 60)) === 0);
  const archived = (await sweeps.archived('usage_days')).filter((each) => each['account_id'] === of.account);
  expect(new Set(archived.map((each) => each['external_user'])).size).toBe(5_100);
  expect(archived).toHaveLength(5_100);
  expect(archived[0]).toMatchObject({ calls: '1', cost_microusd: '10', day: dayOf(daysAgo(61)) });

  const first = daysAgo(60).toISOString();
  expect(JSON.parse((await get(of, { from: first })).text)).toMatchObject({ total: { calls: 3, cost: 30 } });
  for (const from of ['0', daysAgo(61).toISOString()])
    expect(refused(await get(of, { from }), 'invalid_request', 'from')).toContain(
      `calls before ${dayOf(daysAgo(60))} (UTC) and their sums are deleted`,
    );
  expect(JSON.parse((await get(other, { from: '0' })).text)).toMatchObject({ total: { calls: 2 } });
});

test('sums are kept as long as calls of their days are kept', async () => {
  const of = await fresh(stack);
  await addCalls(of, 2, 90);
  await sweeps.sweep({});
  await eventually(async () => (await sumsBefore(of, 60)) === 2);
  const stop = await sweeps.sweep({ usageDays: 60 });
  await stop();
  expect([await sumsBefore(of, 60), await callsLeft(of)]).toEqual([2, 2]);
  expect(JSON.parse((await get(of, { from: '0' })).text)).toMatchObject({ total: { calls: 2 } });
});

describe('variables', () => {
  const problem = (env: Record<string, string>) => () => readRetention(env);
  const s3 = { ARCHIVE_S3: 's3://bucket/a/b', AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };

  test('sums may not be kept for fewer days than calls', () => {
    const wrong = /^USAGE_KEPT_DAYS is less than LEDGER_KEPT_DAYS: /;
    expect(problem({ USAGE_KEPT_DAYS: '399' })).toThrow(wrong);
    expect(problem({ LEDGER_KEPT_DAYS: '0', USAGE_KEPT_DAYS: '1000' })).toThrow(wrong);
    expect(readRetention({ USAGE_KEPT_DAYS: '400' }).usageDays).toBe(400);
    expect(readRetention({}).usageDays).toBe(0);
  });

  test('a bucket needs a key, which may be in files, and excludes a folder', () => {
    expect(problem({ ...s3, ARCHIVE_FOLDER: '/a' })).toThrow(/^ARCHIVE_S3 and ARCHIVE_FOLDER are both set: /);
    expect(problem({ ARCHIVE_S3: 's3://bucket' })).toThrow(/^AWS_ACCESS_KEY_ID is missing: /);
    expect(problem({ ...s3, AWS_SECRET_ACCESS_KEY: '' })).toThrow(/^AWS_SECRET_ACCESS_KEY is missing: /);
    const file = join(mkdtempSync(join(tmpdir(), 'presign-')), 'key');
    writeFileSync(file, 'from-a-file\n');
    const { AWS_SECRET_ACCESS_KEY: _, ...rest } = s3;
    expect(readRetention({ ...rest, AWS_SECRET_ACCESS_KEY_FILE: file }).archive).toEqual({
      s3: {
        ...{ bucket: 'bucket', prefix: 'a/b/', endpoint: undefined, region: 'us-east-1' },
        credentials: { accessKeyId: 'id', secretAccessKey: 'from-a-file' },
      },
    });
  });

  test('the variables of AWS are not read without a bucket', () => {
    expect(
      readRetention({ AWS_REGION: 'NOT A REGION', AWS_ACCESS_KEY_ID: 'two words' }).archive,
    ).toBeUndefined();
  });
});
