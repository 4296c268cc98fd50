import { randomUUID } from 'node:crypto';
import type { AccountUsageAnswer } from '@presign/schema';
import { usageMarks } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addApiKey } from './accounts.ts';
import { least, refused, send } from './ask.ts';
import { addToLedger, fresh, type Reader, row } from './ask-usage.ts';
import { sumAll } from './sweeps.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

/** A moment of the month that is some months from this one, in UTC. */
function inMonth(plus: number, day = 1, hour = 0): Date {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + plus, day, hour));
}

async function usageOf(id: string): Promise<AccountUsageAnswer> {
  const sent = await send(stack, { method: 'GET', path: `/v1/accounts/${id}/usage` });
  expect(sent.status, sent.text).toBe(200);
  return JSON.parse(sent.text) as AccountUsageAnswer;
}

/** Two calls of this month, three of the month before, and one of the month before that. */
const calls = (of: Reader) =>
  [
    [inMonth(0), 5],
    [new Date(inMonth(0).getTime() + 1), 7],
    [inMonth(-1), 11],
    [inMonth(-1, 14, 13), 13],
    [new Date(inMonth(0).getTime() - 1), 17],
    [new Date(inMonth(-1).getTime() - 1), 1_000],
  ].map(([settledAt, costMicrousd]) =>
    row(of, { settledAt: settledAt as Date, costMicrousd: costMicrousd as number }),
  );

const MONTHS = [
  { calls: 2, cost: 12 },
  { calls: 3, cost: 41 },
] as const;

test('an operator sees the monthly sums of an account, whether they are stored by call or by day', async () => {
  const of = await fresh(stack);
  const other = await fresh(stack);
  await addToLedger(stack, [...calls(of), row(other, { settledAt: inMonth(0), costMicrousd: 99 })]);
  for (const summed of [false, true]) {
    if (summed) await sumAll(stack, Date.now() + 3 * 3_600_000);
    const usage = await usageOf(of.account);
    expect(usage.this_month, String(summed)).toMatchObject(MONTHS[0]);
    expect(usage.last_month, String(summed)).toMatchObject(MONTHS[1]);
    expect(usage.last_month?.to).toBe(usage.this_month.from);
    expect(usage.last_call_at).toBe(inMonth(0).getTime() / 1000);
  }
  await stack.db.update(usageMarks).set({ sumsFrom: inMonth(0) });
  expect(await usageOf(of.account)).toMatchObject({ this_month: MONTHS[0], last_month: null });
});

test('an account without a call has sums of 0, and counts its live URLs and keys', async () => {
  const { account } = await fresh(stack);
  const apiKey = await addApiKey(stack, account, { scopes: ['presign'] });
  await addApiKey(stack, account, { revokedAt: new Date() });
  await addApiKey(stack, account, { expiresAt: new Date(0) });
  const issue = () => send(stack, { body: least, apiKey });
  const [first] = [await issue(), await issue()];
  const none = { calls: 0, cost: 0 };
  const all = { this_month: none, last_month: none, last_call_at: null };
  expect(await usageOf(account)).toMatchObject({ ...all, live_api_keys: 3, live_urls: 2 });
  const { session_id: session } = JSON.parse(first.text) as { session_id: string };
  await send(stack, { method: 'DELETE', path: `/v1/sessions/${session}`, apiKey });
  expect(await usageOf(account)).toMatchObject({ live_urls: 1 });
});

test("an unknown account is 404, and an account's admin may not read its usage here", async () => {
  const of = await fresh(stack);
  const path = (id: string) => ({ method: 'GET', path: `/v1/accounts/${id}/usage` });
  refused(await send(stack, path(randomUUID())), 'not_found');
  const admin = await addApiKey(stack, of.account, { scopes: ['admin'] });
  refused(await send(stack, { ...path(of.account), apiKey: admin }), 'forbidden');
});
