import type { ComponentChildren } from 'preact';
import { Answer } from './answer.tsx';

export type Column<Row> = {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Figures stand to the right. */
  readonly figure?: true;
};

type TableProps<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly empty?: string;
  /** A last row, with the cells of all columns. */
  readonly foot?: readonly ComponentChildren[];
};

/** A table that scrolls in its own box on a small screen. The first column names the row. */
export function Table<Row>({ caption, columns, rows, keyOf, empty = 'None yet.', foot }: TableProps<Row>) {
  if (rows.length === 0) return <p class="soft">{empty}</p>;
  const styleOf = (column: Column<Row> | undefined) => (column?.figure ? 'figure' : undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reached by the keyboard (WCAG 2.1.1)
    <section class="scroll" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" class={styleOf(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ head, cell, figure }, at) =>
                at === 0 ? (
                  <th key={head} scope="row">
                    <div class="cell">{cell(row)}</div>
                  </th>
                ) : (
                  <td key={head} class={figure && 'figure'}>
                    <div class="cell">{cell(row)}</div>
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
        {foot && (
          <tfoot>
            <tr>
              {columns.map((column, at) => (
                <td key={column.head} class={styleOf(column)}>
                  {foot[at]}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </section>
  );
}

/** A list that is read page by page. */
type Pages<P> = {
  readonly data: { readonly pages: readonly P[] } | undefined;
  readonly error: Error | null;
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
};

type PagedProps<P, Row> = Omit<TableProps<Row>, 'rows' | 'foot'> & {
  readonly of: Pages<P>;
  readonly rowsOf: (page: P) => readonly Row[];
};

export const PagedTable = <P, Row>({ of, rowsOf, ...table }: PagedProps<P, Row>) => (
  <Answer of={of}>
    {({ pages }) => (
      <>
        <Table {...table} rows={pages.flatMap(rowsOf)} />
        {of.hasNextPage && (
          <button type="button" disabled={of.isFetchingNextPage} onClick={() => of.fetchNextPage()}>
            Show more
          </button>
        )}
      </>
    )}
  </Answer>
);
