import { useLayoutEffect, useState } from 'preact/hooks';
import { RANGE_PARAMS } from '../../data/format/range.ts';

/** A place in the console. It is in the fragment of the address, so that the server's log contains neither ids nor filters. */
export type Place = {
  /** `['urls', id]` */
  readonly path: readonly string[];
  readonly params: Readonly<Record<string, string>>;
};

type Params = Readonly<Record<string, string | undefined>>;

/** The address of a place in the console, with the range of all pages. Empty parameters are omitted. */
export const href = (path: string, params: Params = {}): string =>
  exactHref(path, { ...rangeOnly(placeNow()), ...params });

/** The address of a place with these parameters alone. */
export function exactHref(path: string, params: Params): string {
  const given = Object.entries(params).filter((each): each is [string, string] => Boolean(each[1]));
  const query = new URLSearchParams(given).toString();
  return `#/${path}${query === '' ? '' : `?${query}`}`;
}

/** The address of a page of one thing, whose name may have any characters. */
export const hrefOf = (path: string, name: string): string => href(`${path}/${encodeURIComponent(name)}`);

/** The parameters of the time that all pages show. */
export const rangeOnly = ({ params }: Place): Record<string, string> =>
  Object.fromEntries(
    RANGE_PARAMS.flatMap((name) => (params[name] === undefined ? [] : [[name, params[name]]])),
  );

/** The filters of a page: its parameters without those of the time. */
export const filtersIn = (params: Place['params']): Record<string, string> =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !RANGE_PARAMS.some((each) => each === name)));

/** The place in the address at this moment. A component may not have rendered it yet. */
export function placeNow(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decode);
  return { path: parts, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** A typed address may contain an invalid `%`. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(placeNow);
  // Runs before the browser handles input, so that no change of the address is missed.
  useLayoutEffect(() => {
    const follow = () => setPlace(placeNow());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}
