import type { Database } from '@presign/schema/database';
import { webhookDeliveries, webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import { inArray, type SQL, sql } from 'drizzle-orm';

/** Longer than an attempt can take: an issuer that dies meanwhile is taken over from then on. */
const CLAIM_SECONDS = 30;
/** Deliveries to one endpoint at once, for each issuer; one that fails gets one, to see whether it still does. */
const AT_ONCE = 16;

/** A delivery that is this issuer's to make, for `CLAIM_SECONDS`. */
export type Claimed = {
  readonly id: string;
  /** Tells this claim from a later one. */
  readonly claims: number;
  /** This one included. */
  readonly attempts: number;
  readonly event: { readonly id: string; readonly payload: string };
  readonly webhook: typeof webhooks.$inferSelect;
};

/**
 * Claims deliveries that are due: of each endpoint a few, so that none that is slow or has many keeps others waiting.
 * What another issuer claims at the same moment is passed over.
 * @param endpoints those that fail, or the others
 * @param busy endpoints to which deliveries of this issuer are under way
 */
export async function claimDeliveries(
  db: Database,
  endpoints: 'failing' | 'well',
  busy: readonly string[],
  most: number,
): Promise<Claimed[]> {
  if (most <= 0) return [];
  const taken = await db
    .update(webhookDeliveries)
    .set({
      claims: sql`${webhookDeliveries.claims} + 1`,
      attempts: sql`${webhookDeliveries.attempts} + 1`,
      nextTryAt: sql`now() + ${CLAIM_SECONDS} * interval '1 second'`,
    })
    .where(sql`${webhookDeliveries.id} in (${due(endpoints, busy, most)})`)
    .returning();
  if (taken.length === 0) return [];
  const events = await byId(
    taken.map((row) => row.eventId),
    (ids) => db.select().from(webhookEvents).where(inArray(webhookEvents.id, ids)),
  );
  const receivers = await byId(
    taken.map((row) => row.webhookId),
    (ids) => db.select().from(webhooks).where(inArray(webhooks.id, ids)),
  );
  return taken.flatMap(({ id, claims, attempts, eventId, webhookId }) => {
    const event = events.get(eventId);
    const webhook = receivers.get(webhookId);
    // Deleted a moment ago.
    return event && webhook ? [{ id, claims, attempts, event, webhook }] : [];
  });
}

/**
 * Ids of deliveries that are due, locked. Written out once: a subquery that is run again would lock others.
 * Endpoints come in any order, another one each time, and share alike: those that stand first, or hang, must not
 * take all there is.
 */
const due = (endpoints: 'failing' | 'well', busy: readonly string[], most: number): SQL => sql`
  with endpoint as materialized (
    select id from ${webhooks} as each
    where disabled_at is null and failing_since is ${endpoints === 'failing' ? sql`not null` : sql`null`}
      ${busy.length === 0 ? sql`` : sql`and id not in ${busy}`}
      and exists (select from ${webhookDeliveries} as waiting
        where waiting.webhook_id = each.id and waiting.status = 'pending' and waiting.next_try_at <= now())
    order by random()
  ), share as materialized (
    select greatest(least(${most}::int / greatest(count(*), 1), ${endpoints === 'failing' ? 1 : AT_ONCE}::int), 1) as most
    from endpoint
  ), due as materialized (
    select each.id from endpoint cross join lateral (
      select waiting.id from ${webhookDeliveries} as waiting
      where waiting.webhook_id = endpoint.id and waiting.status = 'pending' and waiting.next_try_at <= now()
      order by waiting.next_try_at
      limit (select most from share)
      for update skip locked
    ) as each
    limit ${most}
  ) select id from due`;

async function byId<T extends { readonly id: string }>(
  ids: readonly string[],
  find: (ids: string[]) => PromiseLike<T[]>,
): Promise<ReadonlyMap<string, T>> {
  const rows = await find([...new Set(ids)]);
  return new Map(rows.map((row) => [row.id, row]));
}
