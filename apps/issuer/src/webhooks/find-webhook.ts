import { RefusedError, type WebhookAnswer } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { webhooks } from '@presign/schema/webhook-tables';
import { and, eq } from 'drizzle-orm';

export type WebhookRow = typeof webhooks.$inferSelect;

/**
 * An endpoint of an account.
 * @throws RefusedError `not_found`, also for another account's
 */
export async function findWebhook(
  db: Database | Transaction,
  accountId: string,
  id: string,
): Promise<WebhookRow> {
  const [row] = await db.select().from(webhooks).where(isOwnWebhook(accountId, id));
  if (!row) throw new RefusedError({ code: 'not_found' });
  return row;
}

/** The condition that an endpoint is an account's own. */
export const isOwnWebhook = (accountId: string, id: string) =>
  and(eq(webhooks.id, id), eq(webhooks.accountId, accountId));

/** What its owner is told of an endpoint. */
export const tellWebhook = (row: WebhookRow, now: number): WebhookAnswer => ({
  id: row.id,
  url: row.url,
  events: row.events,
  description: row.description,
  created_at: seconds(row.createdAt),
  previous_secret_expires_at:
    row.previousUntil && row.previousUntil.getTime() > now ? seconds(row.previousUntil) : null,
  status: row.disabledAt ? 'disabled' : 'enabled',
  disabled_reason: row.disabledReason,
  disabled_at: row.disabledAt && seconds(row.disabledAt),
  failing_since: row.failingSince && seconds(row.failingSince),
});

const seconds = (time: Date) => time.getTime() / 1000;
