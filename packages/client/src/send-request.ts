import type { ErrorBody } from '../generated/types.ts';
import { type ErrorCode, failed, type PresignError, refused } from './presign-error.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export type Settings = {
  readonly apiKey: string;
  readonly fetch: Fetch;
  readonly maxRetries: number;
  readonly timeoutMs: number;
  readonly onAttempt: ((attempt: Attempt) => unknown) | undefined;
};

/** One attempt of a request. It has no value of the request: no key, id, URL or body. */
export type Attempt = {
  /** Method and path of the operation, such as `GET /v1/sessions/{id}`. */
  readonly operation: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Undefined if there was no answer. */
  readonly status: number | undefined;
  /** Undefined after a success. */
  readonly code: ErrorCode | undefined;
  /** The id of the request in the issuer's log. */
  readonly requestId: string | undefined;
  readonly durationMs: number;
  /** The wait before the next attempt. Undefined if there is none. */
  readonly retryInMs: number | undefined;
};

export type Request = {
  readonly method: string;
  readonly url: string;
  /** Method and path for errors, without the values of the path. */
  readonly what: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  /** Whether it may be repeated when it is not known whether the first attempt succeeded. */
  readonly repeatable: boolean;
  readonly signal: AbortSignal | undefined;
};

export type Answered = {
  readonly kind: 'answered';
  readonly status: number;
  /** The body's media type, without parameters. */
  readonly type: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly text: string;
};

/** How one attempt ended. `reached`: the issuer may have received it. */
type Outcome = Answered | Unanswered;
type Unanswered = {
  readonly kind: 'unanswered';
  readonly code: 'connection_failed' | 'timed_out';
  readonly why: string | undefined;
  readonly reached: boolean;
};

/**
 * Sends a request, and repeats it where that is safe and can help. Resolves with a successful answer.
 * @throws PresignError of the last attempt, or the reason of the signal that ended the request
 */
export async function sendRequest(settings: Settings, request: Request): Promise<Answered> {
  for (let retries = 0; ; retries++) {
    const startedAt = performance.now();
    const outcome = await attempt(settings, request);
    const durationMs = performance.now() - startedAt;
    const isSuccess = outcome.kind === 'answered' && outcome.status >= 200 && outcome.status < 300;
    const error = isSuccess ? undefined : errorOf(outcome, request, settings.apiKey);
    const delayMs =
      error && retries < settings.maxRetries ? retryDelayMs(outcome, request, retries) : undefined;
    report(settings, {
      operation: request.what,
      attempt: retries + 1,
      status: outcome.kind === 'answered' ? outcome.status : undefined,
      code: error?.code,
      requestId: outcome.kind === 'answered' ? outcome.requestId : undefined,
      durationMs,
      retryInMs: delayMs,
    });
    if (isSuccess) return outcome;
    if (delayMs === undefined) throw error;
    await sleep(delayMs, request.signal);
  }
}

/** A hook that fails must not lose the answer, such as a URL that was issued. */
function report({ onAttempt }: Settings, attempt: Attempt): void {
  try {
    // One that is asynchronous is not awaited.
    Promise.resolve(onAttempt?.(attempt)).catch(() => {});
  } catch {}
}

function errorOf(outcome: Outcome, request: Request, apiKey: string): PresignError {
  if (outcome.kind === 'unanswered') {
    const { origin } = new URL(request.url);
    const where = outcome.why === undefined ? origin : `${origin}: ${outcome.why}`;
    return failed(outcome.code, request, where);
  }
  // An issuer never quotes the key, but a proxy might.
  const text = outcome.text.replaceAll(apiKey, '[API key]');
  return errorIn({ ...outcome, text }, request);
}

/** The error of an answer that is not a success. */
function errorIn({ status, requestId, retryAfterSeconds, text }: Answered, request: Request): PresignError {
  const common = { status, requestId, retryAfterSeconds };
  const error = readError(text);
  if (!error) return failed('unexpected_answer', request, `status ${status}`, common);
  const { code, message, type, param, request_id, ...details } = error;
  return refused(type, {
    ...common,
    code,
    message,
    param: param ?? undefined,
    requestId: request_id,
    details,
  });
}

function readError(text: string): ErrorBody['error'] | undefined {
  try {
    const { error } = JSON.parse(text) as Partial<ErrorBody>;
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : undefined;
  } catch {
    return undefined;
  }
}

async function attempt({ fetch, apiKey, timeoutMs }: Settings, request: Request): Promise<Outcome> {
  const { method, url, headers, body = null, signal } = request;
  const timeout = AbortSignal.timeout(timeoutMs);
  const type: Record<string, string> = body === null ? {} : { 'content-type': 'application/json' };
  try {
    const answer = await fetch(url, {
      method,
      headers: { accept: 'application/json', ...type, ...headers, authorization: `Bearer ${apiKey}` },
      body,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
      // The body may contain a provider's key, which must not be sent to another address.
      redirect: 'manual',
    });
    return answered(answer, await answer.text());
  } catch (error) {
    signal?.throwIfAborted();
    if (timeout.aborted) return { kind: 'unanswered', code: 'timed_out', why: undefined, reached: true };
    const why = codeOf(error);
    return { kind: 'unanswered', code: 'connection_failed', why, reached: !NEVER_SENT.has(why ?? '') };
  }
}

function answered({ status, headers }: Response, text: string): Answered {
  const type = headers.get('content-type')?.split(';')[0]?.trim().toLowerCase();
  const retryAfter = headers.get('retry-after');
  return {
    kind: 'answered',
    status,
    type,
    requestId: headers.get('x-request-id') ?? undefined,
    retryAfterSeconds: retryAfter !== null && /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined,
    text,
  };
}

/** Node's codes for failures before a connection exists. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Only the platform's code: messages and causes of another `fetch` may quote the request. */
function codeOf(error: unknown): string | undefined {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined;
  const code = typeof cause === 'object' && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^[A-Z_]{1,40}$/.test(code) ? code : undefined;
}

/** A longer wait becomes an error, which states the wait. */
const LONGEST_WAIT_S = 30;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 4_000;

/** How long to wait before a request is repeated, in milliseconds. Undefined if it is not repeated. */
function retryDelayMs(outcome: Outcome, request: Request, retries: number): number | undefined {
  if (!mayRepeat(outcome, request)) return undefined;
  const asked = outcome.kind === 'answered' ? outcome.retryAfterSeconds : undefined;
  if (asked === undefined) {
    // Random, so that clients that failed together do not return together.
    return Math.random() * Math.min(FIRST_BACKOFF_MS * 2 ** retries, LONGEST_BACKOFF_MS);
  }
  return asked <= LONGEST_WAIT_S ? asked * 1_000 + Math.random() * FIRST_BACKOFF_MS : undefined;
}

function mayRepeat(outcome: Outcome, { repeatable }: Request): boolean {
  if (outcome.kind === 'unanswered') return repeatable || !outcome.reached;
  // A rate limit refuses a request before it has any effect.
  if (outcome.status === 429) return true;
  // A conflict with Retry-After: the first attempt of this Idempotency-Key is still under way.
  const underWay = outcome.status === 409 && outcome.retryAfterSeconds !== undefined;
  return repeatable && (underWay || OUTAGES.has(outcome.status));
}

/** The issuer answers 503 itself. The others come from proxies. */
const OUTAGES: ReadonlySet<number> = new Set([502, 503, 504]);

function sleep(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, delayMs);
    // A signal that was aborted before sends no event.
    if (signal?.aborted) return stop();
    signal?.addEventListener('abort', stop, { once: true });
  });
}
