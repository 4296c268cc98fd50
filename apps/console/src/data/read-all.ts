type Page<T> = { readonly data: readonly T[]; readonly next_cursor: string | null };
type Cursor = { readonly limit: number; readonly cursor?: string };

/** The rows of a list, up to a bound. */
export type Whole<T> = {
  readonly rows: readonly T[];
  /** Whether there are more rows. */
  readonly isCut: boolean;
};

const MOST_PAGES = 10;

/** Reads a list page by page: 1,000 rows at most. */
export async function readAll<T>(ask: (at: Cursor) => Promise<Page<T>>): Promise<Whole<T>> {
  const rows: T[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES; page++) {
    const read = await ask({ limit: 100, ...(cursor !== null && { cursor }) });
    rows.push(...read.data);
    cursor = read.next_cursor;
    if (cursor === null) return { rows, isCut: false };
  }
  return { rows, isCut: true };
}
