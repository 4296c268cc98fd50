import { ledger, usageDays } from '@presign/schema/ledger-tables';
import { type SQL, sql } from 'drizzle-orm';
import { NO_SUMS_OF_PIECE, pieceIn, runningUntil, SUM_COLUMNS, SUM_NAMES } from './pieces-in-sql.ts';
import { as, CALLS, type Column, DAYS, list, named, pick, SUMS_OF_CALLS, sumBy } from './sum-calls.ts';

/**
 * Sums of calls by day with their ids: rows of a table, or of a `with` query, that has the columns of the ledger. In one order, so that two
 * transactions that add never deadlock.
 */
function sumsOfDays(calls: SQL): SQL {
  const by: Column[] = [['account', sql`${ledger.accountId}`], ...pick(Object.keys(DAYS), CALLS)];
  const values = list(by.map(([name]) => named(name)));
  const id = sql`encode(substr(sha256(convert_to(json_build_array(${values})::text, 'UTF8')), 1, 16), 'hex')::uuid`;
  const sums = list(
    Object.entries(SUM_COLUMNS).map(([name, column]) => as(sql`coalesce(${named(name)}, 0)`, column)),
  );
  const piece: Column = ['piece', pieceIn(sql`${ledger.settledAt}`)];
  const running = list(SUM_NAMES.map((name) => sql`sum(${sql.identifier(name)}) over so_far`));
  return sql`select id, ${values}, ${list(SUM_NAMES.map((name) => as(sql`sum(${sql.identifier(name)})`, name)))},
      array_agg(piece order by piece) as pieces, ${allButLast(sql`running`)} as running
    from (select *, array[${running}] as running
      from (select ${id} as id, ${values}, piece, ${sums}
        from (${sumBy([...by, piece], SUMS_OF_CALLS, sql`${calls} as ${ledger}`)}) as usage) as usage
      window so_far as (partition by id order by piece)) as usage
    group by id, ${values} order by id`;
}

/** Running sums in the order of their pieces. The last ones are those of the row. */
const allButLast = (sums: SQL) => sql`coalesce((array_agg(${sums} order by piece))[1 : count(*) - 1], '{}')`;

/** Adds calls to their sums by day. */
export function addToDays(calls: SQL): SQL {
  const added = SUM_NAMES.map((name) => `${name} = usage_days.${name} + excluded.${name}`);
  const all = sql`(select distinct unnest(usage_days.pieces || excluded.pieces) as piece)`;
  return sql`insert into ${usageDays} (id, account_id, day, provider, model, server, tool, external_user, api_key_id,
      virtual_key_id, outcome, tags, ${sql.raw(SUM_NAMES.join(', '))}, pieces, running)
    ${sumsOfDays(calls)}
    on conflict (id) do update set ${sql.raw(added.join(', '))}, (pieces, running) = (
      select array_agg(piece order by piece), ${allButLast(sql`sums`)}
      from (select piece, ${both('+')} as sums from ${all} as each, ${placesIn('excluded')}) as each)`;
}

/** Takes calls out of their sums by day. A sum or a piece without other calls is deleted. */
export function takeFromDays(calls: SQL): SQL {
  const all = (of: string) => sql.raw(`(${SUM_NAMES.map((name) => `${of}.${name}`).join(', ')})`);
  const left = SUM_NAMES.map((name) => `${name} = usage_days.${name} - taken.${name}`);
  return sql`, taken as materialized (${sumsOfDays(calls)}),
    gone as (delete from ${usageDays} using taken where usage_days.id = taken.id and ${all('usage_days')} = ${all('taken')})
    update ${usageDays} set ${sql.raw(left.join(', '))}, (pieces, running) = (
      select coalesce(array_agg(piece order by piece), '{}'), ${allButLast(sql`sums`)}
      from (select piece, sums, lag(sums, 1, ${NO_SUMS_OF_PIECE}) over (order by piece) as before from (
        select piece, ${both('-')} as sums from unnest(usage_days.pieces) as piece, ${placesIn('taken')}) as each) as each
      where sums <> before or piece <> all (taken.pieces)) from taken
    where usage_days.id = taken.id and ${all('usage_days')} <> ${all('taken')}`;
}

/** For two rows: the number of pieces up to a piece, and the sums up to there. */
const placesIn = (other: string) => sql`
  lateral (select width_bucket(piece, usage_days.pieces) as own, width_bucket(piece, ${sql.raw(other)}.pieces) as other offset 0) as place,
  lateral (select ${runningUntil('usage_days', sql`place.own`)} as own, ${runningUntil(other, sql`place.other`)} as other offset 0) as until`;

const both = (sign: '+' | '-') =>
  sql.raw(
    `array[${SUM_NAMES.map((_, i) => `until.own[1][${i + 1}] ${sign} until.other[1][${i + 1}]`).join(', ')}]`,
  );
