import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { count } from '../../data/format/format.ts';
import { Answer } from '../page/answer.tsx';

export type Column<Row> = {
  readonly head: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Figures stand to the right. */
  readonly figure?: true;
  /** Sorts the rows by it, if the table has all rows. */
  readonly sort?: (row: Row) => number | string;
  /** A column of buttons, which stays visible while the others scroll. */
  readonly actions?: true;
  /** A column of sentences. */
  readonly isText?: true;
};

/** A column of figures that sorts the rows. */
export const figures = <Row,>(
  head: string,
  of: (row: Row) => number,
  show: (figure: number) => ComponentChildren = count,
): Column<Row> => ({ head, figure: true, cell: (row) => show(of(row)), sort: of });

type TableProps<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** The text without rows, if the table has all rows. */
  readonly empty?: string;
  /** The row of sums, with a cell for each column. It is above the other rows. */
  readonly foot?: readonly ComponentChildren[];
  /** Rows that are shown at once. */
  readonly page?: number;
  /** The column that sorts the rows at first. Without one, they stay as given. */
  readonly first?: Order;
  /**
   * Whether some rows were not read. The column heads then sort nothing, because an unread row might be the first, and a table without rows
   * does not say that there are none.
   */
  readonly isCut?: boolean;
  /** Whether there are so many columns that their texts wrap early on a laptop, because otherwise the last ones are out of sight. */
  readonly isDense?: boolean;
};

/** Rows of a page. */
const PAGE = 50;

const NONE_READ = 'None among those read so far.';

type Order = { readonly head: string; readonly isDown: boolean };

