import { isIP } from 'node:net';
import { isReserved, type PrivateUpstreams } from '@presign/outbound';
import { RefusedError } from '@presign/schema';

/**
 * Refuses an endpoint that could never be reached: plain HTTP, which is for endpoints of the operator's own network
 * only, private addresses, and names of the own machine (RFC 6761 §6.3). What another name resolves to is judged at
 * each attempt, by the address connected to.
 * @throws RefusedError `invalid_request`
 */
export function judgeUrl(url: string, allowPrivate: PrivateUpstreams): void {
  const { protocol, host, hostname, port } = new URL(url);
  if (allowPrivate === true) return;
  const where = port === '' ? `${host}:${protocol === 'https:' ? '443' : '80'}` : host;
  if (allowPrivate !== false && allowPrivate.has(where)) return;
  if (protocol !== 'https:') throw refuse('expected https');
  const literal = hostname.replace(/^\[|\]$/g, '');
  const isOwn = /^(.*\.)?localhost\.?$/.test(literal);
  if (isOwn || (isIP(literal) !== 0 && isReserved(literal))) throw refuse('expected a public address');
}

function refuse(problem: string): RefusedError {
  const message = `url: ${problem} (ALLOW_PRIVATE_UPSTREAMS=true at the issuer allows it).`;
  return new RefusedError({ code: 'invalid_request', param: 'url', message });
}
