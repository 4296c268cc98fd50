import type { EncryptionKeys } from '@presign/crypto';
import {
  BlockedAddressError,
  guardedDispatcher,
  type OutboundProxy,
  type PrivateUpstreams,
} from '@presign/outbound';
import type { DeliveryError } from '@presign/schema';
import { webhooks } from '@presign/schema/webhook-tables';
import { causeOf } from '@presign/service';
import type { Database } from '@presign/service/database';
import type { Works } from '@presign/service/metrics';
import { isNull } from 'drizzle-orm';
import type { Logger } from 'pino';
import { type Dispatcher, request } from 'undici';
import { announceResets } from '../events/announce-budgets.ts';
import { announceExpired } from '../events/announce-grants.ts';
import { announceUsage } from '../events/announce-settled.ts';
import { type Claimed, claimDeliveries, type Ended, markDelivery } from './delivery-queue.ts';
import { signMessage, unsealUrl } from './secret.ts';
import { slackBody } from './slack-text.ts';

type WebhookDeps = {
  readonly db: Database;
  readonly encryptionKeys: EncryptionKeys;
  readonly allowPrivateUpstreams: PrivateUpstreams;
  readonly proxy?: OutboundProxy | undefined;
  readonly metrics: {
    readonly work: Works<'webhooks'>;
    /** Counts an attempt. */
    readonly webhookTried: (outcome: 'delivered' | 'failed') => void;
  };
  readonly log: Logger;
};

const BUSY_MS = 20;
/** The number of simultaneous attempts of one issuer. */
const AT_ONCE = 64;
/** The share of attempts for failing endpoints, because a hanging endpoint occupies its attempt until the timeout. */
const FAILING_AT_ONCE = 32;

/** The running deliverer. */
export type Webhooks = {
  /** Claims no more deliveries, and waits for running attempts. */
  readonly close: () => Promise<void>;
};

/**
 * Delivers webhooks. Any number of issuers may run it: they share the work and take over from one that dies.
 * @param idleMs the pause after a round that found nothing
 */
