import { randomUUID } from 'node:crypto';
import { deliveryAnswer, RefusedError, type WebhookEvent } from '@presign/schema';
import { webhookDeliveries, webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { isOwnWebhook } from './find-webhook.ts';
import { refuseDisabled, tellDelivery } from './tell-delivery.ts';

/** `POST /v1/webhooks/{id}/test`: sends `webhook.test` to this endpoint, whatever events it asks for. */
export const testWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/test',
    summary: 'Send a test event to an endpoint',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: deliveryAnswer,
    status: 201,
    errors: ['invalid_request', 'not_found'],
  },
  (deps) =>
    async ({ apiKey: { accountId }, params }) =>
      inTime(
        deps.db.transaction(async (tx) => {
          const own = tx.select().from(webhooks).where(isOwnWebhook(accountId, params.id));
          const [webhook] = await own.for('key share');
          if (!webhook) throw new RefusedError({ code: 'not_found' });
          refuseDisabled(webhook);
          const timestamp = new Date(deps.now()).toISOString();
          const event: WebhookEvent = { type: 'webhook.test', timestamp, data: { webhook_id: webhook.id } };
          const eventId = randomUUID();
          const payload = JSON.stringify(event);
          await tx.insert(webhookEvents).values({ id: eventId, accountId, type: event.type, payload });
          const [row] = await tx
            .insert(webhookDeliveries)
            .values({ id: randomUUID(), webhookId: webhook.id, eventId })
            .returning();
          if (!row) throw new Error('Postgres wrote no row');
          return tellDelivery(row, event.type);
        }),
      ),
);
