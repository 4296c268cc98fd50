import {
  type DeliveryAnswer,
  deliveriesQuery,
  deliveryAnswer,
  deliveryPage,
  idParams,
  RefusedError,
  type WebhookEvent,
} from '@presign/schema';
import { webhookDeliveries, webhookEvents } from '@presign/schema/webhook-tables';
import type { Transaction } from '@presign/service/database';
import { and, eq, sql } from 'drizzle-orm';
import * as z from 'zod';
import { after, micros, newestFirst, pageOfRows } from '../answers/page.ts';
import { unixSeconds } from '../answers/unix-seconds.ts';
import { recordChange } from '../events/audit-log.ts';
import { sendTo } from '../events/record-events.ts';
import type { Actor } from '../identity/caller.ts';
import { inTime } from '../middleware/in-time.ts';
import { route } from '../middleware/route.ts';
import { findWebhook, lockWebhook, type WebhookRow } from './endpoints.ts';

/** `GET /v1/webhooks/{id}/deliveries`: the deliveries to an endpoint in the last 30 days, newest first. */
export const listDeliveries = route(
  {
    method: 'get',
    path: '/v1/webhooks/{id}/deliveries',
    summary: "List an endpoint's deliveries, their attempts and the result of the last one",
    scope: 'admin',
    params: idParams,
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
      return pageOfRows(rows, limit, ({ delivery, type }) => describeDelivery(delivery, type));
    },
);

/**
 * `POST /v1/webhooks/{id}/deliveries/{delivery_id}/replay`: sends the same event with the same `webhook-id` again,
 * starting with the first attempt.
 */
export const replayDelivery = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/deliveries/{delivery_id}/replay',
    summary: 'Deliver an event again, whether or not it arrived',
    scope: 'admin',
    params: z.object({ id: z.guid(), delivery_id: z.guid() }),
    answer: deliveryAnswer,
    errors: ['invalid_request', 'not_found'],
  },
  (deps) =>
    async ({ by, params }) => {
      const webhook = await inTime(findWebhook(deps.db, by.accountId, params.id));
      return inTime(deps.db.transaction((tx) => replay(tx, by, webhook, params.delivery_id)));
    },
);

async function replay(
  db: Transaction,
  by: Actor,
  webhook: WebhookRow,
  deliveryId: string,
): Promise<DeliveryAnswer> {
  refuseDisabled(webhook);
  const [row] = await db
    .update(webhookDeliveries)
    .set({
      status: 'pending',
      attempts: 0,
      // The result of a running attempt no longer counts.
      claims: sql`${webhookDeliveries.claims} + 1`,
      nextTryAt: sql`now()`,
      deliveredAt: null,
    })
    .where(and(eq(webhookDeliveries.id, deliveryId), eq(webhookDeliveries.webhookId, webhook.id)))
    .returning();
  const ofEvent = eq(webhookEvents.id, row?.eventId ?? deliveryId);
  const [event] = await db.select({ type: webhookEvents.type }).from(webhookEvents).where(ofEvent);
  if (!row || !event) throw new RefusedError({ code: 'not_found' });
  const target = { kind: 'delivery', id: deliveryId } as const;
  const after = { webhook: webhook.id, status: row.status };
  await recordChange(db, by, { action: 'delivery.replayed', target, after });
  return describeDelivery(row, event.type);
}

/** `POST /v1/webhooks/{id}/test`: sends `webhook.test` to this endpoint, whatever events it subscribes to. */
export const testWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/test',
    summary: 'Send a test event to an endpoint',
    scope: 'admin',
    params: idParams,
    answer: deliveryAnswer,
    status: 201,
    errors: ['invalid_request', 'not_found'],
  },
  (deps) =>
    async ({ by, params }) =>
      inTime(
        deps.db.transaction(async (tx) => {
          const webhook = await lockWebhook(tx, by.accountId, params.id);
          refuseDisabled(webhook);
          const timestamp = new Date(deps.now()).toISOString();
          const event: WebhookEvent = { type: 'webhook.test', timestamp, data: { webhook_id: webhook.id } };
          const delivery = describeDelivery(await sendTo(tx, webhook, event), event.type);
          const target = { kind: 'webhook', id: webhook.id } as const;
          await recordChange(tx, by, { action: 'webhook.tested', target, after: { delivery: delivery.id } });
          return delivery;
        }),
      ),
);

/**
 * Refuses to send to a disabled endpoint.
 * @throws RefusedError `invalid_request`
 */
export function refuseDisabled(webhook: WebhookRow): void {
  if (webhook.disabledAt === null) return;
  throw new RefusedError({
    code: 'invalid_request',
    message: `This endpoint is disabled. POST /v1/webhooks/${webhook.id}/enable first.`,
  });
}

/** A delivery as the owner of its endpoint sees it. */
export const describeDelivery = (
  row: typeof webhookDeliveries.$inferSelect,
  type: (typeof webhookEvents.$inferSelect)['type'],
): DeliveryAnswer => ({
  id: row.id,
  event_id: row.eventId,
  type,
  status: row.status,
  attempts: row.attempts,
  last_status: row.lastStatus,
  last_error: row.lastError,
  next_try_at: row.status === 'pending' ? unixSeconds(row.nextTryAt) : null,
  created_at: unixSeconds(row.createdAt),
  delivered_at: row.deliveredAt && unixSeconds(row.deliveredAt),
});
