import { RefusedError, type WebhookChange, webhookAnswer, webhookChange } from '@presign/schema';
import type { Transaction } from '@presign/schema/database';
import { webhooks } from '@presign/schema/webhook-tables';
import type { Context } from 'hono';
import { z } from 'zod';
import { recordChange } from '../audit/audit-log.ts';
import type { Actor, IssuerEnv } from '../deps.ts';
import { checkRevision, sendRevision } from '../grants/store-limits.ts';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';
import { checkUrl, describeWebhook, isOwnWebhook, termsOf, type WebhookRow } from './endpoints.ts';

/** `PATCH /v1/webhooks/{id}`: attempts that begin afterwards go to the new URL. */
export const changeWebhook = route(
  {
    method: 'patch',
    path: '/v1/webhooks/{id}',
    summary: 'Change the URL, the events or the description of an endpoint',
    description: 'Its secret and its log stay. A disabled endpoint stays disabled until you enable it.',
    scope: 'admin',
    params: z.object({ id: z.guid() }),
    body: webhookChange,
    answer: webhookAnswer,
    etag: true,
    errors: ['not_found', 'revision_mismatch'],
  },
  (deps) =>
    async ({ by, params, body, c }) => {
      if (body.url !== undefined) checkUrl(body.url, deps.allowPrivateUpstreams);
      const asked = { by, id: params.id.toLowerCase(), change: body, c };
      const changed = await inTime(deps.db.transaction((tx) => store(tx, asked)));
      sendRevision(c, changed);
      return describeWebhook(changed, deps.now());
    },
);

type Asked = {
  readonly by: Actor;
  readonly id: string;
  readonly change: WebhookChange;
  readonly c: Context<IssuerEnv>;
};

async function store(tx: Transaction, { by, id, change, c }: Asked): Promise<WebhookRow> {
  const own = isOwnWebhook(by.accountId, id);
  const [row] = await tx.select().from(webhooks).where(own).for('no key update');
  if (!row) throw new RefusedError({ code: 'not_found' });
  checkRevision(c, row);
  const { url = row.url, events = row.events, description = row.description } = change;
  const isMoved = url !== row.url;
  const next = { ...row, url, events: events && [...events], description };
  const [before, after] = [termsOf(row), { ...termsOf(next), ...(isMoved && { url: 'changed' }) }];
  await recordChange(tx, by, { action: 'webhook.changed', target: { kind: 'webhook', id }, before, after });
  if (JSON.stringify(before) === JSON.stringify(after)) return row;
  // The new address has not failed yet.
  const stored = { ...next, failingSince: isMoved ? null : row.failingSince, revision: row.revision + 1 };
  await tx.update(webhooks).set(stored).where(own);
  return stored;
}
