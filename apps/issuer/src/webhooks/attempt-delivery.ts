import type { EncryptionKeys } from '@presign/crypto';
import { causeOf } from '@presign/schema';
import type { Database } from '@presign/schema/database';
import type { Logger } from 'pino';
import type { Dispatcher } from 'undici';
import type { Claimed } from './delivery-queue.ts';
import { markDelivery } from './mark-delivery.ts';
import { signMessage } from './secret.ts';
import { type Ended, sendWebhook } from './send-webhook.ts';

type AttemptDeps = {
  readonly db: Database;
  readonly encryptionKeys: EncryptionKeys;
  readonly dispatcher: Dispatcher;
  readonly log: Logger;
};

/** One attempt of a delivery, from signing to writing down how it ended. Never throws. */
export async function attemptDelivery(deps: AttemptDeps, claimed: Claimed): Promise<void> {
  const { id, webhook, attempts } = claimed;
  const named = { webhook: webhook.id, delivery: id };
  try {
    const ended = await send(deps, claimed);
    if (ended.error !== null) deps.log.info({ ...named, attempts, ...ended }, 'webhook not delivered');
    const disabled = await markDelivery(deps.db, claimed, ended);
    if (disabled) deps.log.warn({ webhook: webhook.id, reason: disabled }, 'webhook endpoint disabled');
  } catch (error) {
    // Once its claim has run out it is attempted again.
    deps.log.warn({ ...named, ...causeOf(error) }, 'end of a webhook delivery not noted');
  }
}

async function send(deps: AttemptDeps, { event, webhook }: Claimed): Promise<Ended> {
  const sentAt = new Date();
  const previous = webhook.previousUntil && webhook.previousUntil > sentAt ? webhook.previousSealed : null;
  const owner = { accountId: webhook.accountId, webhookId: webhook.id };
  const message = { eventId: event.id, sentAt, payload: event.payload };
  let signature: string;
  try {
    const sealed = previous === null ? [webhook.sealed] : [webhook.sealed, previous];
    signature = signMessage(deps.encryptionKeys, owner, sealed, message);
  } catch (error) {
    deps.log.error({ webhook: webhook.id, ...causeOf(error) }, 'secret of a webhook cannot be opened');
    return { status: null, error: 'secret_unreadable' };
  }
  return sendWebhook(deps.dispatcher, { url: webhook.url, signature, ...message });
}
