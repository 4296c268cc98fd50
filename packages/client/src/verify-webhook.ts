import type { EventType } from '../generated/types.ts';

/** The request is not from the issuer, or is too old. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError';
}

export type WebhookEvent = {
  readonly type: EventType | 'webhook.test' | (string & {});
  /** When the event happened, in ISO 8601. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
};

/** Those of Node's `IncomingMessage`, or of a `Request`. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * The event of a webhook request whose signature is right (https://www.standardwebhooks.com). Handle each `webhook-id` once, because an
 * event can arrive more than once.
 * @param body as it came, before it is parsed
 * @param secret of the endpoint
 * @throws WebhookVerificationError, or TypeError when the secret is malformed
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string,
  { toleranceSeconds = 300 }: { readonly toleranceSeconds?: number | undefined } = {},
): Promise<WebhookEvent> {
  const of = (name: string) => headerOf(headers, name);
  const missing = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].find((name) => of(name) === '');
  if (missing !== undefined) throw new WebhookVerificationError(`${missing}: missing`);
  const sentAt = of('webhook-timestamp');
  if (!/^\d{1,12}$/.test(sentAt) || !(Math.abs(Date.now() / 1000 - Number(sentAt)) <= toleranceSeconds))
    throw new WebhookVerificationError(`webhook-timestamp: not within ${toleranceSeconds} seconds of now`);
  const text = bytesOf(body);
  const start = new TextEncoder().encode(`${of('webhook-id')}.${sentAt}.`);
  const signed = new Uint8Array(start.length + text.length);
  signed.set(start);
  signed.set(text, start.length);
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', keyOf(secret), algorithm, false, ['verify']);
  // After a rotation of the secret there are two.
  const given = of('webhook-signature').split(' ').slice(0, MOST_SIGNATURES);
  const right = await Promise.all(
    given.map((each) => crypto.subtle.verify('HMAC', key, signatureOf(each), signed)),
  );
  if (!right.includes(true))
    throw new WebhookVerificationError('webhook-signature: wrong for this body and secret');
  return JSON.parse(new TextDecoder().decode(text)) as WebhookEvent;
}

const MOST_SIGNATURES = 10;

function bytesOf(body: unknown): Uint8Array {
  if (typeof body === 'string') return new TextEncoder().encode(body);
  if (body instanceof Uint8Array) return body;
  throw new TypeError('body: expected the body as it came, in bytes or text, before it is parsed.');
}

function headerOf(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? '';
  const [, value = ''] = Object.entries(headers).find(([each]) => each.toLowerCase() === name) ?? [];
  return typeof value === 'string' ? value : value.join(' ');
}

function keyOf(secret: unknown): Uint8Array<ArrayBuffer> {
  const key =
    typeof secret === 'string' && secret.startsWith('whsec_')
      ? fromBase64(secret.slice('whsec_'.length))
      : undefined;
  // An empty key would let anyone sign.
  if (key && key.length > 0) return key;
  throw new TypeError('secret: expected the secret of an endpoint, whsec_…');
}

/** A signature of another version is like a wrong one. */
const signatureOf = (text: string) =>
  (text.startsWith('v1,') ? fromBase64(text.slice(3)) : undefined) ?? new Uint8Array();

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
