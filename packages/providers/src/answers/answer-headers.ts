import type { Provider } from '../provider.ts';
import { actedOnBy } from './acted-on.ts';

/** Whether a header of an upstream's answer (its name in lower case) reaches the holder. */
export type AnswerHeaders = (name: string) => boolean;

/**
 * Headers that pass from every upstream, MCP servers included. All others are dropped, because a browser acts on some of them,
 * and new ones may come. `*` at the end of a name stands for any characters.
 */
const OF_ALL = [
  // The content, and how it may be stored (RFC 9110 §8, §14, §15.4; RFC 9111; RFC 9530).
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-disposition'],
  ...[
    'content-range',
    'accept-ranges',
    'etag',
    'last-modified',
    'content-digest',
    'repr-digest',
    'content-md5',
  ],
  ...['age', 'cache-control', 'date', 'expires', 'pragma', 'vary', 'warning', 'allow'],
  // Files are fetched through redirects. The URL stays out of `Referer`: the answer has a `Referrer-Policy`.
  'location',
  // When to call again: draft-ietf-httpapi-ratelimit-headers, and all official SDKs.
  ...['retry-after', 'retry-after-ms', 'x-should-retry', 'ratelimit', 'ratelimit-*', 'x-ratelimit-*'],
  // RFC 9745 and RFC 8594: an endpoint that ends.
  ...['deprecation', 'sunset'],
  // Ids to name when asking a provider for help, and how long it took.
  ...['x-request-id', 'request-id', 'x-correlation-id', 'x-trace-id', 'cf-ray', 'server-timing'],
  ...['x-envoy-upstream-service-time', 'x-response-time', 'x-process-time'],
  // Model Context Protocol, 2026-03: the headers that a server sends and a client reads.
  ...['mcp-session-id', 'mcp-protocol-version'],
];

/** The headers that pass from every upstream. */
export const ANSWER_HEADERS_OF_ALL: AnswerHeaders = compile(OF_ALL);

const compiled = new WeakMap<Provider, AnswerHeaders>();

/** The headers that pass from a provider: those of every upstream, and its own. */
export function answerHeadersOf(provider: Provider): AnswerHeaders {
  const known = compiled.get(provider);
  if (known) return known;
  const { answerHeaders = [] } = provider;
  const own = answerHeaders.length === 0 ? ANSWER_HEADERS_OF_ALL : compile([...OF_ALL, ...answerHeaders]);
  compiled.set(provider, own);
  return own;
}

function compile(entries: readonly string[]): AnswerHeaders {
  const names = new Set(entries.filter((entry) => !entry.endsWith('*')));
  const starts = entries.filter((entry) => entry.endsWith('*')).map((entry) => entry.slice(0, -1));
  const begins = new RegExp(`^(?:${starts.join('|')})`);
  return (name) => names.has(name) || begins.test(name);
}

/** A name of RFC 9110 §5.6.2 in letters, digits, `-` and `_`; at the end `*`, after at least two letters and a `-`. */
const ENTRY = /^(?:[a-z0-9][a-z0-9_-]{0,63}|[a-z0-9]{2,32}-(?:[a-z0-9-]{0,31}-)?\*|x-[a-z0-9-]{1,60}-\*)$/;

/** Why an entry cannot be on an allow-list. Undefined: it can. */
export function answerHeaderProblem(entry: string): string | undefined {
  if (!ENTRY.test(entry))
    return 'expected the name of a header in lower case, or the beginning of names up to a hyphen and *, as in "acme-*"';
  const never = actedOnBy(entry);
  if (never === undefined) return undefined;
  return `"${entry}" would let "${never}" pass, on which browsers or proxies act`;
}
