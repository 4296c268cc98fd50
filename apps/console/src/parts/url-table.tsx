import type { JSX } from 'preact';
import { useContext, useEffect, useState } from 'preact/hooks';
import { count, money, usedOf } from '../data/format.ts';
import { shareUsed } from '../data/shared-budget.ts';
import { isLive, nameOfUrl, type Url } from '../data/urls.ts';
import { ChangeUrl, ChangeUrls } from './change-urls.tsx';
import { Fullness, NotLive, Status, User, When } from './facts.tsx';
import { href, hrefOf } from './place.ts';
import { Rights } from './rights.ts';
import { type Column, PagedTable, type Pages } from './table.tsx';

type UrlTableProps<P> = {
  readonly of: Pages<P>;
  readonly rowsOf: (page: P) => readonly Url[];
  readonly caption: string;
  readonly empty: string;
  /** Whether each row has buttons of its own. */
  readonly hasButtons?: boolean;
};

/** The most URLs that one press selects. */
const MOST_SELECTED = 1_000;

/** URLs with their figures. Those that are selected can be changed together. */
export function UrlTable<P>({ of, rowsOf, hasButtons = false, ...table }: UrlTableProps<P>) {
  const can = useContext(Rights);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const rows = of.data?.pages.flatMap(rowsOf) ?? [];
  const live = rows.filter(isLive);
  const select = (ids: readonly string[], isOn: boolean) =>
    setSelected(
      (before) => new Set(isOn ? [...before, ...ids] : [...before].filter((id) => !ids.includes(id))),
    );
  const columns = can('presign') ? [selectable(selected, select), ...COLUMNS.slice(1)] : COLUMNS;
  return (
    <>
      {rows.some((url) => url.live === null) && <NotLive />}
      {can('presign') ? (
        <Selection of={of} live={live} selected={selected} select={select} />
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
      />
    </>
  );
}

const ROWS = 50;

type Select = (ids: readonly string[], isOn: boolean) => void;

type SelectionProps<P> = {
  readonly of: Pages<P>;
  /** The listed URLs that can be changed. */
  readonly live: readonly Url[];
  readonly selected: ReadonlySet<string>;
  readonly select: Select;
};

/** Selects all URLs of the filter, and changes those that are selected. */
function Selection<P>({ of, live, selected, select }: SelectionProps<P>) {
  const chosen = live.filter(({ id }) => selected.has(id));
  const ids = live.map(({ id }) => id);
  const [isReading, readAll] = useReadAll(of, live.length);
  const selectAll = (event: JSX.TargetedEvent<HTMLInputElement>) => {
    select(ids, event.currentTarget.checked);
    if (event.currentTarget.checked) readAll();
  };
  // While pages arrive, their URLs are selected, too.
  useEffect(() => {
    if (isReading) select(ids, true);
  }, [isReading, live.length]);
  return (
    <section class="selection buttons" aria-label="Selected URLs" tabIndex={-1}>
      <label>
        <input
          type="checkbox"
          checked={chosen.length > 0 && chosen.length === live.length}
          disabled={live.length === 0}
          onChange={selectAll}
        />{' '}
        All of this filter
      </label>
      <span role="status">
        {count(chosen.length)} selected
        {isReading && '. Reading on…'}
        {!isReading &&
          chosen.length >= MOST_SELECTED &&
          of.hasNextPage &&
          `. There are more than ${count(MOST_SELECTED)}.`}
      </span>
      {chosen.length > 0 && !isReading && (
        <ChangeUrls urls={chosen} leave={(done) => select([...done], false)} />
      )}
    </section>
  );
}

/** Reads the rest of a list, page by page, until it has enough rows. */
function useReadAll<P>(of: Pages<P>, rows: number): readonly [boolean, () => void] {
  const [isOn, setOn] = useState(false);
  const isOpen = of.hasNextPage && rows < MOST_SELECTED && !of.error;
  useEffect(() => {
    if (isOn && !isOpen) setOn(false);
    else if (isOn && !of.isFetchingNextPage) of.fetchNextPage();
  }, [isOn, isOpen, of.isFetchingNextPage]);
  return [isOn && isOpen, () => setOn(true)];
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
