import { DAY_STARTS } from '@presign/schema';
import { type SQL, sql } from 'drizzle-orm';

/** The columns of the sums that days have. Calls that failed follow from their outcome. */
export const SUM_COLUMNS = {
  calls: 'calls',
  uses: 'uses',
  cost: 'cost_microusd',
  calls_of_unknown_cost: 'calls_of_unknown_cost',
  input_tokens: 'input_tokens',
  output_tokens: 'output_tokens',
} as const;

export const SUM_NAMES = Object.values(SUM_COLUMNS);

const STARTS = sql.raw(
  `'{${DAY_STARTS.map((minutes) => `${Math.floor(minutes / 60)}:${minutes % 60}`).join(',')}}'::time[]`,
);

/** The index of the piece of the day that contains a moment. */
export const pieceIn = (moment: SQL): SQL =>
  sql`(width_bucket((${moment} at time zone 'UTC')::time, ${STARTS}) - 1)::smallint`;

/** Zero sums, as the array of one piece. */
export const NO_SUMS_OF_PIECE = sql.raw(`'{${SUM_NAMES.map(() => 0).join(',')}}'::numeric[]`);
const NO_SUMS = sql.raw(`'{{${SUM_NAMES.map(() => 0).join(',')}}}'::numeric[]`);

/**
 * The sums of a row of `usageDays` up to the end of one of its pieces, as an array with one row.
 * @param place the number of pieces up to there
 */
export function runningUntil(row: string, place: SQL): SQL {
  const all = sql.raw(`array[[${SUM_NAMES.map((name) => `${row}.${name}`).join(', ')}]]`);
  const running = sql.raw(`${row}.running`);
  return sql`case when ${place} = 0 then ${NO_SUMS} when ${place} = cardinality(${sql.raw(row)}.pieces) then ${all}
    else ${running}[${place} : ${place}] end`;
}
