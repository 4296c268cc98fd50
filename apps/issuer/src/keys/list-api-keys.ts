import { apiKeyPage, pageQuery } from '@presign/schema';
import { apiKeys } from '@presign/schema/tables';
import { and, eq, getTableColumns } from 'drizzle-orm';
import { inTime } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { tellApiKey } from './tell-api-key.ts';

/** `GET /v1/api-keys`: the account's keys, newest first; those that are revoked or have expired, too. */
export const listApiKeys = route(
  {
    method: 'get',
    path: '/v1/api-keys',
    summary: 'API keys, newest first, without the keys themselves',
    scope: 'admin',
    query: pageQuery,
    answer: apiKeyPage,
  },
  ({ db }) =>
    async ({ apiKey, query }) => {
      const rows = db
        .select({ ...getTableColumns(apiKeys), micros: micros(apiKeys.createdAt) })
        .from(apiKeys)
        .where(and(eq(apiKeys.accountId, apiKey.accountId), after(query.cursor, apiKeys)))
        .orderBy(...newestFirst(apiKeys))
        .limit(query.limit + 1);
      return pageOfRows(await inTime(rows), query.limit, tellApiKey);
    },
);
