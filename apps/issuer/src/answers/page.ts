import { type Cursor, writeCursor } from '@presign/schema';
import { desc, eq, gte, lt, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/** The columns that a list is ordered by: the time of creation, and the id of rows created at the same time. */
type Order = { readonly createdAt: PgColumn; readonly id: PgColumn };

/** A row with its place in the list. */
export type Placed = { readonly id: string; readonly micros: string };

/** The time of creation in microseconds. A JavaScript date has milliseconds, too coarse to continue from. */
export const micros = (createdAt: PgColumn) =>
  sql<string>`(extract(epoch from ${createdAt}) * 1000000)::bigint::text`;

/** Newest first. Ids of any type are ordered as text. */
export const newestFirst = ({ createdAt, id }: Order): SQL[] => [desc(createdAt), desc(asText(id))];

/** The condition for the rows after a cursor; undefined without a cursor. */
export function after(cursor: Cursor | undefined, { createdAt, id }: Order): SQL | undefined {
  if (!cursor) return undefined;
  const at = timeOf(cursor);
  // An index serves the first condition.
  return sql`${createdAt} <= ${at} and (${createdAt} < ${at} or ${asText(id)} < ${cursor.id})`;
}

/** The condition for the rows up to a place, with its own row. */
export function upTo(place: Cursor, { createdAt, id }: Order): SQL {
  const at = timeOf(place);
  return sql`${createdAt} >= ${at} and (${createdAt} > ${at} or ${asText(id)} >= ${place.id})`;
}

const timeOf = ({ micros }: Cursor) =>
  sql`timestamptz 'epoch' + ${micros}::bigint * interval '1 microsecond'`;

/** The conditions of a query's filters: a span of time, and the columns that have the values asked for. */
export const filtersOf = <Name extends string>(
  query: { readonly from?: Date | undefined; readonly to?: Date | undefined } & {
    readonly [name in Name]?: string | undefined;
  },
  time: PgColumn,
  columns: readonly (readonly [Name, PgColumn])[],
): (SQL | undefined)[] => [
  query.from && gte(time, query.from),
  query.to && lt(time, query.to),
  ...columns.map(([name, column]) => {
    const value = query[name];
    return value === undefined ? undefined : eq(column, value);
  }),
];

/**
 * One page of a list.
 * @param rows one more than `limit` if there is a next page
 */
export function pageOfRows<R extends Placed, T>(rows: readonly R[], limit: number, describe: (row: R) => T) {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { data: rows.slice(0, limit).map(describe), next_cursor: last ? writeCursor(last) : null };
}

const asText = (id: PgColumn) => sql`${id}::text`;
