import type { Database } from '@presign/schema/database';
import { grants } from '@presign/schema/tables';
import { webhooks } from '@presign/schema/webhook-tables';
import { sql } from 'drizzle-orm';
import { noteExpired } from './announce-grants.ts';

/** Grants that one transaction tells of, and of each account at most. */
const BATCH = 500;

/**
 * Notes `grant.expired` for grants that have expired since: each once, over any number of issuers. Only grants of
 * accounts that listen are looked at, and none that expired before.
 * @returns whether there may be more
 */
export async function tellExpired(db: Database): Promise<boolean> {
  return db.transaction(async (tx) => {
    const told = await tx
      .update(grants)
      .set({ expiryAnnounced: true })
      .where(sql`${grants.id} in (${EXPIRED})`)
      .returning({ id: grants.id });
    await noteExpired(
      tx,
      told.map((row) => row.id),
    );
    return told.length === BATCH;
  });
}

/** Ids of grants that are to be told of, locked. Written out once: a subquery that is run again would lock others. */
const EXPIRED = sql`
  with listening as (
    select account_id, min(active_since) as since from ${webhooks}
    where disabled_at is null and (events is null or 'grant.expired' = any(events)) group by account_id
  ), expired as materialized (
    select each.id from listening cross join lateral (
      select ended.id from ${grants} as ended
      where ended.account_id = listening.account_id and not ended.expiry_announced and ended.revoked_at is null
        and ended.bundle_id is null and ended.expires_at > listening.since and ended.expires_at <= now()
      order by ended.expires_at limit ${BATCH}
      for update skip locked
    ) as each limit ${BATCH}
  ) select id from expired`;
