import { deliveriesQuery, deliveryPage } from '@presign/schema';
import { webhookDeliveries, webhookEvents } from '@presign/schema/webhook-tables';
import { and, eq } from 'drizzle-orm';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { after, micros, newestFirst, pageOfRows } from '../page.ts';
import { route } from '../route.ts';
import { findWebhook } from './find-webhook.ts';
import { tellDelivery } from './tell-delivery.ts';

/** `GET /v1/webhooks/{id}/deliveries`: what was sent to an endpoint in the last 30 days, newest first. */
export const listDeliveries = route(
  {
    method: 'get',
    path: '/v1/webhooks/{id}/deliveries',
    summary: "An endpoint's deliveries, their attempts and how the last one ended",
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    query: deliveriesQuery,
    answer: deliveryPage,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params, query: { limit, cursor, status } }) => {
      const webhook = await inTime(findWebhook(deps.db, apiKey.accountId, params.id));
      const rows = await inTime(
        deps.db
          .select({
            delivery: webhookDeliveries,
            type: webhookEvents.type,
            id: webhookDeliveries.id,
            micros: micros(webhookDeliveries.createdAt),
          })
          .from(webhookDeliveries)
          .innerJoin(webhookEvents, eq(webhookEvents.id, webhookDeliveries.eventId))
          .where(
            and(
              eq(webhookDeliveries.webhookId, webhook.id),
              status && eq(webhookDeliveries.status, status),
              after(cursor, webhookDeliveries),
            ),
          )
          .orderBy(...newestFirst(webhookDeliveries))
          .limit(limit + 1),
      );
      return pageOfRows(rows, limit, ({ delivery, type }) => tellDelivery(delivery, type));
    },
);
