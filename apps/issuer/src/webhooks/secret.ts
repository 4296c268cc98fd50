import { type EncryptionKeys, seal, unseal } from '@presign/crypto';
import { webhookContext } from '@presign/schema/webhook-tables';
import { Webhook } from 'standardwebhooks';

/** How long a rotated secret still signs. */
export const PREVIOUS_SECRET_HOURS = 24;

/** The endpoint that a secret belongs to, and is sealed for. */
type Owner = { readonly accountId: string; readonly webhookId: string };

/** A signing secret of 32 random bytes: Standard Webhooks asks for 24 to 64. */
export const SIGNING_SECRET = {
  field: 'secret',
  write: (bytes: Uint8Array) => `whsec_${Buffer.from(bytes).toString('base64')}`,
} as const;

/** A signing secret as it is stored. */
export const sealSecret = (keys: EncryptionKeys, secret: string, { accountId, webhookId }: Owner): string =>
  seal(keys, secret, webhookContext(accountId, webhookId));

/**
 * The whole URL of a Slack endpoint, which is stored as its secret.
 * @throws SealError when it cannot be unsealed
 */
export const unsealUrl = (keys: EncryptionKeys, sealed: string, { accountId, webhookId }: Owner): string =>
  unseal(keys, sealed, webhookContext(accountId, webhookId));

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
