import { randomUUID } from 'node:crypto';
import type { CallSummary } from '@presign/schema';
import { ledger, refusedCalls } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { addAccount, addApiKey } from './accounts.ts';
import { refused, send } from './ask.ts';

let stack: Stack;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const CALLS = 1_234;
const REFUSED = 567;

/** An account with calls and refused calls that ended in the same few seconds. */
async function accountWithCalls() {
  const { id: accountId } = await addAccount(stack);
  const apiKey = await addApiKey(stack, accountId, { scopes: ['read'] });
  const now = Date.now();
  const own = () => ({ accountId, sessionId: randomUUID(), grantId: randomUUID(), provider: 'openai' });
  const settledAt = (i: number) => new Date(now - (i % 5) * 1_000);
  await stack.db.insert(ledger).values(
    Array.from({ length: CALLS }, (_, i) => ({
      ...own(),
      ...{
        holdId: randomUUID(),
        requestId: randomUUID(),
        partition: 0,
        uses: 1,
        outcome: 'settled' as const,
      },
      ...{ model: i === 7 ? '=HYPERLINK("x")' : 'model-1', costMicrousd: i, priceList: 'bundled:7' },
      ...{ startedAt: settledAt(i), settledAt: settledAt(i) },
    })),
  );
  return { accountId, apiKey, own, settledAt };
}
const ask = (apiKey: string, query: string, method: 'GET' | 'HEAD' = 'GET') =>
  send(stack, { method, path: `/v1/calls?${query}`, apiKey });
const linesOf = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as CallSummary);

describe('the export of calls', () => {
  test('has every call once, newest first, including refused calls', async () => {
    const { apiKey, own, settledAt } = await accountWithCalls();
    await stack.db.insert(refusedCalls).values(
      Array.from({ length: REFUSED }, (_, i) => ({
        ...own(),
        ...{ requestId: randomUUID(), code: 'uses_exhausted', status: 402, refusedAt: settledAt(i) },
      })),
    );
    const calls = linesOf((await ask(apiKey, 'format=ndjson')).text);
    expect(new Set(calls.map(({ request_id }) => request_id)).size).toBe(CALLS);
    expect(calls.reduce((sum, { cost }) => sum + (cost ?? 0), 0)).toBe((CALLS * (CALLS - 1)) / 2);
    const all = linesOf((await ask(apiKey, 'format=ndjson&outcome=all')).text);
    expect(new Set(all.map(({ request_id }) => request_id)).size).toBe(CALLS + REFUSED);
    const times = all.map(({ settled_at }) => settled_at);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const page = JSON.parse((await ask(apiKey, 'outcome=all&limit=100')).text) as { data: CallSummary[] };
    expect(page.data).toEqual(all.slice(0, 100));
  });

  test('has a column for each field as CSV, and no cell is a formula', async () => {
    const { apiKey } = await accountWithCalls();
    const sent = await ask(apiKey, 'format=csv');
    expect(sent.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(sent.headers.get('content-disposition')).toBe('attachment; filename="calls.csv"');
    const [head = '', ...lines] = sent.text.trimEnd().split('\r\n');
    const page = JSON.parse((await ask(apiKey, 'limit=1')).text) as { data: CallSummary[] };
    expect(new Set(head.split(','))).toEqual(new Set(Object.keys(page.data[0] ?? {})));
    expect(lines).toHaveLength(CALLS);
    expect(sent.text).toContain(`,"'=HYPERLINK(""x"")",`);
    expect(sent.text).toContain('"{""source"":""bundled"",""id"":""7""}"');
  });

  test('obeys filters, shows one account, and is not paged', async () => {
    const { apiKey } = await accountWithCalls();
    const stranger = await addApiKey(stack, (await addAccount(stack)).id, { scopes: ['read'] });
    expect(linesOf((await ask(apiKey, 'format=ndjson&model=%3DHYPERLINK(%22x%22)')).text)).toHaveLength(1);
    expect((await ask(stranger, 'format=ndjson')).text).toBe('');
    refused(await ask(apiKey, 'format=csv&limit=5'), 'invalid_request', 'limit');
    refused(await ask(apiKey, 'format=xml'), 'invalid_request', 'format');
    expect((await ask(apiKey, 'format=csv', 'HEAD')).text).toBe('');
  });
});
