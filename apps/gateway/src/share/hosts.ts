import type { Refusal } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/**
 * Upstreams that refuse connections. A call that cannot be sent costs nothing, so calls to such an upstream are refused for a while before
 * the next attempt. Only a failed connection starts this wait, and each upstream has its own. A holder cannot cause a wait for an upstream
 * that others reach.
 */
export type Hosts = {
  /** How many ms calls to this upstream wait before they are admitted; 0 if they may be sent. */
  readonly waitMs: (host: string) => number;
  /** Records that a call tries to connect. Other calls wait for its result. */
  readonly tries: (host: string) => void;
  /** Records that a call got a new or an open connection. */
  readonly reached: (host: string) => void;
  /** Records that a call got no connection. */
  readonly failed: (host: string) => void;
};

/** How long calls wait after the first failure, the second in a row, and so on. */
const WAITS_MS = [1_000, 2_000, 4_000];
/** An upstream that was reached this recently counts as available, even if one connection failed. */
const RECENT_MS = 1_000;
/** After this time without a failure, the next failure counts as the first. */
const FORGOTTEN_MS = 60_000;
/** The number of remembered upstreams. For an evicted one, one more call is sent. */
const REMEMBERED = 1_000;

type Host = { failures: number; waitsUntilMs: number; reachedMs: number; isTried: boolean };

export function createHosts(now: () => number = () => performance.now()): Hosts {
  const hosts = new LRUCache<string, Host>({ max: REMEMBERED });
  const waitMs = (host: string) => Math.max(0, (hosts.get(host)?.waitsUntilMs ?? 0) - now());
  const waitAfter = (failures: number) => WAITS_MS[Math.min(failures, WAITS_MS.length) - 1] ?? 0;
  return {
    waitMs,
    tries: (host) => {
      const known = hosts.get(host);
      if (!known || known.failures === 0) return;
      known.isTried = true;
      known.waitsUntilMs = now() + waitAfter(known.failures);
    },
    reached: (host) => {
      const known = hosts.get(host);
      const reachedMs = now();
      // Changed in place, because each call runs this code.
      if (known) Object.assign(known, { failures: 0, waitsUntilMs: 0, reachedMs, isTried: false });
      else hosts.set(host, { failures: 0, waitsUntilMs: 0, reachedMs, isTried: false });
    },
    failed: (host) => {
      const nowMs = now();
      const { failures, waitsUntilMs, reachedMs, isTried } = hosts.get(host) ?? NEVER_SEEN;
      if (nowMs - reachedMs < RECENT_MS) return;
      // If calls that were sent together fail, the first failure counts.
      if (nowMs < waitsUntilMs && !isTried) return;
      const inRow = nowMs - waitsUntilMs > FORGOTTEN_MS ? 1 : failures + 1;
      hosts.set(host, { failures: inRow, waitsUntilMs: nowMs + waitAfter(inRow), reachedMs, isTried: false });
    },
  };
}

const NEVER_SEEN: Host = {
  failures: 0,
  waitsUntilMs: Number.NEGATIVE_INFINITY,
  reachedMs: Number.NEGATIVE_INFINITY,
  isTried: false,
};

/**
 * Refuses a call before it is admitted if its upstream refuses connections, so it costs nothing.
 * @param host identifies the upstream, as in `forward`
 */
export function checkHost(hosts: Hosts, host: string): Refusal | undefined {
  const waitMs = hosts.waitMs(host);
  if (waitMs === 0) return undefined;
  return { ...UNREACHABLE, retryAfterSeconds: Math.ceil(waitMs / 1_000) };
}

const UNREACHABLE = {
  code: 'upstream_unreachable',
  status: 503,
  message: 'The upstream refuses connections, so this call was not tried. Try again soon.',
} as const satisfies Refusal;
