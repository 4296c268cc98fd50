import { RefusedError } from '@presign/schema';
import { webhooks } from '@presign/schema/webhook-tables';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { isOwnWebhook } from './find-webhook.ts';

/** `DELETE /v1/webhooks/{id}`: with its secret and its log; what was under way may still arrive. */
export const deleteWebhook = route(
  {
    method: 'delete',
    path: '/v1/webhooks/{id}',
    summary: 'Remove an endpoint with its log of deliveries',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) => {
      const deleted = await inTime(
        deps.db
          .delete(webhooks)
          .where(isOwnWebhook(apiKey.accountId, params.id))
          .returning({ id: webhooks.id }),
      );
      if (deleted.length === 0) throw new RefusedError({ code: 'not_found' });
      return undefined;
    },
);
