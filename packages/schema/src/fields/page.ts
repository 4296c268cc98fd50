import * as z from 'zod';
import { QUERY } from './invalid-request.ts';

export const PAGE_MAX = 100;
export const PAGE_DEFAULT = 20;

/** The most entries of an answer, in a query. */
export const limitUpTo = (most: number, usual: number, description: string) =>
  countUpTo(most)
    .default(usual)
    .meta({ shownAs: z.int().min(1).max(most), description, default: usual });

/** A count in a query. */
export function countUpTo(most: number) {
  const expected = `expected a whole number from 1 to ${most}`;
  return z
    .string(expected)
    .regex(/^[1-9]\d{0,8}$/, expected)
    .transform(Number)
    .refine((count) => count <= most, expected)
    .meta({ shownAs: z.int().min(1).max(most) });
}

const CURSOR = 'expected the next_cursor of an earlier answer';

/** The end of a page: the time of its last entry, in Unix microseconds of Postgres, and the entry's id. */
export type Cursor = { readonly micros: string; readonly id: string };

/**
 * The query of every list. A cursor that was changed is refused, or leads to another place of the same list. It shows
 * nothing that its reader may not see.
 */
export const pageQuery = z.strictObject(
  {
    limit: limitUpTo(PAGE_MAX, PAGE_DEFAULT, 'The most entries to return.'),
    cursor: z.string(CURSOR).transform(readCursor).optional().meta({
      description: 'The next_cursor of the page before. Repeat all filters with it.',
    }),
  },
  QUERY,
);

/** The forms of a list that can be exported. */
export const LIST_FORMATS = ['json', 'csv', 'ndjson'] as const;
export type ListFormat = (typeof LIST_FORMATS)[number];

export const listFormat = z
  .enum(LIST_FORMATS, `expected one of ${LIST_FORMATS.join(', ')}`)
  .optional()
  .meta({
    description:
      '`csv` and `ndjson` export all entries in one answer, without `limit` and `cursor`. Takes precedence over the header `Accept`. Without either: json.',
  });

export type PageQuery = z.output<typeof pageQuery>;

/** The answer of every list: newest first. `next_cursor` is the cursor of the next page, or null on the last one. */
export const pageOf = <T extends z.ZodType>(entry: T) =>
  z.strictObject({
    data: z.array(entry).meta({ description: 'Newest first.' }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'The cursor of the next page. null: this is the last page.' }),
  });

/** Opaque, so that no client relies on its content. */
export const writeCursor = ({ micros, id }: Cursor): string =>
  Buffer.from(`${micros}.${id}`).toString('base64url');

function readCursor(text: string, context: z.RefinementCtx): Cursor {
  const [, micros, id] = /^(\d{1,17})\.([\w-]{1,255})$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (micros !== undefined && id !== undefined && writeCursor({ micros, id }) === text) return { micros, id };
  context.addIssue(CURSOR);
  return z.NEVER;
}
