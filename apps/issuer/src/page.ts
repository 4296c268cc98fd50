import { type Cursor, writeCursor } from '@presign/schema';
import { desc, type SQL, sql } from 'drizzle-orm';
import type { PgColumn } from 'drizzle-orm/pg-core';

/** What a list is ordered by: when a row was made, and its id where two were made at once. */
type Order = { readonly createdAt: PgColumn; readonly id: PgColumn };

/** A row with its place in the list. */
type Placed = { readonly id: string; readonly micros: string };

/** When a row was made, to the microsecond: a JavaScript date is too coarse to go on from. */
export const micros = (createdAt: PgColumn) =>
  sql<string>`(extract(epoch from ${createdAt}) * 1000000)::bigint::text`;

/** Newest first. Ids are ordered as text, of whatever type they are. */
export const newestFirst = ({ createdAt, id }: Order): SQL[] => [desc(createdAt), desc(asText(id))];

/** The rows after a cursor; all, without one. */
export function after(cursor: Cursor | undefined, { createdAt, id }: Order): SQL | undefined {
  if (!cursor) return undefined;
  const at = sql`timestamptz 'epoch' + ${cursor.micros}::bigint * interval '1 microsecond'`;
  // The first condition is the one that an index serves.
  return sql`${createdAt} <= ${at} and (${createdAt} < ${at} or ${asText(id)} < ${cursor.id})`;
}

/** @param rows one more than `limit` where there is a next page */
export function pageOfRows<R extends Placed, T>(rows: readonly R[], limit: number, tell: (row: R) => T) {
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  return { data: rows.slice(0, limit).map(tell), next_cursor: last ? writeCursor(last) : null };
}

const asText = (id: PgColumn) => sql`${id}::text`;
