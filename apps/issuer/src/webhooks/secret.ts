import { randomBytes } from 'node:crypto';
import { type EncryptionKeys, seal, unseal } from '@presign/crypto';
import { webhookContext } from '@presign/schema/webhook-tables';
import { Webhook } from 'standardwebhooks';

/** Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;

/** How long a rotated secret still signs. */
export const PREVIOUS_SECRET_HOURS = 24;

/** The endpoint that a secret belongs to, and is sealed for. */
type Owner = { readonly accountId: string; readonly webhookId: string };

/** Makes a signing secret. `sealed` is stored; `secret` is shown once. */
export function newSecret(keys: EncryptionKeys, { accountId, webhookId }: Owner) {
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  return { secret, sealed: seal(keys, secret, webhookContext(accountId, webhookId)) };
}

/** The signed fields: the event's id, the time of the attempt and the body, so that none can be exchanged. */
type Message = { readonly eventId: string; readonly sentAt: Date; readonly payload: string };

/**
 * The header `webhook-signature`: one signature for each secret.
 * @throws SealError when a secret cannot be unsealed
 */
export function signMessage(
  keys: EncryptionKeys,
  owner: Owner,
  sealed: readonly string[],
  { eventId, sentAt, payload }: Message,
): string {
  const context = webhookContext(owner.accountId, owner.webhookId);
  return sealed
    .map((each) => new Webhook(unseal(keys, each, context)).sign(eventId, sentAt, payload))
    .join(' ');
}
