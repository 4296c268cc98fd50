import { type DeliveryAnswer, RefusedError } from '@presign/schema';
import type { webhookDeliveries, webhookEvents } from '@presign/schema/webhook-tables';
import type { WebhookRow } from './find-webhook.ts';

/** What its owner is told of a delivery. */
export const tellDelivery = (
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
  next_try_at: row.status === 'pending' ? row.nextTryAt.getTime() / 1000 : null,
  created_at: row.createdAt.getTime() / 1000,
  delivered_at: row.deliveredAt && row.deliveredAt.getTime() / 1000,
});

/**
 * Refuses to send to an endpoint that nothing is sent to.
 * @throws RefusedError `invalid_request`
 */
export function refuseDisabled(webhook: WebhookRow): void {
  if (webhook.disabledAt === null) return;
  throw new RefusedError({
    code: 'invalid_request',
    message: `This endpoint is disabled. POST /v1/webhooks/${webhook.id}/enable first.`,
  });
}