export function startWebhooks(deps: WebhookDeps, idleMs: number): Webhooks {
  const dispatcher = guardedDispatcher(deps.allowPrivateUpstreams, deps.proxy);
  const underWay = new Map<Promise<void>, Claimed['webhook']>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let failing = false;
  const work = deps.metrics.work('webhooks');
  /** An endpoint became free during a round, so it may have more deliveries. */
  let again = false;

  const attempt: Attempt = (claimed) => {
    const ends = attemptDelivery({ ...deps, dispatcher }, claimed).finally(() => {
      underWay.delete(ends);
      soon();
    });
    underWay.set(ends, claimed.webhook);
  };
  const run = async () => {
    let wait = idleMs;
    again = false;
    work.begins();
    try {
      if (await round(deps.db, [...underWay.values()], attempt)) wait = BUSY_MS;
      work.succeeds();
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
 * Records the events that time alone causes, and starts the attempts that are due.
 * @param underWay the endpoint of each running attempt
 * @returns whether there may be more
 */
async function round(
  db: Database,
  underWay: readonly Claimed['webhook'][],
  attempt: Attempt,
): Promise<boolean> {
  if (!(await anyEnabled(db))) return false;
  const more = [await announceExpired(db), await announceResets(db), await announceUsage(db)];
  const busy = [...new Set(underWay.map(({ id }) => id))];
  const free = AT_ONCE - underWay.length;
  const well = await claimDeliveries(db, 'well', busy, free);
  const failing = FAILING_AT_ONCE - underWay.filter(({ failingSince }) => failingSince !== null).length;
  const again = await claimDeliveries(db, 'failing', busy, Math.min(free - well.length, failing));
  const claimed = [...well, ...again];
  for (const each of claimed) attempt(each);
  return claimed.length > 0 || more.includes(true);
}

/** Saves the other queries of a round if no account has an endpoint. */
async function anyEnabled(db: Database): Promise<boolean> {
  const rows = await db
    .select({ id: webhooks.id })
    .from(webhooks)
    .where(isNull(webhooks.disabledAt))
    .limit(1);
  return rows.length > 0;
}

type AttemptDeps = Pick<WebhookDeps, 'db' | 'encryptionKeys' | 'log' | 'metrics'> & {
  readonly dispatcher: Dispatcher;
};

/** Makes one attempt: writes and sends it, and stores its result. Never throws. */
async function attemptDelivery(deps: AttemptDeps, claimed: Claimed): Promise<void> {
  const { id, webhook, attempts } = claimed;
  const named = { webhook: webhook.id, delivery: id };
  try {
    const ended = await writeAndSend(deps, claimed);
    deps.metrics.webhookTried(ended.error === null ? 'delivered' : 'failed');
    if (ended.error !== null) deps.log.info({ ...named, attempts, ...ended }, 'webhook not delivered');
    const disabled = await markDelivery(deps.db, claimed, ended);
    if (disabled) deps.log.warn({ webhook: webhook.id, reason: disabled }, 'webhook endpoint disabled');
  } catch (error) {
    // Once the claim has expired, another attempt is made.
    deps.log.warn({ ...named, ...causeOf(error) }, 'result of a webhook delivery not stored');
  }
}

async function writeAndSend(deps: AttemptDeps, claimed: Claimed): Promise<Ended> {
  let message: Message;
  try {
    message = claimed.webhook.format === 'slack' ? forSlack(deps, claimed) : signed(deps, claimed);
  } catch (error) {
    deps.log.error(
      { webhook: claimed.webhook.id, ...causeOf(error) },
      'secret of a webhook cannot be unsealed',
    );
    return { status: null, error: 'secret_unreadable' };
  }
  return sendWebhook(deps.dispatcher, message);
}

/** An event as Standard Webhooks has it: https://www.standardwebhooks.com */
function signed({ encryptionKeys }: AttemptDeps, { event, webhook }: Claimed): Message {
  const sentAt = new Date();
  const previous = webhook.previousUntil && webhook.previousUntil > sentAt ? webhook.previousSealed : null;
  const sealed = previous === null ? [webhook.sealed] : [webhook.sealed, previous];
  const { id: eventId, payload } = event;
  const signature = signMessage(encryptionKeys, ownerOf(webhook), sealed, { eventId, sentAt, payload });
  const headers = {
    'webhook-id': eventId,
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': signature,
  };
  return { url: webhook.url, headers, body: payload };
}

const forSlack = ({ encryptionKeys }: AttemptDeps, { event, webhook }: Claimed): Message => ({
  url: unsealUrl(encryptionKeys, webhook.sealed, ownerOf(webhook)),
  headers: {},
  body: slackBody(event.payload),
});

const ownerOf = ({ accountId, id: webhookId }: Claimed['webhook']) => ({ accountId, webhookId });

/** The total time limit of one attempt, in milliseconds. */
const TIMEOUT_MS = 10_000;
/** Bytes of an answer that are read, so that its connection can be reused. The rest is not awaited. */
const ANSWER_MAX_BYTES = 16_384;

/** One request. */
type Message = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

/** Sends one request. Any 2xx is a success; redirects are not followed. */
async function sendWebhook(dispatcher: Dispatcher, { url, headers, body }: Message): Promise<Ended> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const answer = await request(url, {
      dispatcher,
      signal,
      method: 'POST',
      headers: { 'content-type': 'application/json', 'user-agent': 'Presign-Webhooks/1', ...headers },
      body,
    });
    const { statusCode: status } = answer;
    // Only the status counts, even if the body breaks off.
    await answer.body.dump({ limit: ANSWER_MAX_BYTES, signal }).catch(() => {});
    if (status >= 200 && status < 300) return { status, error: null };
    return { status, error: 'http_status', restSeconds: restOf(answer.headers['retry-after']) };
  } catch (error) {
    return { status: null, error: signal.aborted ? 'timeout' : deliveryError(error) };
  }
}

/** An endpoint may request a pause of at most a day. */
const REST_MAX_SECONDS = 86_400;

/** Reads `Retry-After` (RFC 9110 §10.2.3): seconds or a date; 0 for anything else. */
function restOf(retryAfter: string | string[] | undefined): number {
  const text = String(retryAfter ?? '');
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), REST_MAX_SECONDS);
}

const deliveryError = (error: unknown): DeliveryError => {
  if (error instanceof BlockedAddressError) return 'address_not_public';
  return error instanceof Error && 'code' in error && /TIMEOUT|TIMEDOUT/.test(String(error.code))
    ? 'timeout'
    : 'unreachable';
};
