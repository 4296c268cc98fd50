import { isIP } from 'node:net';

/** A cookie of a server. All requests of a session have one origin, so neither domain nor `Secure` is stored. */
export type Cookie = {
  readonly name: string;
  readonly value: string;
  readonly path: string;
  /** Unix ms. Undefined: until its session ends. */
  readonly untilMs?: number | undefined;
};

/** The target of a request. */
export type Place = { readonly origin: string; readonly path: string };

/**
 * Reads the cookies that an answer sets (RFC 6265 §5.2 and §5.3). A cookie for another host, and a `Secure` one without TLS, is ignored.
 * @param headers the values of `Set-Cookie`, in order
 * @param mostChars cookies beyond this length are omitted
 */
export function readCookies(
  headers: readonly string[],
  place: Place,
  nowMs: number,
  mostChars: number,
): readonly Cookie[] {
  const found = new Map<string, Cookie>();
  for (const header of headers) {
    const read = readCookie(header, place, nowMs);
    if (!read) continue;
    const key = JSON.stringify([read.cookie.name, read.domain, read.cookie.path]);
    // An expired cookie removes an earlier one.
    if ((read.cookie.untilMs ?? nowMs + 1) <= nowMs) found.delete(key);
    else found.set(key, read.cookie);
  }
  let left = mostChars;
  return [...found.values()].filter((each) => {
    const chars = JSON.stringify(each).length;
    if (chars > left) return false;
    left -= chars;
    return true;
  });
}

/** The value of `Cookie` for a request (RFC 6265 §5.4), with longer paths first. Undefined if no cookie applies. */
export function cookieHeader(cookies: readonly Cookie[], path: string, nowMs: number): string | undefined {
  const sent = cookies.filter(
    (each) => isPathIn(each.path, path) && (each.untilMs === undefined || each.untilMs > nowMs),
  );
  if (sent.length === 0) return undefined;
  return sent
    .sort((a, b) => b.path.length - a.path.length)
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ');
}

/** RFC 6265 §5.1.4. */
const isPathIn = (within: string, path: string): boolean =>
  path === within || (path.startsWith(within) && (within.endsWith('/') || path[within.length] === '/'));

function readCookie(text: string, { origin, path }: Place, nowMs: number) {
  const [pair = '', ...rest] = text.split(';');
  const equals = pair.indexOf('=');
  const name = pair.slice(0, equals).trim();
  if (equals < 1 || name === '' || CONTROL.test(pair)) return undefined;
  const attributes = new Map(rest.map(attributeOf));
  const { protocol, hostname } = new URL(origin);
  const domain = attributes.get('domain')?.replace(/^\./, '').toLowerCase() ?? '';
  if (domain !== '' && !isHostIn(domain, hostname)) return undefined;
  if (attributes.has('secure') && protocol !== 'https:') return undefined;
  const value = pair.slice(equals + 1).trim();
  const given = attributes.get('path');
  const own = given?.startsWith('/') && !CONTROL.test(given) ? given : defaultPath(path);
  return { domain, cookie: { name, value, path: own, untilMs: endOf(attributes, nowMs) } };
}

/** RFC 6265bis, "The Set-Cookie Header Field": such a cookie is ignored. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that no header may have
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/** The last one of each name counts. */
function attributeOf(text: string): [string, string] {
  const equals = text.indexOf('=');
  const name = equals < 0 ? text : text.slice(0, equals);
  return [name.trim().toLowerCase(), equals < 0 ? '' : text.slice(equals + 1).trim()];
}

/** RFC 6265 §5.1.3. */
const isHostIn = (domain: string, host: string): boolean =>
  host === domain || (host.endsWith(`.${domain}`) && isIP(host) === 0);

const defaultPath = (path: string): string => path.slice(0, Math.max(1, path.lastIndexOf('/')));

/** `Max-Age` wins over `Expires`. One that cannot be read is ignored. */
function endOf(attributes: ReadonlyMap<string, string>, nowMs: number): number | undefined {
  const seconds = attributes.get('max-age') ?? '';
  if (/^-?\d+$/.test(seconds)) return nowMs + Number(seconds) * 1_000;
  const date = Date.parse(attributes.get('expires') ?? '');
  return Number.isNaN(date) ? undefined : date;
}
