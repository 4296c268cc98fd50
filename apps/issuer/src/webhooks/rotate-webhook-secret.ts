import { RefusedError, webhookWithSecret } from '@presign/schema';
import { webhooks } from '@presign/schema/webhook-tables';
import { sql } from 'drizzle-orm';
import { z } from 'zod';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { isOwnWebhook, tellWebhook } from './find-webhook.ts';
import { newSecret, PREVIOUS_SECRET_HOURS } from './secret.ts';

/**
 * `POST /v1/webhooks/{id}/rotate-secret`: a new secret. The one before signs beside it for a day; one before that
 * signs no more, so that a second rotation at once ends a secret that has leaked.
 */
export const rotateWebhookSecret = route(
  {
    method: 'post',
    path: '/v1/webhooks/{id}/rotate-secret',
    summary: 'Give an endpoint a new secret; both sign for 24 hours',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    answer: webhookWithSecret,
    errors: ['not_found'],
  },
  (deps) =>
    async ({ apiKey: { accountId }, params }) => {
      const { secret, sealed } = newSecret(deps.encryptionKeys, { accountId, webhookId: params.id });
      const [row] = await inTime(
        deps.db
          .update(webhooks)
          .set({
            sealed,
            previousSealed: sql`${webhooks.sealed}`,
            previousUntil: new Date(deps.now() + PREVIOUS_SECRET_HOURS * 3_600_000),
          })
          .where(isOwnWebhook(accountId, params.id))
          .returning(),
      );
      if (!row) throw new RefusedError({ code: 'not_found' });
      return { ...tellWebhook(row, deps.now()), secret };
    },
);
