import { createPresign } from '@presign/client';
import { type AskUsage, OTHERS, readByDay, readReport } from '@presign/console/usage';
import { ledger } from '@presign/schema/ledger-tables';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stack, startStack } from '../harness/stack.ts';
import { fresh, type Reader, row } from '../issuer/ask-usage.ts';

const DAY_MS = 86_400_000;
const DAYS = 30;
/** So many users on 30 days are more groups than one answer has. */
const USERS = 200;
/** Today, yesterday and the day before. */
const LAST_DAYS = [0, 1, 2];

let stack: Stack;
let of: Reader;
const end = Date.now() / 1000;
beforeAll(async () => {
  stack = await startStack({ providers: {} });
  of = await fresh(stack);
  const users = [null, ...Array.from({ length: USERS }, (_, user) => `user-${user}`)];
  const rows = users.flatMap((externalUser, user) =>
    LAST_DAYS.map((ago) => {
      const settledAt = new Date(end * 1000 - ago * DAY_MS - 1);
      return row(of, { externalUser, costMicrousd: 10 * user + ago, inputTokens: user, settledAt });
    }),
  );
  await stack.db.insert(ledger).values(rows);
});
afterAll(() => stack.close());

/** The last days up to now. */
const last = (days: number) => ({
  from: (Math.floor(end / 86_400) - days + 1) * 86_400,
  to: end,
  zone: 'UTC',
});

/** Asks the issuer, and counts the groups of its answers. */
function counting(): { readonly ask: AskUsage; readonly groups: () => number } {
  const { getUsage } = createPresign({ url: of.issuerUrl, apiKey: of.apiKey });
  let groups = 0;
  const ask: AskUsage = async (fields) => {
    const report = await getUsage(fields);
    groups += report.data.length;
    return report;
  };
  return { ask, groups: () => groups };
}

/** The report by user, and the one by day and user that follows from it. */
async function readUsers(ask: AskUsage, asked: Omit<Parameters<typeof readByDay>[1], 'by'>) {
  const groups = await readReport(ask, { ...asked, groupBy: ['external_user'] });
  return readByDay(ask, { ...asked, by: 'external_user' }, groups);
}

test('a chart of very many users reads few groups, names the users with the highest cost, and equals the ledger', async () => {
  const { ask, groups } = counting();
  const report = await readUsers(ask, { range: last(DAYS) });
  expect(groups()).toBeLessThan(2 * USERS);
  const names = new Set(report.data.map(({ external_user }) => external_user));
  expect(names).toEqual(new Set(['user-199', 'user-198', 'user-197', 'user-196', 'user-195', OTHERS]));
  const { data, total } = await readReport(ask, { range: last(DAYS), groupBy: ['day'] });
  expect(report.total).toEqual(total);
  for (const whole of data) {
    const parts = report.data.filter(({ day }) => day === whole.day);
    for (const sum of ['calls', 'uses', 'cost', 'input_tokens'] as const)
      expect(parts.reduce((all, each) => all + each[sum], 0)).toBe(whole[sum]);
    expect(parts.find(({ external_user }) => external_user === 'user-199')?.cost).toBe(
      2000 + agoOf(whole.day),
    );
  }
});

test('a chart of few groups names each group', async () => {
  const { ask } = counting();
  const report = await readUsers(ask, { range: last(1), filters: { provider: 'openai' } });
  expect(new Set(report.data.map(({ external_user }) => external_user)).size).toBe(USERS + 1);
});

/** How many days before the last one it is. */
const agoOf = (day = ''): number =>
  Math.round((Math.floor((end * 1000 - 1) / DAY_MS) * DAY_MS - Date.parse(day)) / DAY_MS);
