import { OUTCOME_OF_FAILURE, type Outcome } from '@presign/schema';
import { ledger } from '@presign/schema/ledger-tables';
import { type SQL, sql } from 'drizzle-orm';

const quoted = (text: string) => sql.raw(`'${text}'`);

const known = Object.entries(OUTCOME_OF_FAILURE).map(
  ([failure, outcome]) => sql`when ${quoted(failure)} then ${quoted(outcome)}`,
);

const is = (outcome: Outcome) => quoted(outcome);

/** `outcomeOf` of a row of the ledger. Nothing is stored for it, so rows of every version have one. */
export const outcomeInSql: SQL = sql`case
  when ${ledger.outcome} = 'refunded' then ${is('refunded')}
  when ${ledger.outcome} = 'expired' then ${is('lease_ended')}
  when ${ledger.failure} is null and ${ledger.server} is not null and ${ledger.totalMs} is null then ${is('under_way')}
  when ${ledger.failure} is null then ${is('passed')}
  else case ${ledger.failure} ${sql.join(known, sql` `)}
    else case when ${ledger.status} is null then ${is('gateway_error')}
      when ${ledger.status} >= 500 then ${is('provider_error')} else ${is('provider_refused')} end end end`;
