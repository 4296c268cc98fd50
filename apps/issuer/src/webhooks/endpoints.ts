import { randomUUID } from 'node:crypto';
import { RefusedError, type WebhookRequest, webhookRequest, webhookWithSecret } from '@presign/schema';
import { accounts } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { eq } from 'drizzle-orm';
import type { IssuerDeps } from '../deps.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { tellWebhook } from './find-webhook.ts';
import { judgeUrl } from './judge-url.ts';
import { newSecret } from './secret.ts';

/** Each event is written once for each of them. */
const ENDPOINTS_MAX = 20;

/** `POST /v1/webhooks`: the only answer, beside a rotation's, that shows the secret. */
export const createWebhook = route(
  {
    method: 'post',
    path: '/v1/webhooks',
    summary: 'Add an endpoint that is told of events',
    scope: 'admin',
    body: webhookRequest,
    answer: webhookWithSecret,
    status: 201,
  },
  (deps) =>
    async ({ apiKey, body }) => {
      judgeUrl(body.url, deps.allowPrivateUpstreams);
      return inTime(create(deps, apiKey.accountId, body));
    },
);

async function create(deps: IssuerDeps, accountId: string, request: WebhookRequest) {
  const { db, encryptionKeys, now } = deps;
  return db.transaction(async (tx) => {
    // Two that are added at once must not each count without the other.
    await tx.select().from(accounts).where(eq(accounts.id, accountId)).for('no key update');
    if ((await tx.$count(webhooks, eq(webhooks.accountId, accountId))) >= ENDPOINTS_MAX) {
      const message = `An account may have at most ${ENDPOINTS_MAX} endpoints.`;
      throw new RefusedError({ code: 'invalid_request', message });
    }
    const id = randomUUID();
    const { secret, sealed } = newSecret(encryptionKeys, { accountId, webhookId: id });
    const { url, events = null, description = null } = request;
    const row = { id, accountId, url, events, description, sealed };
    const [written] = await tx.insert(webhooks).values(row).returning();
    if (!written) throw new Error('Postgres wrote no row');
    return { ...tellWebhook(written, now()), secret };
  });
}
