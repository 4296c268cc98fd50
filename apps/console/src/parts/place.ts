import { useLayoutEffect, useState } from 'preact/hooks';

/** A place in the console. The address has it behind its `#`, so the server's log has neither ids nor filters. */
export type Place = {
  /** `['sessions', id]` */
  readonly path: readonly string[];
  readonly params: Readonly<Record<string, string>>;
};

/** The address of a place within the console. Parameters that are empty are left out. */
export function href(path: string, params: Readonly<Record<string, string | undefined>> = {}): string {
  const given = Object.entries(params).filter((each): each is [string, string] => Boolean(each[1]));
  const query = new URLSearchParams(given).toString();
  return `#/${path}${query === '' ? '' : `?${query}`}`;
}

function read(): Place {
  const [path = '', query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decode);
  return { path: parts, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** A typed address may have a `%` that encodes nothing. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function usePlace(): Place {
  const [place, setPlace] = useState(read);
  // Before the browser can react to the reader, so that no change of the address is missed.
  useLayoutEffect(() => {
    const follow = () => setPlace(read());
    addEventListener('hashchange', follow);
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}
