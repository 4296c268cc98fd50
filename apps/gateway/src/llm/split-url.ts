const PREFIX = '/llm/t/';

/** Scheme and authority of a request target in absolute form, which a server must accept (RFC 9112 §3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i;

/** Takes `/llm/t/<token><path>?<query>` apart, byte for byte; the parts of any other target are empty. */
export function splitUrl(target: string): { token: string; path: string; query: string } {
  const url = target.startsWith('/') ? target : target.replace(ORIGIN, '');
  if (!url.startsWith(PREFIX)) return { token: '', path: '', query: '' };
  const mark = url.indexOf('?');
  const end = mark < 0 ? url.length : mark;
  const slash = url.indexOf('/', PREFIX.length);
  const tokenEnd = slash < 0 || slash > end ? end : slash;
  return {
    token: url.slice(PREFIX.length, tokenEnd),
    path: url.slice(tokenEnd, end),
    query: url.slice(end + 1),
  };
}
