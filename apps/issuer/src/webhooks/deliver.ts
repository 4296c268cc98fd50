import type { EncryptionKeys } from '@presign/crypto';
import { guardedDispatcher, type PrivateUpstreams } from '@presign/outbound';
import { causeOf } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import { webhooks } from '@presign/schema/webhook-tables';
import { isNull } from 'drizzle-orm';
import type { Logger } from 'pino';
import { attemptDelivery } from './attempt-delivery.ts';
import { type Claimed, claimDeliveries } from './delivery-queue.ts';
import { tellUsage } from './note-usage.ts';
import { tellExpired } from './tell-expired.ts';

type WebhookDeps = {
  readonly db: Database;
  readonly encryptionKeys: EncryptionKeys;
  readonly allowPrivateUpstreams: PrivateUpstreams;
  readonly log: Logger;
};

const IDLE_MS = 1_000;
const BUSY_MS = 20;
/** Attempts of one issuer at once. */
const AT_ONCE = 64;
/** Of these, to endpoints that fail: one that hangs takes its attempt for as long as one may take. */
const FAILING_AT_ONCE = 32;

/** The running deliverer. */
export type Webhooks = {
  /** Claims no more, and lets the attempts under way end. */
  readonly close: () => Promise<void>;
};

/** Delivers webhooks. Any number of issuers may run it: they share the work, and take over from one that dies. */
export function startWebhooks(deps: WebhookDeps): Webhooks {
  const dispatcher = guardedDispatcher(deps.allowPrivateUpstreams);
  const underWay = new Map<Promise<void>, Claimed['webhook']>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let failing = false;
  /** An endpoint became free in the middle of a round: there may be more for it. */
  let again = false;

  const attempt: Attempt = (claimed) => {
    const ends = attemptDelivery({ ...deps, dispatcher }, claimed).finally(() => {
      underWay.delete(ends);
      soon();
    });
    underWay.set(ends, claimed.webhook);
  };
  const run = async () => {
    let wait = IDLE_MS;
    again = false;
    try {
      if (await round(deps.db, [...underWay.values()], attempt)) wait = BUSY_MS;
      if (failing) deps.log.info('webhooks are delivered again');
      failing = false;
    } catch (error) {
      if (!failing) deps.log.error(causeOf(error), 'webhooks are behind');
      failing = true;
    }
    if (!closed) timer = setTimeout(next, again ? BUSY_MS : wait);
  };
  const next = () => {
    timer = undefined;
    running = run();
  };
  const soon = () => {
    again = true;
    if (timer === undefined || closed) return;
    clearTimeout(timer);
    timer = setTimeout(next, BUSY_MS);
  };
  let running = run();
  const close = async () => {
    closed = true;
    clearTimeout(timer);
    await running;
    await Promise.all(underWay.keys());
    await dispatcher.destroy();
  };
  return { close };
}

type Attempt = (claimed: Claimed) => void;

/**
 * Makes events of what has come about by time alone, and begins the attempts that are due.
 * @param underWay the endpoint of each attempt under way
 * @returns whether there may be more
 */
async function round(
  db: Database,
  underWay: readonly Claimed['webhook'][],
  attempt: Attempt,
): Promise<boolean> {
  if (!(await anyEnabled(db))) return false;
  const more = [await tellExpired(db), await tellUsage(db)];
  const busy = [...new Set(underWay.map(({ id }) => id))];
  const free = AT_ONCE - underWay.length;
  const well = await claimDeliveries(db, 'well', busy, free);
  const failing = FAILING_AT_ONCE - underWay.filter(({ failingSince }) => failingSince !== null).length;
  const again = await claimDeliveries(db, 'failing', busy, Math.min(free - well.length, failing));
  const claimed = [...well, ...again];
  for (const each of claimed) attempt(each);
  return claimed.length > 0 || more.includes(true);
}

/** So that nothing more is asked where no account has an endpoint. */
async function anyEnabled(db: Database): Promise<boolean> {
  const rows = await db
    .select({ id: webhooks.id })
    .from(webhooks)
    .where(isNull(webhooks.disabledAt))
    .limit(1);
  return rows.length > 0;
}
