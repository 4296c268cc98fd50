import type { Database } from '@presign/schema/database';
import { webhookEvents, webhooks } from '@presign/schema/webhook-tables';
import { inArray, lt, sql } from 'drizzle-orm';

/** How long the log of deliveries goes back; as long they can be replayed. */
const KEPT_DAYS = 30;
/** Events that one statement deletes. */
const BATCH = 1_000;

/** Deletes what is too old to be replayed, with its deliveries, and secrets that sign no more. */
export async function forgetOldDeliveries(db: Database): Promise<void> {
  await db
    .update(webhooks)
    .set({ previousSealed: null, previousUntil: null })
    .where(lt(webhooks.previousUntil, sql`now()`));
  const old = db
    .select({ id: webhookEvents.id })
    .from(webhookEvents)
    .where(lt(webhookEvents.createdAt, sql`now() - ${KEPT_DAYS} * interval '1 day'`))
    .limit(BATCH);
  for (let deleted = BATCH; deleted === BATCH; ) {
    const gone = await db
      .delete(webhookEvents)
      .where(inArray(webhookEvents.id, old))
      .returning({ id: webhookEvents.id });
    deleted = gone.length;
  }
}
