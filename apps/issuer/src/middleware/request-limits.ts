import { countRequest } from '@presign/limits';
import { RefusedError, rateLimited, rateLimitHeaders } from '@presign/schema';
import type { MiddlewareHandler } from 'hono';
import type { IssuerDeps, IssuerEnv } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { choosePartition } from '../issue/choose-partition.ts';

/** How long a request waits to be counted. */
const COUNTING_MS = 250;

/**
 * Counts the requests of an API key over all issuers, and refuses those beyond its minute's with 429. While Redis
 * does not answer they pass uncounted: what they issue is limited by itself, and issuing needs Postgres alone.
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
