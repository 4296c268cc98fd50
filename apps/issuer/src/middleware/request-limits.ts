import { countRequest } from '@presign/limits';
import { RefusedError, rateLimited, rateLimitHeaders } from '@presign/schema';
import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { IssuerDeps, IssuerEnv } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { choosePartition } from '../issue/choose-partition.ts';

/** How long a request waits to be counted. */
const COUNTING_MS = 250;

/**
 * Counts the requests of an API key over all issuers, and refuses those above its limit for a minute with 429. While
 * Redis does not answer, requests pass uncounted: the URLs they issue have limits of their own, and issuing needs
 * only Postgres.
 */
export const limitRequests =
  ({ redis, requestsPerMinute }: IssuerDeps): MiddlewareHandler<IssuerEnv> =>
  async (c, next) => {
    const { id, requestsPerMinute: own } = c.get('apiKey');
    const counting = countRequest(redis, choosePartition(id), id, own ?? requestsPerMinute);
    const counted = await inTime(counting, COUNTING_MS).catch(() => undefined);
    if (counted && counted.waitMs > 0) throw new RefusedError(rateLimited(counted, 'This API key'));
    await next();
    for (const [name, value] of Object.entries(counted ? rateLimitHeaders(counted.rateLimit) : {}))
      c.header(name, value);
  };

/** Room for 64 KB of metadata in JSON's longest escapes. */
const BODY_MAX_BYTES = 1_048_576;

/**
 * Bounds the body of a request. A `Content-Length` is trusted, because Node reads no more than it says. Other bodies
 * are counted, which makes a whole `Request` with a stream and costs a fifth of what issuing does.
 * @throws RefusedError `body_too_large`
 */
export const limitBody: MiddlewareHandler = async (c, next) => {
  const length = c.req.header('content-length');
  if (length === undefined || c.req.header('transfer-encoding') !== undefined) return counted(c, next);
  if (Number(length) > BODY_MAX_BYTES) refuseLength();
  return next();
};

const refuseLength = (): never => {
  const message = `The body may have at most ${BODY_MAX_BYTES} bytes.`;
  throw new RefusedError({ code: 'body_too_large', message });
};

const counted = bodyLimit({ maxSize: BODY_MAX_BYTES, onError: refuseLength });
