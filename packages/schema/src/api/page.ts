import { z } from 'zod';
import { QUERY } from './invalid-request.ts';

const PAGE_MAX = 100;
const PAGE_DEFAULT = 20;

const LIMIT = `expected a whole number from 1 to ${PAGE_MAX}`;
const CURSOR = 'expected the next_cursor of an earlier answer';

/** Where a page ended: when its last entry was made, in Unix microseconds as Postgres has them, and its id. */
export type Cursor = { readonly micros: string; readonly id: string };

/**
 * The query of every list: how many entries at most, and after which. A cursor that was tampered with is
 * refused, or leads to another place of the same list: it opens nothing that its reader may not see.
 */
export const pageQuery = z.strictObject(
  {
    limit: z
      .string(LIMIT)
      .regex(/^[1-9]\d{0,2}$/, LIMIT)
      .transform(Number)
      .refine((limit) => limit <= PAGE_MAX, LIMIT)
      .default(PAGE_DEFAULT)
      .meta({
        shownAs: z.int().min(1).max(PAGE_MAX),
        description: 'Entries at most.',
        default: PAGE_DEFAULT,
      }),
    cursor: z.string(CURSOR).transform(readCursor).optional().meta({
      description:
        'The next_cursor of the answer that this one follows. All filters must stand beside it again.',
    }),
  },
  QUERY,
);

export type PageQuery = z.output<typeof pageQuery>;

/** The answer of every list: newest first; `next_cursor` asks for what comes after, null when nothing does. */
export const pageOf = <T extends z.ZodType>(entry: T) =>
  z.strictObject({
    data: z.array(entry).meta({ description: 'Newest first.' }),
    next_cursor: z
      .string()
      .nullable()
      .meta({ description: 'Asks for the entries after these, as cursor. null: there are none.' }),
  });

/** Opaque, so that nobody builds on what is in it. */
export const writeCursor = ({ micros, id }: Cursor): string =>
  Buffer.from(`${micros}.${id}`).toString('base64url');

function readCursor(text: string, context: z.RefinementCtx): Cursor {
  const [, micros, id] = /^(\d{1,17})\.([\w-]{1,255})$/.exec(Buffer.from(text, 'base64url').toString()) ?? [];
  if (micros !== undefined && id !== undefined && writeCursor({ micros, id }) === text) return { micros, id };
  context.addIssue(CURSOR);
  return z.NEVER;
}
