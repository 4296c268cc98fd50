import { RefusedError, type UsageQuery, type UsageReport, usageQuery, usageReport } from '@presign/schema';
import { sqlState } from '@presign/schema/database';
import type { Context } from 'hono';
import { accepts } from 'hono/accepts';
import type { IssuerEnv } from '../deps.ts';
import { DATABASE_UNAVAILABLE } from '../in-time.ts';
import { inTurn } from '../in-turn.ts';
import { route } from '../route.ts';
import { sumUsage, totalOf, type UsageAsked, type UsageGroup, type UsageSums } from './sum-usage.ts';
import { writeCsv } from './write-csv.ts';

/** Groups of one answer: what they come to is held in memory until it is sent. */
const MOST_GROUPS = 50_000;

/** A little more than Postgres gives a statement, so that its own word comes first. */
const LONGEST_MS = 11_000;

/** `GET /v1/usage`: what the account's settled calls come to, for billing. */
export const getUsage = route(
  {
    method: 'get',
    path: '/v1/usage',
    summary: 'Settled calls summed over a range, as JSON or CSV',
    scope: 'read',
    query: usageQuery,
    answer: usageReport,
    csv: true,
  },
  (deps) => {
    const take = inTurn(LONGEST_MS);
    return async ({ apiKey, query, c }) => {
      const asked = {
        ...query,
        to: query.to ?? new Date(deps.now()),
        group_by: query.group_by ?? [],
      };
      if (asked.from >= asked.to) throw refuse('from', 'expected a time before to, or before now without it');
      const sum = () => sumUsage(deps.db, apiKey.accountId, asked, MOST_GROUPS);
      const groups = await take(c, sum).catch(sayTooLong);
      if (groups.length > MOST_GROUPS) throw refuse('group_by', TOO_MANY);
      c.header('vary', 'Accept');
      return wantsCsv(c, query) ? answerCsv(c, asked, groups) : reportOf(asked, groups);
    };
  },
);

const TOO_MANY = `these are more than ${MOST_GROUPS} groups; ask for fewer of them, or for a shorter range`;

const refuse = (param: string, problem: string) =>
  new RefusedError({ code: 'invalid_request', param, message: `${param}: ${problem}.` });

/** SQLSTATE 57014, query_canceled: no outage, but more than one statement may take. */
function sayTooLong(cause: unknown): never {
  if (sqlState(cause) !== '57014') throw cause;
  const message = 'This range could not be summed in time. Ask for a shorter one.';
  throw new RefusedError({ ...DATABASE_UNAVAILABLE, message }, { cause });
}

const wantsCsv = (c: Context<IssuerEnv>, { format }: UsageQuery) =>
  format === undefined
    ? accepts(c, { header: 'Accept', supports: ['application/json', 'text/csv'], default: '' }) === 'text/csv'
    : format === 'csv';

function answerCsv(
  c: Context<IssuerEnv>,
  { from, to, group_by: by }: UsageAsked,
  groups: readonly UsageGroup[],
) {
  const [first, last] = [from, to].map((time) => time.toISOString().slice(0, 19).replaceAll(':', ''));
  c.header('content-type', 'text/csv; charset=utf-8; header=present');
  c.header('content-disposition', `attachment; filename="usage-${first}Z-${last}Z.csv"`);
  return c.body(writeCsv(by, groups));
}

const reportOf = ({ from, to, group_by: by }: UsageAsked, groups: readonly UsageGroup[]): UsageReport => ({
  from: from.getTime() / 1000,
  to: to.getTime() / 1000,
  group_by: [...by],
  data: groups.map((group) => ({ ...Object.fromEntries(group.by), ...inNumbers(group.sums) })),
  total: inNumbers(totalOf(groups)),
});

/** A JSON number beyond 2^53 − 1 would be read as another one (RFC 8259 §6), so none is written. */
function inNumbers(sums: UsageSums): UsageReport['total'] {
  const pairs = Object.entries(sums).map(([name, sum]) => [name, Number(sum)] as const);
  if (pairs.every(([, sum]) => Number.isSafeInteger(sum)))
    return Object.fromEntries(pairs) as UsageReport['total'];
  throw refuse('format', 'these sums are beyond 2^53 − 1, which JSON does not hold exactly; ask for csv');
}
