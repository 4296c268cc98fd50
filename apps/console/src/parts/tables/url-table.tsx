import type { JSX } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { count, money, usedOf } from '../../data/format/format.ts';
import {
  EVERYTHING,
  MOST_SELECTED,
  NOTHING,
  readsOn,
  type Selection,
  selectedOf,
  some,
  withRows,
} from '../../data/selection.ts';
import { shareUsed } from '../../data/shared-budget.ts';
import { isLive, nameOfUrl, type Url } from '../../data/urls.ts';
import { Fullness, NotLive, Status, User, When } from '../page/facts.tsx';
import { href, hrefOf } from '../page/place.ts';
import { Rights } from '../page/rights.ts';
import { ChangeUrl, ChangeUrls } from './change-urls.tsx';
import { type Column, PagedTable, type Pages } from './table.tsx';

type UrlTableProps<P> = {
  readonly of: Pages<P>;
  readonly rowsOf: (page: P) => readonly Url[];
  readonly caption: string;
  readonly empty: string;
  /** Whether each row has buttons of its own. */
  readonly hasButtons?: boolean;
};

/** URLs with their figures. Those that are selected can be changed together. */
export function UrlTable<P>({ of, rowsOf, hasButtons = false, ...table }: UrlTableProps<P>) {
  const can = useContext(Rights);
  const [selection, setSelection] = useState(NOTHING);
  const pages = of.data?.pages ?? [];
  const rows = pages.flatMap(rowsOf);
  const live = rows.filter(isLive);
  const chosen = selectedOf(selection, live);
  const select: Select = (ids, isOn) => setSelection((before) => withRows(before, ids, isOn));
  const selected = new Set(chosen.map(({ id }) => id));
  const columns = can('presign') ? [selectable(selected, select), ...COLUMNS.slice(1)] : COLUMNS;
  const isMore = of.hasNextPage || live.length > MOST_SELECTED;
  return (
    <>
      {rows.some((url) => url.live === null) && <NotLive />}
      {can('presign') ? (
        <SelectionBar
          of={of}
          live={live.length}
          chosen={chosen}
          isMore={isMore}
          {...{ selection, setSelection }}
        />
      ) : (
        <p class="soft">
          This API key may read URLs and not change them. To raise, extend or revoke them, sign in with a key
          that has the scope presign.
        </p>
      )}
      <PagedTable
        {...table}
        of={of}
        rowsOf={rowsOf}
        page={ROWS}
        keyOf={({ id }) => id}
        columns={hasButtons && can('presign') ? [...columns, CHANGE] : columns}
        isDense
      />
    </>
  );
}

const ROWS = 50;

type Select = (ids: readonly string[], isOn: boolean) => void;

type SelectionProps<P> = {
  readonly of: Pages<P>;
  /** How many listed URLs can be changed. */
  readonly live: number;
  readonly chosen: readonly Url[];
  /** Whether more URLs may match than are listed. */
  readonly isMore: boolean;
  readonly selection: Selection;
  readonly setSelection: (selection: Selection) => void;
};

/** Selects all URLs of the filter, and changes those that are selected. */
function SelectionBar<P>({ of, live, chosen, isMore, selection, setSelection }: SelectionProps<P>) {
  const [isOpen, setOpen] = useState(false);
  const isReading = useReadAll(of, selection, live) && !isOpen;
  const more =
    selection.isAll && isMore ? 'More URLs may fit this filter: only those that were read are selected.' : '';
  const ids = () => chosen.map(({ id }) => id);
  return (
    <section class="selection buttons" aria-label="Selected URLs" tabIndex={-1}>
      <label>
        <input
          type="checkbox"
          checked={
            selection.isAll
              ? selection.ids.size === 0
              : chosen.length > 0 && chosen.length === Math.min(live, MOST_SELECTED)
          }
          disabled={live === 0 && !of.hasNextPage}
          onChange={(event) => setSelection(event.currentTarget.checked ? EVERYTHING : NOTHING)}
        />{' '}
        All of this filter
      </label>
      <span role="status">
        {count(chosen.length)} selected
        {isReading ? '. Reading on…' : more && `. ${more}`}
      </span>
      {isReading && (
        <button type="button" onClick={() => setSelection(some(ids()))}>
          Stop
        </button>
      )}
      {/* A dialog stays while its URLs end. */}
      {((chosen.length > 0 && !isReading) || isOpen) && (
        <ChangeUrls
          urls={chosen}
          more={more}
          onOpen={setOpen}
          leave={(done) => setSelection(some(ids().filter((id) => !done.has(id))))}
        />
      )}
    </section>
  );
}

