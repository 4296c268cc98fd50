import type { DeliveryError } from '@presign/schema';
import { webhookDeliveries, webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import type { Database, Transaction } from '@presign/service/database';
import { and, eq, inArray, lt, type SQL, sql } from 'drizzle-orm';

/** Longer than an attempt can take. After that, another issuer takes over the deliveries of an issuer that died. */
const CLAIM_SECONDS = 30;
/** Deliveries to one endpoint at once, for each issuer. A failing endpoint gets one delivery, to see whether it still fails. */
const AT_ONCE = 16;

/** A delivery that this issuer attempts within `CLAIM_SECONDS`. */
export type Claimed = {
  readonly id: string;
  /** Distinguishes this claim from a later one. */
  readonly claims: number;
  /** Includes the attempt that is about to be made. */
  readonly attempts: number;
  readonly event: { readonly id: string; readonly payload: string };
  readonly webhook: typeof webhooks.$inferSelect;
};

/**
 * Claims deliveries that are due: a few of each endpoint, so that a slow or busy one does not delay others. Deliveries
 * that another issuer claims at the same moment are skipped.
 * @param endpoints those that fail, or the others
 * @param busy endpoints to which this issuer is delivering
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
    // Either may have been deleted a moment ago.
    return event && webhook ? [{ id, claims, attempts, event, webhook }] : [];
  });
}

/**
 * Ids of deliveries that are due, locked. Materialized, because a subquery that runs twice would lock other rows. The
 * endpoints are in random order and get equal shares, so that no slow or busy endpoint takes every attempt.
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

/** The result of an attempt. */
export type Ended = {
  /** HTTP status; null when no answer came. */
  readonly status: number | null;
  /** Null: the endpoint has the event. */
  readonly error: DeliveryError | null;
  /** Seconds until the endpoint accepts another attempt, from its `Retry-After`. */
  readonly restSeconds?: number;
};

/** Seconds before each further attempt. The last one is about a day after the first. */
const WAITS = [5, 30, 120, 600, 3_600, 10_800, 28_800, 43_200];
/** Waits vary by up to a fifth, so that deliveries that failed together do not retry together. */
const JITTER = 0.2;
/** The number of days with only failures after which an endpoint is disabled. */
const FAILING_MAX_DAYS = 5;
/** RFC 9110 §15.5.11, and Standard Webhooks: the endpoint does not want more requests. */
const GONE = 410;

/**
 * Stores the result of an attempt. A claim that a later one has replaced changes nothing.
 * @returns why the endpoint is now disabled; undefined if it is not
 */
export async function markDelivery(
  db: Database,
  claimed: Claimed,
  ended: Ended,
): Promise<'gone' | 'failing' | undefined> {
  if (ended.error !== null) return db.transaction((tx) => markFailed(tx, claimed, ended));
  await db
    .update(webhookDeliveries)
    .set({ status: 'delivered', deliveredAt: sql`now()`, lastStatus: ended.status, lastError: null })
    .where(isCurrent(claimed));
  if (claimed.webhook.failingSince === null) return undefined;
  await db.update(webhooks).set({ failingSince: null }).where(eq(webhooks.id, claimed.webhook.id));
  return undefined;
}

/** Locks the endpoint's row first, as its deletion does, so that the two never deadlock. */
async function markFailed(tx: Transaction, claimed: Claimed, { status, error, restSeconds = 0 }: Ended) {
  const { id } = claimed.webhook;
  const [endpoint] = await tx
    .update(webhooks)
    .set({ failingSince: sql`coalesce(${webhooks.failingSince}, now())` })
    .where(eq(webhooks.id, id))
    .returning({
      enabled: sql<boolean>`${webhooks.disabledAt} is null`,
      failing: sql<boolean>`${webhooks.failingSince} < now() - ${FAILING_MAX_DAYS} * interval '1 day'`,
    });
  const wait = WAITS[claimed.attempts - 1];
  await tx
    .update(webhookDeliveries)
    .set({
      status: wait === undefined ? 'failed' : 'pending',
      lastStatus: status,
      lastError: error,
      nextTryAt: sql`now() + ${Math.max(varied(wait ?? 0), restSeconds)} * interval '1 second'`,
    })
    .where(isCurrent(claimed));
  const reason = status === GONE ? 'gone' : endpoint?.failing ? 'failing' : undefined;
  if (!endpoint?.enabled || reason === undefined) return undefined;
  await disable(tx, id, reason);
  return reason;
}

/** Fails the pending deliveries. They can be replayed once the endpoint is enabled again. */
async function disable(tx: Transaction, id: string, reason: 'gone' | 'failing'): Promise<void> {
  await tx
    .update(webhooks)
    .set({ disabledAt: sql`now()`, disabledReason: reason })
    .where(eq(webhooks.id, id));
  await tx
    .update(webhookDeliveries)
    .set({ status: 'failed', lastError: sql`coalesce(${webhookDeliveries.lastError}, 'endpoint_disabled')` })
    .where(and(eq(webhookDeliveries.webhookId, id), eq(webhookDeliveries.status, 'pending')));
}

const isCurrent = ({ id, claims }: Claimed) =>
  and(
    eq(webhookDeliveries.id, id),
    eq(webhookDeliveries.claims, claims),
    eq(webhookDeliveries.status, 'pending'),
  );

const varied = (seconds: number) => seconds * (1 + JITTER * (2 * Math.random() - 1));

/** How long deliveries stay in the log and can be replayed. */
const KEPT_DAYS = 30;
/** Events that one statement deletes. */
const BATCH = 1_000;

/**
 * Deletes events that are too old to be replayed, with their deliveries, and secrets that no longer sign.
 * @returns whether there may be more
 */
export async function forgetOldDeliveries(db: Database): Promise<boolean> {
  await db
    .update(webhooks)
    .set({ previousSealed: null, previousUntil: null })
    .where(lt(webhooks.previousUntil, sql`now()`));
  const old = db
    .select({ id: webhookEvents.id })
    .from(webhookEvents)
    .where(lt(webhookEvents.createdAt, sql`now() - ${KEPT_DAYS} * interval '1 day'`))
    .limit(BATCH);
  const gone = await db
    .delete(webhookEvents)
    .where(inArray(webhookEvents.id, old))
    .returning({ id: webhookEvents.id });
  return gone.length === BATCH;
}
