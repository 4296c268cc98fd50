import { CREDENTIAL_QUERY_KEYS, type Credential, HOLDER_CREDENTIAL_HEADERS } from '@presign/providers';
import { ANSWER_HEADERS } from './cors.ts';
import type { FlatHeaders } from './flat-headers.ts';

/** RFC 9110 §7.6.1: meant for one hop, so never forwarded; `proxy-connection` is their old companion. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

const NOT_FORWARDED = new Set([
  ...HOP_BY_HOP,
  ...HOLDER_CREDENTIAL_HEADERS,
  'host',
  // Answered by this server already.
  'expect',
  'cookie',
  // Where the holder comes from is not the provider's business, and a browser's origin makes some refuse.
  'forwarded',
  'via',
  'origin',
  'referer',
  'true-client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-url',
  'x-rewrite-url',
  'x-real-ip',
  // They would make the provider run another method than the one that was checked.
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
]);
const NOT_FORWARDED_PREFIX = /^(x-forwarded-|cf-|sec-|x-presign-)/;

const NOT_RETURNED = new Set([
  ...HOP_BY_HOP,
  'forwarded',
  'via',
  // They speak for the provider's own host, not for the gateway's.
  'alt-svc',
  'clear-site-data',
  'nel',
  'public-key-pins',
  'report-to',
  'reporting-endpoints',
  'set-cookie',
  'set-cookie2',
  'refresh',
  'service-worker-allowed',
  // Commands to a proxy in front of this server: nginx, Apache, lighttpd, LiteSpeed, Perlbal.
  'x-sendfile',
  'x-lighttpd-send-file',
  'x-litespeed-location',
  'x-reproxy-url',
  'x-reproxy-file',
  'strict-transport-security',
  ...Object.keys(ANSWER_HEADERS),
]);
const NOT_RETURNED_PREFIX = /^(access-control-|x-accel-|x-forwarded-|x-presign-)/;

/**
 * The holder's headers as the provider gets them: without what is meant for this hop, without the holder's
 * own credentials, with the real one.
 */
export function requestHeaders(raw: readonly string[], credential: Credential, secret: string): FlatHeaders {
  const headers = holdersHeaders(raw);
  headers.push(
    credential.header,
    credential.header === 'authorization' ? `${credential.scheme} ${secret}` : secret,
  );
  return headers;
}

/** The holder's headers, without what is meant for this hop and without the holder's own credentials. */
export const holdersHeaders = (raw: readonly string[]): FlatHeaders => keep(raw, isForwarded);

/** CGI-like servers read `_` as `-` (RFC 3875 §4.1.18), so `Api_Key` may be another spelling of what is dropped. */
const isForwarded = (name: string) =>
  !NOT_FORWARDED.has(name) && !NOT_FORWARDED_PREFIX.test(name) && !name.includes('_');

/** The provider's headers as the holder gets them. */
export function responseHeaders(raw: readonly Buffer[] | readonly string[]): FlatHeaders {
  const text = raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
  return keep(text, (name) => !NOT_RETURNED.has(name) && !NOT_RETURNED_PREFIX.test(name));
}

/** The query without keys in which a provider takes credentials, and those given; the rest byte for byte. */
export function cleanQuery(query: string, dropped: ReadonlySet<string> = NO_KEYS): string {
  if (query === '') return '';
  const kept = query.split('&').filter((part) => {
    const key = queryKey(part);
    return !CREDENTIAL_QUERY_KEYS.has(key) && !dropped.has(key);
  });
  return kept.length > 0 ? `?${kept.join('&')}` : '';
}

const NO_KEYS: ReadonlySet<string> = new Set();

function queryKey(part: string): string {
  const key = (part.split('=', 1)[0] ?? '').replaceAll('+', ' ');
  try {
    return decodeURIComponent(key).trim().toLowerCase();
  } catch {
    return key.toLowerCase();
  }
}

function keep(raw: readonly string[], wanted: (name: string) => boolean): FlatHeaders {
  const nominated = connectionOptions(raw);
  const kept: FlatHeaders = [];
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    const lower = name.toLowerCase();
    if (wanted(lower) && !nominated.has(lower)) kept.push(name, raw[i + 1] ?? '');
  }
  return kept;
}

/** Headers that `Connection` names are per hop too (RFC 9110 §7.6.1). */
function connectionOptions(raw: readonly string[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (let i = 0; i < raw.length; i += 2) {
    if (raw[i]?.toLowerCase() !== 'connection') continue;
    for (const name of (raw[i + 1] ?? '').split(',')) names.add(name.trim().toLowerCase());
  }
  return names;
}