/** Reads the rest of a list, page by page, while all of it are selected. */
function useReadAll<P>(of: Pages<P>, selection: Selection, rows: number): boolean {
  const { hasNextPage, isFetchingNextPage, error } = of;
  const pages = of.data?.pages.length ?? 0;
  const isReading = !error && readsOn(selection, { hasNextPage, pages, rows });
  useEffect(() => {
    if (isReading && !isFetchingNextPage) of.fetchNextPage();
  }, [isReading, isFetchingNextPage, pages]);
  return isReading;
}

/** The first column with a box for each URL. With Shift, all between it and the last one that was pressed. */
function selectable(selected: ReadonlySet<string>, select: Select): Column<Url> {
  return {
    ...NAME,
    cell: (url) => (
      <span class="pick">
        <input
          type="checkbox"
          value={url.id}
          aria-label={`Select ${nameOfUrl(url)}`}
          checked={selected.has(url.id) && isLive(url)}
          disabled={!isLive(url)}
          onClick={(event) => select(pressedIn(event), event.currentTarget.checked)}
        />
        {NAME.cell(url)}
      </span>
    ),
  };
}

/** The ids that a press is for. The last box that was pressed is marked, because the table may be sorted. */
function pressedIn({ currentTarget: own, shiftKey }: JSX.TargetedMouseEvent<HTMLInputElement>): string[] {
  const boxes = [...(own.closest('table')?.querySelectorAll<HTMLInputElement>('.pick input') ?? [])];
  const [at, last] = [boxes.indexOf(own), boxes.findIndex((each) => each.dataset.last === '')];
  for (const each of boxes) delete each.dataset.last;
  own.dataset.last = '';
  const between = shiftKey && last >= 0 ? boxes.slice(Math.min(at, last), Math.max(at, last) + 1) : [own];
  return between.flatMap(({ value, disabled }) => (disabled ? [] : value));
}

const NAME: Column<Url> = {
  head: 'URL',
  cell: (url) => <a href={hrefOf('urls/url', url.id)}>{nameOfUrl(url)}</a>,
  sort: nameOfUrl,
};

/** The figures of Redis, or those of the ledger if Redis does not answer. */
export const figuresOfUrl = ({ live, settled }: Url) => live ?? settled;
export const shareOfUrl = (url: Url): number => shareUsed(url, figuresOfUrl(url));

export const providerOfUrl = ({ provider, server, kind }: Url): string =>
  kind === 'mcp_bundle' ? 'MCP bundle' : (server?.name ?? provider);

const COLUMNS: readonly Column<Url>[] = [
  NAME,
  {
    head: 'User',
    cell: ({ external_user: user }) => <User of={user} />,
    sort: (url) => url.external_user ?? '',
  },
  { head: 'State', cell: ({ status }) => <Status of={status} />, sort: ({ status }) => status },
  {
    head: 'Full',
    cell: (url) =>
      url.cost_limit === null && url.max_uses === null ? (
        'no limit'
      ) : (
        <Fullness of={nameOfUrl(url)} used={shareOfUrl(url)} most={1} />
      ),
    sort: (url) => -shareOfUrl(url),
  },
  {
    head: 'Spent',
    figure: true,
    cell: (url) => usedOf(figuresOfUrl(url).spent, url.cost_limit, money),
    sort: (url) => figuresOfUrl(url).spent,
  },
  {
    head: 'Uses',
    figure: true,
    cell: (url) => usedOf(figuresOfUrl(url).used, url.max_uses, count),
    sort: (url) => figuresOfUrl(url).used,
  },
  { head: 'Provider', cell: providerOfUrl, sort: providerOfUrl },
  {
    head: 'Models',
    cell: ({ models }) => models?.join(', ') ?? 'all',
    sort: ({ models }) => models?.join() ?? '',
  },
  { head: 'Ends', cell: ({ expires_at: at }) => <When at={at} />, sort: ({ expires_at: at }) => at },
  { head: 'Calls', cell: ({ id }) => <a href={href('requests', { grant_id: id })}>Calls</a> },
];

const CHANGE: Column<Url> = {
  head: 'Change',
  actions: true,
  cell: (url) => (isLive(url) ? <ChangeUrl url={url} /> : '–'),
};
