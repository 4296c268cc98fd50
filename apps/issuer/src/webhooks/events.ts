import { randomUUID } from 'node:crypto';
import type { WebhookEvent } from '@presign/schema';
import type { Database, Transaction } from '@presign/schema/database';
import { webhookDeliveries, webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import { and, inArray, isNull, sql } from 'drizzle-orm';

/** Something that happened to what an account owns. */
export type Noted = { readonly accountId: string; readonly event: WebhookEvent };

/**
 * Writes events, and a delivery of each for every endpoint of its account that wants it: in the transaction that
 * makes them so, or else they could be told of what never was, or never be told. Nothing is written of what nobody
 * wants to hear of.
 */
export async function noteEvents(tx: Transaction, noted: readonly Noted[]): Promise<void> {
  if (noted.length === 0) return;
  const rows = noted.map(({ accountId, event }) => ({
    id: randomUUID(),
    account_id: accountId,
    type: event.type,
    payload: JSON.stringify(event),
  }));
  // The lock waits for an endpoint that is being deleted, whose deliveries could not be written any more.
  await tx.execute(sql`
    with event as (
      select * from json_to_recordset(${JSON.stringify(rows)}::json)
        as event(id uuid, account_id uuid, type text, payload text)
    ), wanted as (
      select event.id as event_id, endpoint.id as webhook_id
      from event join ${webhooks} as endpoint on endpoint.account_id = event.account_id
      where endpoint.disabled_at is null and (endpoint.events is null or event.type = any(endpoint.events))
      for key share of endpoint
    ), written as (
      insert into ${webhookEvents} (id, account_id, type, payload)
      select id, account_id, type, payload from event where id in (select event_id from wanted)
    )
    insert into ${webhookDeliveries} (id, webhook_id, event_id)
    select gen_random_uuid(), webhook_id, event_id from wanted`);
}

/** Of these accounts, those that want to hear of events of a type. */
export async function listenersOf(
  tx: Database | Transaction,
  accountIds: Iterable<string>,
  type: WebhookEvent['type'],
): Promise<ReadonlySet<string>> {
  const among = [...new Set(accountIds)];
  if (among.length === 0) return new Set();
  const wants = sql`(${webhooks.events} is null or ${type} = any(${webhooks.events}))`;
  const rows = await tx
    .selectDistinct({ accountId: webhooks.accountId })
    .from(webhooks)
    .where(and(inArray(webhooks.accountId, among), isNull(webhooks.disabledAt), wants));
  return new Set(rows.map((row) => row.accountId));
}
