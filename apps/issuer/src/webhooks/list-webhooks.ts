import { pageQuery, webhookPage } from '@presign/schema';
import { webhooks } from '@presign/schema/webhook-tables';
import { and, eq, getTableColumns } from 'drizzle-orm';
import { inTime } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { tellWebhook } from './find-webhook.ts';

/** `GET /v1/webhooks`: an account's endpoints, newest first. */
export const listWebhooks = route(
  {
    method: 'get',
    path: '/v1/webhooks',
    summary: 'List the endpoints that are told of events',
    scope: 'admin',
    query: pageQuery,
    answer: webhookPage,
  },
  (deps) =>
    async ({ apiKey, query: { limit, cursor } }) => {
      const rows = await inTime(
        deps.db
          .select({ ...getTableColumns(webhooks), micros: micros(webhooks.createdAt) })
          .from(webhooks)
          .where(and(eq(webhooks.accountId, apiKey.accountId), after(cursor, webhooks)))
          .orderBy(...newestFirst(webhooks))
          .limit(limit + 1),
      );
      return pageOfRows(rows, limit, (row) => tellWebhook(row, deps.now()));
    },
);
