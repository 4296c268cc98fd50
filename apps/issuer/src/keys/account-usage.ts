import {
  type AccountUsageAnswer,
  accountUsageAnswer,
  idParams,
  LIVE_URLS_COUNTED,
  RefusedError,
  USAGE_GROUPS_MAX,
} from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { accounts, apiKeys, grants } from '@presign/schema/tables';
import type { TextRow, Transaction } from '@presign/service/database';
import { and, desc, eq, gt, isNull, sql } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { divideAsked, findMarks, selectUsage } from '../usage/sum-calls.ts';
import { isLiveKeyOf } from './api-keys.ts';

/** `GET /v1/accounts/{id}/usage`: the usage of an account for the operator, as sums without users. */
export const getAccountUsage = route(
  {
    method: 'get',
    path: '/v1/accounts/{id}/usage',
    summary: 'Get what an account spends this month and spent in the month before',
    description: 'Months are those of UTC. It has sums alone, and neither users nor calls.',
    scope: 'operator',
    params: idParams,
    answer: accountUsageAnswer,
    errors: ['not_found'],
  },
  ({ db, now }) => {
    const take = inTurn();
    return async ({ params: { id }, c }) => {
      const read = (tx: Transaction) => readUsage(tx, id, new Date(now()));
      const config = { isolationLevel: 'repeatable read', accessMode: 'read only' } as const;
      return take(c, () => db.transaction(read, config));
    };
  },
);

/** @throws RefusedError `not_found` */
async function readUsage(tx: Transaction, id: string, now: Date): Promise<AccountUsageAnswer> {
  const [account] = await tx.select({ id: accounts.id }).from(accounts).where(eq(accounts.id, id));
  if (!account) throw new RefusedError({ code: 'not_found' });
  const month = startOfMonth(now, 0);
  // Compiling a report takes Postgres longer than summing it from days.
  await tx.execute(sql`set local jit = off`);
  const [last] = await tx
    .select({ at: ledger.settledAt })
    .from(ledger)
    .where(eq(ledger.accountId, id))
    .orderBy(desc(ledger.settledAt))
    .limit(1);
  return {
    this_month: (await sumMonth(tx, id, month, now)) ?? describeMonth(month, now),
    last_month: await sumMonth(tx, id, startOfMonth(now, -1), month),
    last_call_at: last ? unixSeconds(last.at) : null,
    live_api_keys: await tx.$count(apiKeys, isLiveKeyOf(id, now)),
    live_urls: await countLiveUrls(tx, id, now),
  };
}

const startOfMonth = (now: Date, plus: number) =>
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + plus, 1));

/** The sums of a month. Null: they are deleted. */
async function sumMonth(tx: Transaction, id: string, from: Date, to: Date) {
  const marks = await findMarks(tx, id);
  if (from.getTime() < marks.sumsMs) return null;
  const asked = { from, to, group_by: [], timezone: 'UTC', limit: USAGE_GROUPS_MAX };
  const [total] = await tx.execute<TextRow>(selectUsage(id, asked, divideAsked(asked, marks)));
  return describeMonth(from, to, total);
}

const describeMonth = (from: Date, to: Date, { calls, cost }: TextRow = {}) => ({
  from: unixSeconds(from),
  to: unixSeconds(to),
  calls: Number(calls ?? 0),
  cost: Number(cost ?? 0),
});

/** Counts only up to the limit of the answer, so that the read stays short. */
async function countLiveUrls(tx: Transaction, id: string, now: Date): Promise<number> {
  const live = tx
    .select({ id: grants.id })
    .from(grants)
    .where(and(eq(grants.accountId, id), isNull(grants.revokedAt), gt(grants.expiresAt, now)))
    .limit(LIVE_URLS_COUNTED)
    .as('live');
  return tx.$count(live);
}
