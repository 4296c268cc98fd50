import { BlockedAddressError } from '@presign/outbound';
import type { DeliveryError } from '@presign/schema';
import { type Dispatcher, request } from 'undici';

/** How long one attempt may take in all. */
const TIMEOUT_MS = 10_000;
/** What of an answer is read, so that its connection can be used again; the rest is not waited for. */
const ANSWER_MAX_BYTES = 16_384;

/** One signed request. */
export type Attempt = {
  readonly url: string;
  readonly eventId: string;
  readonly sentAt: Date;
  readonly signature: string;
  readonly payload: string;
};

/** How an attempt ended. */
export type Ended = {
  /** HTTP status; null when no answer came. */
  readonly status: number | null;
  /** Null: the endpoint has the event. */
  readonly error: DeliveryError | null;
  /** How long the endpoint wants to be left alone, by its `Retry-After`. */
  readonly restSeconds?: number;
};

/** An endpoint may ask for a day of rest at most. */
const REST_MAX_SECONDS = 86_400;

/** Makes one attempt. Any 2xx is a success; redirects are not followed. */
export async function sendWebhook(dispatcher: Dispatcher, attempt: Attempt): Promise<Ended> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  try {
    const answer = await request(attempt.url, {
      dispatcher,
      signal,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'Presign-Webhooks/1',
        'webhook-id': attempt.eventId,
        'webhook-timestamp': String(Math.floor(attempt.sentAt.getTime() / 1000)),
        'webhook-signature': attempt.signature,
      },
      body: attempt.payload,
    });
    const { statusCode: status } = answer;
    // Its status is all that counts, also when the body breaks off.
    await answer.body.dump({ limit: ANSWER_MAX_BYTES, signal }).catch(() => {});
    if (status >= 200 && status < 300) return { status, error: null };
    return { status, error: 'http_status', restSeconds: restOf(answer.headers['retry-after']) };
  } catch (error) {
    return { status: null, error: signal.aborted ? 'timeout' : nameOf(error) };
  }
}

/** RFC 9110 §10.2.3: seconds or a date; 0 for what is neither. */
function restOf(retryAfter: string | string[] | undefined): number {
  const text = String(retryAfter ?? '');
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? 0 : Math.min(Math.max(seconds, 0), REST_MAX_SECONDS);
}

const nameOf = (error: unknown): DeliveryError => {
  if (error instanceof BlockedAddressError) return 'address_not_public';
  return error instanceof Error && 'code' in error && /TIMEOUT|TIMEDOUT/.test(String(error.code))
    ? 'timeout'
    : 'unreachable';
};
