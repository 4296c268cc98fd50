import {
  type AccountUsageAnswer,
  accountUsageAnswer,
  idParams,
  LIVE_URLS_COUNTED,
  RefusedError,
} from '@presign/schema';
import { ledger, usageDays, usageMarks } from '@presign/schema/ledger-tables';
import { accounts, apiKeys, grants } from '@presign/schema/tables';
import type { Database, TextRow, Transaction } from '@presign/service/database';
import { and, gte, inArray, lt, type SQL, sql } from 'drizzle-orm';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { inTurn } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { SUMS_OF_CALLS, SUMS_OF_DAYS, sumBy } from '../usage/sum-calls.ts';
import { isLiveKey } from './api-keys.ts';

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
    return async ({ params: { id }, c }) =>
      take(c, async () => {
        const [usage] = (await readUsages(db, [id], new Date(now()))).values();
        if (!usage) throw new RefusedError({ code: 'not_found' });
        return usage;
      });
  },
);

/** The usage of each account that exists, by its id. One statement reads all figures, so they are of one moment. */
export async function readUsages(
  db: Database,
  ids: string[],
  now: Date,
): Promise<ReadonlyMap<string, AccountUsageAnswer>> {
  if (ids.length === 0) return new Map();
  const months: Months = { last: startOfMonth(now, -1), current: startOfMonth(now, 0), now };
  const read = async (tx: Transaction) => {
    // Postgres takes longer to compile than to sum. If one account has most rows of a table, it would scan the table once for each account.
    await tx.execute(sql`set local jit = off`);
    await tx.execute(sql`set local enable_seqscan = off`);
    return tx.execute<TextRow>(selectUsages(ids, months));
  };
  const rows = await db.transaction(read, { accessMode: 'read only' });
  return new Map(rows.map((row) => [row['id'] ?? '', describeUsage(row, months)]));
}

type Months = { readonly last: Date; readonly current: Date; readonly now: Date };

const startOfMonth = (now: Date, plus: number) =>
  new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + plus, 1));

function selectUsages(ids: string[], { last, current, now }: Months): SQL {
  const nextDay = new Date(now.getTime() + DAY_MS);
  return sql`with asked as materialized (
      select ${accounts.id}, ${usageMarks.summedUntil} as summed_until, ${usageMarks.sumsFrom} as sums_from
      from ${accounts} left join ${usageMarks} on ${usageMarks.accountId} = ${accounts.id} where ${inArray(accounts.id, ids)}),
    days_of_current as (${sumDays(ids, current, nextDay)}),
    days_of_last as (${sumDays(ids, last, current)}),
    keys as (select ${apiKeys.accountId} as id, count(*) as live from ${apiKeys}
      where ${and(inArray(apiKeys.accountId, ids), isLiveKey(now))} group by 1)
    select asked.id::text as id, ${msOf(sql`sums_from`)} as sums_from, ${msOf(sql`call.at`)} as last_call,
      ${sum('days_of_current', 'calls_of_current')}, ${sum('days_of_last', 'calls_of_last')},
      coalesce(keys.live, 0)::text as live_keys, urls.live::text as live_urls
    from asked left join days_of_current using (id) left join days_of_last using (id) left join keys using (id)
    cross join lateral (${sumCalls(current, now)}) as calls_of_current
    cross join lateral (${sumCalls(last, current)}) as calls_of_last
    left join lateral (select ${ledger.settledAt} as at from ${ledger} where ${ledger.accountId} = asked.id
      order by ${ledger.settledAt} desc limit 1) as call on true
    cross join lateral (${countLiveUrls(now)}) as urls`;
}

const DAY_MS = 86_400_000;

/** Milliseconds, as text. */
const msOf = (at: SQL) => sql`(extract(epoch from ${at}) * 1000)::bigint::text`;
const momentOf = (at: Date) => sql`${at.toISOString()}::timestamptz`;
const dayOf = (at: Date) => at.toISOString().slice(0, 10);

/** The calls before the mark of each account: sums of days have them. */
const sumDays = (ids: string[], from: Date, to: Date) =>
  sumBy(
    [['id', sql`${usageDays.accountId}`]],
    { calls: SUMS_OF_DAYS.calls, cost: SUMS_OF_DAYS.cost },
    sql`${usageDays} where ${and(
      inArray(usageDays.accountId, ids),
      gte(usageDays.day, dayOf(from)),
      lt(usageDays.day, dayOf(to)),
    )}`,
  );

/** The calls since the mark of an account. */
const sumCalls = (from: Date, to: Date) =>
  sumBy(
    [],
    { calls: SUMS_OF_CALLS.calls, cost: SUMS_OF_CALLS.cost },
    sql`${ledger} where ${ledger.accountId} = asked.id and ${ledger.settledAt} < ${momentOf(to)}
      and ${ledger.settledAt} >= greatest(${momentOf(from)}, asked.summed_until)`,
  );

/** The sums of days and calls together. The columns are named `calls_of_…` and `cost_of_…`. */
function sum(days: string, calls: string): SQL {
  const month = days.slice('days_of_'.length);
  const both = ['calls', 'cost'].map((name) => {
    const [a, b] = [days, calls].map((of) => sql`coalesce(${sql.identifier(of)}.${sql.identifier(name)}, 0)`);
    return sql`(${a} + ${b})::text as ${sql.identifier(`${name}_of_${month}`)}`;
  });
  return sql.join(both, sql`, `);
}

/** Counts no further than the answer says, so that the read stays short. */
const countLiveUrls = (now: Date) => sql`select count(*) as live from (select from ${grants}
  where ${grants.accountId} = asked.id and ${grants.revokedAt} is null and ${grants.expiresAt} > ${momentOf(now)}
  limit ${LIVE_URLS_COUNTED}::int) as live`;

function describeUsage(row: TextRow, { last, current, now }: Months): AccountUsageAnswer {
  const numberIn = (name: string) => Number(row[name] ?? 0);
  const monthOf = (name: string, from: Date, to: Date) => ({
    from: unixSeconds(from),
    to: unixSeconds(to),
    calls: numberIn(`calls_of_${name}`),
    cost: numberIn(`cost_of_${name}`),
  });
  const [called, sumsFrom] = [row['last_call'], numberIn('sums_from')];
  return {
    this_month: monthOf('current', current, now),
    last_month: last.getTime() < sumsFrom ? null : monthOf('last', last, current),
    last_call_at: called ? unixSeconds(new Date(Number(called))) : null,
    live_api_keys: numberIn('live_keys'),
    live_urls: numberIn('live_urls'),
  };
}
