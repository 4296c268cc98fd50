type Page<T> = { readonly data: readonly T[]; readonly next_cursor: string | null };
type Cursor = { readonly limit: number; readonly cursor?: string };

/** The rows of a list, up to a bound. */
export type Whole<T> = {
  readonly rows: readonly T[];
  /** Whether there are more rows. */
  readonly isCut: boolean;
};

const PAGE = 100;
const MOST_PAGES = 10;
/** The most rows that are read of a list. */
export const MOST_READ = PAGE * MOST_PAGES;

/** Reads a list page by page, up to `MOST_READ` rows. */
export async function readAll<T>(ask: (at: Cursor) => Promise<Page<T>>): Promise<Whole<T>> {
  const rows: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const read = await ask({ limit: PAGE, ...(cursor !== null && { cursor }) });
    rows.push(...read.data);
    cursor = read.next_cursor;
    if (cursor === null) return { rows, isCut: false };
  }
  return { rows, isCut: true };
}

/** How many requests it took to read so many rows. */
export const pagesIn = ({ rows }: Pick<Whole<unknown>, 'rows'>): number =>
  Math.max(1, Math.ceil(rows.length / PAGE));
