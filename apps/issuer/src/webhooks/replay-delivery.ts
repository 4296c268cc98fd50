import { type DeliveryAnswer, deliveryAnswer, RefusedError } from '@presign/schema';
import { webhookDeliveries, webhookEvents } from '@presign/schema/webhook-tables';
import { and, eq, sql } from 'drizzle-orm';
import { z } from 'zod';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { findWebhook, type WebhookRow } from './find-webhook.ts';
import { refuseDisabled, tellDelivery } from './tell-delivery.ts';

/**
 * `POST /v1/webhooks/{id}/deliveries/{delivery_id}/replay`: the same event with the same `webhook-id`, from the first
 * attempt on.
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
    async ({ apiKey, params }) =>
      inTime(
        replay(deps, await inTime(findWebhook(deps.db, apiKey.accountId, params.id)), params.delivery_id),
      ),
);

async function replay({ db }: IssuerDeps, webhook: WebhookRow, deliveryId: string): Promise<DeliveryAnswer> {
  refuseDisabled(webhook);
  const [row] = await db
    .update(webhookDeliveries)
    .set({
      status: 'pending',
      attempts: 0,
      // How an attempt ends that is under way just now concerns this one no more.
      claims: sql`${webhookDeliveries.claims} + 1`,
      nextTryAt: sql`now()`,
      deliveredAt: null,
    })
    .where(and(eq(webhookDeliveries.id, deliveryId), eq(webhookDeliveries.webhookId, webhook.id)))
    .returning();
  const ofEvent = eq(webhookEvents.id, row?.eventId ?? deliveryId);
  const [event] = await db.select({ type: webhookEvents.type }).from(webhookEvents).where(ofEvent);
  if (!row || !event) throw new RefusedError({ code: 'not_found' });
  return tellDelivery(row, event.type);
}
