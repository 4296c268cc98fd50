import { webhookAnswer } from '@presign/schema';
import { webhooks } from '@presign/schema/webhook-tables';
import { and, isNotNull, sql } from 'drizzle-orm';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { findWebhook, isOwnWebhook, tellWebhook } from './find-webhook.ts';

/** `POST /v1/webhooks/{id}/enable`: after it was disabled. It hears of what happens from now on. */
export const enableWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/enable',
    summary: 'Send to an endpoint again that was disabled',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: webhookAnswer,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) => {
      await inTime(
        deps.db
          .update(webhooks)
          .set({ disabledAt: null, disabledReason: null, failingSince: null, activeSince: sql`now()` })
          .where(and(isOwnWebhook(apiKey.accountId, params.id), isNotNull(webhooks.disabledAt))),
      );
      return tellWebhook(await inTime(findWebhook(deps.db, apiKey.accountId, params.id)), deps.now());
    },
);
