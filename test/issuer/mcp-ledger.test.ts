import { randomBytes } from 'node:crypto';
import { addEnded, keys } from '@presign/limits';
import type { CallRecord, McpPresignAnswer } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { budgets } from '@presign/schema/tables';
import { asc, eq } from 'drizzle-orm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { issueMcp, writtenBundle } from './ask-mcp.ts';

let stack: Stack;

beforeAll(async () => {
  stack = await startStack({ providers: {} });
});
afterAll(() => stack.close());

const servers = [
  { name: 'docs', url: 'https://a.example/mcp' },
  { name: 'files', url: 'https://b.example/mcp' },
];
type Entry = { readonly server: string; readonly uses: number; readonly cost: number } & Partial<{
  hold: string;
  outcome: string;
  record: Partial<CallRecord>;
}>;

/** Adds calls of a bundle's servers to its stream as a gateway writes them. */
async function addCalls(answer: McpPresignAnswer, entries: readonly Entry[]): Promise<void> {
  const { own, byName } = await writtenBundle(stack, answer);
  for (const { server, uses, cost, hold, outcome = 'settled', record } of entries) {
    const { grants: grant } = byName(server);
    const call: CallRecord = {
      acc: grant.accountId,
      ses: grant.sessionId,
      grt: grant.id,
      prv: 'mcp',
      srv: server,
      beg: Date.now(),
      ...record,
    };
    const fields = {
      hold: hold ?? randomBytes(16).toString('hex'),
      grant: grant.id,
      budgets: own.budgets.id,
      uses: String(uses),
      cost: String(cost),
      outcome,
      record: JSON.stringify(call),
    };
    await stack.redis.xadd(keys.usage(own.budgets.partition), '*', ...Object.entries(fields).flat());
  }
  await stack.issuer.ledger.drainAll();
}
const rowsOf = (answer: McpPresignAnswer) =>
  stack.db
    .select()
    .from(ledger)
    .where(eq(ledger.sessionId, answer.session_id))
    .orderBy(asc(ledger.settledAt), asc(ledger.startedAt));
async function budgetOf(answer: McpPresignAnswer) {
  const { own } = await writtenBundle(stack, answer);
  const [budget] = await stack.db.select().from(budgets).where(eq(budgets.id, own.budgets.id));
  return budget;
}

test('a call is one row with its server and tool; all servers of a bundle are charged to one budget', async () => {
  const answer = await issueMcp(stack, { servers, external_user: 'u1' });
  await addCalls(answer, [
    { server: 'docs', uses: 1, cost: 1000, record: { tol: 'search', usr: 'u1', sta: 200 } },
    { server: 'files', uses: 2, cost: 500, record: { tol: 'read' } },
  ]);
  const rows = await rowsOf(answer);
  const search = {
    server: 'docs',
    tool: 'search',
    provider: 'mcp',
    model: null,
    externalUser: 'u1',
    status: 200,
  };
  expect(rows.find((row) => row.server === 'docs')).toMatchObject({ ...search, outcome: 'settled' });
  expect(rows.find((row) => row.server === 'files')).toMatchObject({
    tool: 'read',
    uses: 2,
    costMicrousd: 500,
  });
  expect(rows).toHaveLength(2);
  expect(await budgetOf(answer)).toMatchObject({ used: 3, settledMicrousd: 1500 });
});

test('a refund is a row of its own, below 0, and its budget has what is left', async () => {
  const answer = await issueMcp(stack, { servers });
  await addCalls(answer, [
    { server: 'docs', uses: 3, cost: 3000, record: { tol: 'search' } },
    { server: 'docs', uses: -2, cost: -2000, outcome: 'refunded', record: { tol: 'search' } },
  ]);
  const rows = await rowsOf(answer);
  expect(rows.map(({ outcome, uses, costMicrousd }) => [outcome, uses, costMicrousd]).sort()).toEqual([
    ['refunded', -2, -2000],
    ['settled', 3, 3000],
  ]);
  expect(await budgetOf(answer)).toMatchObject({ used: 1, settledMicrousd: 1000 });
});

test('a refund that reaches the ledger twice and after its call is counted once', async () => {
  const answer = await issueMcp(stack, { servers });
  await addCalls(answer, [{ server: 'docs', uses: 1, cost: 1000 }]);
  const hold = randomBytes(16).toString('hex');
  const refund = { server: 'docs', uses: -1, cost: -1000, outcome: 'refunded', hold };
  await addCalls(answer, [refund]);
  await addCalls(answer, [refund]);
  expect(await rowsOf(answer)).toHaveLength(2);
  expect(await budgetOf(answer)).toMatchObject({ used: 0, settledMicrousd: 0 });
});

test('no name of a tool stops the ledger', async () => {
  const answer = await issueMcp(stack, { servers });
  await addCalls(answer, [{ server: 'docs', uses: 1, cost: 1, record: { tol: `a\0${'b'.repeat(300)}` } }]);
  expect((await rowsOf(answer))[0]?.tool).toBe(`a${'b'.repeat(254)}`);
});

test.each(['{', '{}', '[{"chg":"x"}]', ''])(
  'entries of calls that cannot be parsed (%j) are skipped, and do not stop the ledger',
  async (record) => {
    const answer = await issueMcp(stack, { servers });
    const { own } = await writtenBundle(stack, answer);
    await addEnded(stack.redis, own.budgets.partition, record);
    await addCalls(answer, [{ server: 'docs', uses: 1, cost: 1000 }]);
    expect(await rowsOf(answer)).toMatchObject([{ server: 'docs', uses: 1, totalMs: null }]);
  },
);
