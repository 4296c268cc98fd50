import type { Database, Transaction } from '@presign/schema/database';
import { webhookDeliveries, webhooks } from '@presign/schema/webhook-tables';
import { and, eq, sql } from 'drizzle-orm';
import type { Claimed } from './delivery-queue.ts';
import type { Ended } from './send-webhook.ts';

/** Seconds before each further attempt: the last is made about a day after the first. */
const WAITS = [5, 30, 120, 600, 3_600, 10_800, 28_800, 43_200];
/** Waits differ by up to a fifth, so that what failed together does not come back together. */
const JITTER = 0.2;
/** An endpoint to which every attempt failed for so long is disabled. */
const FAILING_MAX_DAYS = 5;
/** RFC 9110 §15.5.11, and so Standard Webhooks: nothing more is to be sent there. */
const GONE = 410;

/**
 * Writes down how an attempt ended. A claim that another has followed says nothing any more.
 * @returns why the endpoint is disabled from now on, if it is
 */
export async function markDelivery(
  db: Database,
  claimed: Claimed,
  ended: Ended,
): Promise<'gone' | 'failing' | undefined> {
  if (ended.error !== null) return db.transaction((tx) => markFailed(tx, claimed, ended));
  const own = isOwn(claimed);
  await db
    .update(webhookDeliveries)
    .set({ status: 'delivered', deliveredAt: sql`now()`, lastStatus: ended.status, lastError: null })
    .where(own);
  if (claimed.webhook.failingSince === null) return undefined;
  await db.update(webhooks).set({ failingSince: null }).where(eq(webhooks.id, claimed.webhook.id));
  return undefined;
}

/** The endpoint's row goes first, as in its deletion: so neither waits for the other. */
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
    .where(isOwn(claimed));
  const reason = status === GONE ? 'gone' : endpoint?.failing ? 'failing' : undefined;
  if (!endpoint?.enabled || reason === undefined) return undefined;
  await disable(tx, id, reason);
  return reason;
}

/** What is on its way is given up: it may be replayed once the endpoint is enabled again. */
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

const isOwn = ({ id, claims }: Claimed) =>
  and(
    eq(webhookDeliveries.id, id),
    eq(webhookDeliveries.claims, claims),
    eq(webhookDeliveries.status, 'pending'),
  );

const varied = (seconds: number) => seconds * (1 + JITTER * (2 * Math.random() - 1));
