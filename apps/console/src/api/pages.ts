import {
  infiniteQueryOptions,
  keepPreviousData,
  type QueryClient,
  useInfiniteQuery,
  useQuery,
} from '@tanstack/preact-query';
import { pagesIn, readAll, type Whole } from './read-all.ts';

type Page = { readonly next_cursor: string | null };
export type Cursor = { readonly cursor?: string; readonly limit: number };

/** The most entries of a page. */
export const PAGE = 50;

/** A list, page by page. */
export const usePages = <P extends Page>(
  key: readonly unknown[],
  ask: (at: Cursor) => Promise<P>,
  everyMs?: number,
  /** A list with more pages than this is not refreshed. */
  mostLive = MOST_LIVE,
) => useInfiniteQuery(pagesOf(key, ask, everyMs, mostLive));

/** Each refresh of a list costs at least one request for each page. */
const MOST_LIVE = 5;

type PagesRead = { readonly pages: readonly unknown[]; readonly pageParams: readonly unknown[] };

/** How a list is refreshed: one page every `everyMs`, however many pages there are. */
export const pagesOf = <P extends Page>(
  key: readonly unknown[],
  ask: (at: Cursor) => Promise<P>,
  everyMs: number | undefined,
  mostLive: number,
) => {
  const isShort = ({ state }: { readonly state: { readonly data?: PagesRead | undefined } }) =>
    (state.data?.pages.length ?? 0) <= mostLive;
  return infiniteQueryOptions({
    queryKey: key,
    meta: { mostLive },
    queryFn: ({ pageParam }: { pageParam: string | null }) =>
      ask(pageParam === null ? { limit: PAGE } : { limit: PAGE, cursor: pageParam }),
    initialPageParam: null as string | null,
    getNextPageParam: (last: P) => last.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: (query) =>
      everyMs !== undefined && isShort(query) ? everyMs * (query.state.data?.pages.length || 1) : false,
    refetchOnWindowFocus: isShort,
    refetchOnReconnect: isShort,
    refetchOnMount: isShort,
  });
};

/** A whole list, up to a bound. As in `pagesOf`, one page is refreshed every `everyMs`. */
export const useWhole = <T>(
  key: readonly unknown[],
  ask: (at: Cursor) => Promise<Page & { readonly data: readonly T[] }>,
  everyMs: number | undefined,
  enabled = true,
) =>
  useQuery<Whole<T>>({
    queryKey: key,
    enabled,
    queryFn: () => readAll(ask),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => everyMs !== undefined && everyMs * (state.data ? pagesIn(state.data) : 1),
  });

/** Reads everything that is shown again after a change. A long list keeps only its first pages. */
export function reload(client: QueryClient): Promise<void> {
  for (const { queryKey, meta } of client.getQueryCache().findAll()) {
    const most = meta?.['mostLive'];
    const read = client.getQueryData<PagesRead>(queryKey);
    if (typeof most !== 'number' || !read || read.pages.length <= most) continue;
    const [pages, pageParams] = [read.pages.slice(0, most), read.pageParams.slice(0, most)];
    client.setQueryData<PagesRead>(queryKey, { pages, pageParams });
  }
  return client.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'limits' });
}