/** A table that scrolls in its own box and keeps the first column and the buttons visible. On a phone, each row is a card. */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  empty = 'None yet.',
  foot,
  page: size = PAGE,
  first,
  isCut = false,
  isDense = false,
}: TableProps<Row>) {
  const [chosen, setOrder] = useState<Order>();
  const [at, setPage] = useState(0);
  const hasHead = (each: Order | undefined) => columns.some(({ head }) => head === each?.head);
  const order = chosen && !isCut && hasHead(chosen) ? chosen : first;
  const pages = Math.max(1, Math.ceil(rows.length / size));
  const page = Math.min(at, pages - 1);
  const sorted = sort(rows, columns, order);
  const { box, shown, onClosed } = useHeld(sorted.slice(page * size, (page + 1) * size), rows, keyOf);
  const style = isDense ? 'scroll dense' : 'scroll';
  if (shown.length === 0) return <p class="soft">{isCut ? NONE_READ : empty}</p>;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reached by the keyboard (WCAG 2.1.1) */}
      <section ref={box} class={style} aria-label={caption} tabIndex={0} {...onClosed}>
        <table>
          <caption class="unseen">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <Head
                  key={column.head}
                  column={column}
                  order={order}
                  setOrder={isCut ? undefined : setOrder}
                />
              ))}
            </tr>
          </thead>
          <tbody>
            {foot && <Sums columns={columns} of={foot} />}
            {shown.map((row) => (
              <tr key={keyOf(row)}>
                {columns.map((column, place) => (
                  <Cell key={column.head} column={column} row={row} isFirst={place === 0} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {pages > 1 && <Pager page={page} pages={pages} size={size} rows={rows.length} setPage={setPage} />}
    </>
  );
}

/**
 * The rows of a page. While a row's dialog is open, the same rows stay in place with their new figures. A row that moved or disappeared
 * would take its dialog and the typed text with it.
 */
function useHeld<Row>(page: readonly Row[], all: readonly Row[], keyOf: (row: Row) => string) {
  const box = useRef<HTMLElement>(null);
  const before = useRef<readonly Row[]>([]);
  const [, drawAgain] = useState({});
  useKeptFocus(box);
  if (box.current?.querySelector('dialog[open]')) {
    const read = new Map(all.map((row) => [keyOf(row), row]));
    before.current = before.current.map((row) => read.get(keyOf(row)) ?? row);
  } else before.current = page;
  // A property that the types of Preact lack: this event does not bubble.
  return { box, shown: before.current, onClosed: { onCloseCapture: () => drawAgain({}) } };
}

/** The browser removes the focus from an element whose row moves. This restores the focus. */
function useKeptFocus(box: RefObject<HTMLElement>): void {
  const { activeElement: focused } = document;
  const isOwn = box.current?.contains(focused) === true;
  useLayoutEffect(() => {
    if (isOwn && focused instanceof HTMLElement && focused.isConnected && focused !== document.activeElement)
      focused.focus({ preventScroll: true });
  });
}

const styleOf = <Row,>({ figure, actions, isText }: Column<Row>) =>
  actions ? 'actions' : figure ? 'figure' : isText ? 'text' : undefined;

type HeadProps<Row> = {
  readonly column: Column<Row>;
  readonly order: Order | undefined;
  /** Undefined: the heads do not sort. */
  readonly setOrder: ((order: Order) => void) | undefined;
};

function Head<Row>({ column, order, setOrder }: HeadProps<Row>) {
  const { head, figure, sort: by } = column;
  const own = order?.head === head ? order : undefined;
  const turn = () => setOrder?.({ head, isDown: own ? !own.isDown : figure === true });
  return (
    <th scope="col" class={styleOf(column)} aria-sort={own && (own.isDown ? 'descending' : 'ascending')}>
      {by && setOrder ? (
        <button type="button" class="sort" onClick={turn}>
          {head}
          <span aria-hidden="true">{own ? (own.isDown ? '\u00a0↓' : '\u00a0↑') : '\u00a0↕'}</span>
        </button>
      ) : (
        head
      )}
    </th>
  );
}

/** A card on a phone shows the head of each cell, from `data-head`. */
function Cell<Row>({ column, row, isFirst }: { column: Column<Row>; row: Row; isFirst: boolean }) {
  const content = <div class="cell">{column.cell(row)}</div>;
  if (isFirst)
    return (
      <th scope="row" class={styleOf(column)}>
        {content}
      </th>
    );
  return (
    <td class={styleOf(column)} data-head={column.head}>
      {content}
    </td>
  );
}

const Sums = <Row,>({
  columns,
  of,
}: {
  columns: readonly Column<Row>[];
  of: readonly ComponentChildren[];
}) => (
  <tr class="sums">
    {columns.map((column, at) => (
      <td key={column.head} class={styleOf(column)} data-head={at === 0 ? undefined : column.head}>
        {of[at]}
      </td>
    ))}
  </tr>
);

type PagerProps = {
  readonly page: number;
  readonly pages: number;
  readonly size: number;
  readonly rows: number;
  readonly setPage: (page: number) => void;
};

const Pager = ({ page, pages, size, rows, setPage }: PagerProps) => (
  <p class="buttons pager">
    <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
      Previous
    </button>
    <span role="status">
      {count(page * size + 1)}–{count(Math.min(rows, (page + 1) * size))} of {count(rows)}
    </span>
    <button type="button" disabled={page === pages - 1} onClick={() => setPage(page + 1)}>
      Next
    </button>
  </p>
);

function sort<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order | undefined,
): readonly Row[] {
  const by = columns.find(({ head }) => head === order?.head)?.sort;
  if (!by || !order) return rows;
  const up = (a: Row, b: Row) => {
    const [x, y] = [by(a), by(b)];
    return typeof x === 'string' ? x.localeCompare(String(y)) : x - Number(y);
  };
  return rows.toSorted(order.isDown ? (a, b) => up(b, a) : up);
}

/** A list that is read page by page. */
export type Pages<P> = {
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

/** All rows that were read, and a button that reads more. */
export const PagedTable = <P, Row>({
  of,
  rowsOf,
  page = Number.MAX_SAFE_INTEGER,
  isCut = false,
  ...table
}: PagedProps<P, Row>) => (
  <Answer of={of}>
    {({ pages }) => (
      <>
        <Table {...table} page={page} isCut={isCut || of.hasNextPage} rows={pages.flatMap(rowsOf)} />
        {of.hasNextPage && (
          <p class="buttons">
            <button type="button" disabled={of.isFetchingNextPage} onClick={() => of.fetchNextPage()}>
              Show more
            </button>
          </p>
        )}
      </>
    )}
  </Answer>
);
