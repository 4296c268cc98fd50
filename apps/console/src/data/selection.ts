/** The URLs that a user selected: some by their ids, or all of a filter except some. */
export type Selection = {
  readonly isAll: boolean;
  /** The selected ids, or the ids excluded from "all". */
  readonly ids: ReadonlySet<string>;
};

export const NOTHING: Selection = { isAll: false, ids: new Set() };
export const EVERYTHING: Selection = { isAll: true, ids: new Set() };

export const some = (ids: Iterable<string>): Selection => ({ isAll: false, ids: new Set(ids) });

/** The most URLs that can be selected, and the most pages that are read to find them. */
export const MOST_SELECTED = 1_000;
export const MOST_PAGES = 50;

type Row = { readonly id: string };

/** The listed rows that are selected. */
export const selectedOf = <R extends Row>({ isAll, ids }: Selection, rows: readonly R[]): readonly R[] =>
  rows.filter(({ id }) => isAll !== ids.has(id)).slice(0, MOST_SELECTED);

/** Selects or deselects rows. A row deselected from "all" stays deselected when more rows arrive. */
export function withRows({ isAll, ids }: Selection, rows: readonly string[], isOn: boolean): Selection {
  const next = new Set(ids);
  for (const id of rows) {
    if (isAll === isOn) next.delete(id);
    else next.add(id);
  }
  return { isAll, ids: next };
}

type List = { readonly hasNextPage: boolean; readonly pages: number; readonly rows: number };

/** Whether the rest of a list is read to select all of it. */
export const readsOn = ({ isAll }: Selection, { hasNextPage, pages, rows }: List): boolean =>
  isAll && hasNextPage && pages < MOST_PAGES && rows < MOST_SELECTED;
