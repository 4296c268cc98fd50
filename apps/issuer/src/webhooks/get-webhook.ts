import { webhookAnswer } from '@presign/schema';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { findWebhook, tellWebhook } from './find-webhook.ts';

/** `GET /v1/webhooks/{id}`: an endpoint, whether it fails, and why it was disabled. */
export const getWebhook = route(
  {
    method: 'get',
    path: '/v1/webhooks/{id}',
    summary: 'An endpoint and whether it is reached',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: webhookAnswer,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey, params }) =>
      tellWebhook(await inTime(findWebhook(deps.db, apiKey.accountId, params.id)), deps.now()),
);
