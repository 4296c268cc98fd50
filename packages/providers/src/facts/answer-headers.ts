import type { Names } from './fact.ts';

/**
 * Headers that pass from every upstream, MCP servers included. All others are dropped, because a browser acts on some of them,
 * and new ones may come. `*` at the end of a name stands for any characters. A provider has more of its own (`answerHeaders`).
 */

/** The content, and how it may be stored. */
export const CONTENT: Names = {
  source: 'RFC 9110 §8, §10.2.1, §14, §15.4; RFC 9111; RFC 9530; RFC 1864',
  date: '2026-11-26',
  names: [
    ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-disposition'],
    ...['content-range', 'accept-ranges', 'etag', 'last-modified'],
    ...['content-digest', 'repr-digest', 'content-md5'],
    ...['age', 'cache-control', 'date', 'expires', 'pragma', 'vary', 'warning', 'allow'],
  ],
};

/** Files are fetched through redirects. The URL stays out of `Referer`: the answer has a `Referrer-Policy`. */
export const REDIRECTS: Names = { source: 'RFC 9110 §10.2.2', date: '2026-11-26', names: ['location'] };

/** When to call again. */
export const RETRIES: Names = {
  source: 'draft-ietf-httpapi-ratelimit-headers; `openai` 6.49 and `@anthropic-ai/sdk` 1.14, core',
  date: '2026-11-26',
  names: ['retry-after', 'retry-after-ms', 'x-should-retry', 'ratelimit', 'ratelimit-*', 'x-ratelimit-*'],
};

/** An endpoint that ends. */
export const ENDS: Names = {
  source: 'RFC 9745 and RFC 8594',
  date: '2026-11-26',
  names: ['deprecation', 'sunset'],
};

/** Ids to name when asking a provider for help, and how long it took. */
export const HELP: Names = {
  source: 'recorded answers of the built-in providers',
  date: '2026-11-26',
  names: [
    ...['x-request-id', 'request-id', 'x-correlation-id', 'x-trace-id', 'cf-ray', 'server-timing'],
    ...['x-envoy-upstream-service-time', 'x-response-time', 'x-process-time'],
  ],
};

/** The headers that an MCP server sends and a client reads. */
export const MCP: Names = {
  source: 'Model Context Protocol, 2026-03, Transports',
  date: '2026-11-26',
  names: ['mcp-session-id', 'mcp-protocol-version'],
};
