import { isIP } from 'node:net';
import { isReserved, type PrivateUpstreams } from '@presign/outbound';
import { RefusedError } from '@presign/schema';

/**
 * Refuses an endpoint that could never be reached: plain HTTP, which is for endpoints of the operator's own network
 * only, and private addresses. What a name resolves to is judged at each attempt, by the address connected to.
 * @throws RefusedError `invalid_request`
 */
export function judgeUrl(url: string, allowPrivate: PrivateUpstreams): void {
  const { protocol, host, hostname, port } = new URL(url);
  if (allowPrivate === true) return;
  const where = port === '' ? `${host}:${protocol === 'https:' ? '443' : '80'}` : host;
  if (allowPrivate !== false && allowPrivate.has(where)) return;
  if (protocol !== 'https:') throw refuse('expected https');
  const literal = hostname.replace(/^\[|\]$/g, '');
  if (isIP(literal) !== 0 && isReserved(literal)) throw refuse('expected a public address');
}

const refuse = (problem: string) =>
  new RefusedError({ code: 'invalid_request', param: 'url', message: `url: ${problem}.` });
