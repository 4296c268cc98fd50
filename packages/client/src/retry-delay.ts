import type { Outcome, Request } from './send-request.ts';

/** Who is asked to wait longer is better served by an error that says so. */
const LONGEST_WAIT_S = 30;
const FIRST_BACKOFF_MS = 250;
const LONGEST_BACKOFF_MS = 4_000;

/** How long to wait, in milliseconds, before a request is sent again; undefined when it is not to be. */
export function retryDelayMs(outcome: Outcome, request: Request, retries: number): number | undefined {
  if (!mayRepeat(outcome, request)) return undefined;
  const asked = outcome.kind === 'answered' ? outcome.retryAfterSeconds : undefined;
  if (asked === undefined) {
    // Anywhere between none and the whole, so that clients that failed together do not come back together.
    return Math.random() * Math.min(FIRST_BACKOFF_MS * 2 ** retries, LONGEST_BACKOFF_MS);
  }
  return asked <= LONGEST_WAIT_S ? asked * 1_000 + Math.random() * FIRST_BACKOFF_MS : undefined;
}

function mayRepeat(outcome: Outcome, { repeatable }: Request): boolean {
  if (outcome.kind === 'unanswered') return repeatable || !outcome.reached;
  // Refused before anything was done.
  if (outcome.status === 429) return true;
  // A conflict with Retry-After: the first attempt of this Idempotency-Key is still under way.
  const underWay = outcome.status === 409 && outcome.retryAfterSeconds !== undefined;
  return repeatable && (underWay || OUTAGES.has(outcome.status));
}

/** 503 is the issuer's own, the others are of proxies before it. */
const OUTAGES: ReadonlySet<number> = new Set([502, 503, 504]);
