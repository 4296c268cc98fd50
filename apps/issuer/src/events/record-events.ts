import { randomUUID } from 'node:crypto';
import { NAMED_EVENT, type WebhookEvent } from '@presign/schema';
import { webhookDeliveries, webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, inArray, isNull, sql } from 'drizzle-orm';

/** An event of an account. */
export type AccountEvent = { readonly accountId: string; readonly event: WebhookEvent };

/**
 * Writes events, and a delivery for every endpoint of the account that subscribes to the event. It uses the transaction
 * that causes the events: otherwise an endpoint could be notified about a change that was rolled back, or miss one that
 * was committed. An event without a subscriber is not written.
 */
export async function recordEvents(tx: Transaction, events: readonly AccountEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(({ accountId, event }) => ({
    id: randomUUID(),
    account_id: accountId,
    type: event.type,
    payload: JSON.stringify(event),
  }));
  // The lock waits for an endpoint that is being deleted, whose deliveries would violate the foreign key.
  await tx.execute(sql`
    with event as (
      select * from json_to_recordset(${JSON.stringify(rows)}::json)
        as event(id uuid, account_id uuid, type text, payload text)
    ), wanted as (
      select event.id as event_id, endpoint.id as webhook_id
      from event join ${webhooks} as endpoint on endpoint.account_id = event.account_id
      where endpoint.disabled_at is null and (event.type = any(endpoint.events)
        or endpoint.events is null and event.type <> ${NAMED_EVENT})
      for key share of endpoint
    ), written as (
      insert into ${webhookEvents} (id, account_id, type, payload)
      select id, account_id, type, payload from event where id in (select event_id from wanted)
    )
    insert into ${webhookDeliveries} (id, webhook_id, event_id)
    select gen_random_uuid(), webhook_id, event_id from wanted`);
}

/**
 * Writes an event and its delivery to one endpoint, whatever its `events`. Its row must be locked against deletion.
 * @param id the `webhook-id`
 */
export async function sendTo(
  tx: Transaction,
  { id: webhookId, accountId }: Pick<typeof webhooks.$inferSelect, 'id' | 'accountId'>,
  event: WebhookEvent,
  id: string = randomUUID(),
): Promise<typeof webhookDeliveries.$inferSelect> {
  await tx.insert(webhookEvents).values({ id, accountId, type: event.type, payload: JSON.stringify(event) });
  const [row] = await tx
    .insert(webhookDeliveries)
    .values({ id: randomUUID(), webhookId, eventId: id })
    .returning();
  if (!row) throw new Error('Postgres wrote no row');
  return row;
}

/** Returns those of the accounts that have an enabled endpoint for events of this type. */
export async function subscribersOf(
  tx: Database | Transaction,
  accountIds: Iterable<string>,
  type: WebhookEvent['type'],
): Promise<ReadonlySet<string>> {
  const among = [...new Set(accountIds)];
  if (among.length === 0) return new Set();
  const named = sql`${type} = any(${webhooks.events})`;
  const wants = type === NAMED_EVENT ? named : sql`(${webhooks.events} is null or ${named})`;
  const rows = await tx
    .selectDistinct({ accountId: webhooks.accountId })
    .from(webhooks)
    .where(and(inArray(webhooks.accountId, among), isNull(webhooks.disabledAt), wants));
  return new Set(rows.map((row) => row.accountId));
}
