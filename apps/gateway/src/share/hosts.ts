import type { Refusal } from '@presign/schema';
import { LRUCache } from 'lru-cache';

/**
 * Upstreams that refuse connections. A call that cannot be sent costs nothing, so calls to such an upstream wait for a while
 * before the next one tries. Only a failed connection begins a wait, and each upstream has its own: no holder can make one
 * wait that others reach.
 */
export type Hosts = {
  /** How many ms calls to this upstream wait before they are admitted; 0 if they may be sent. */
  readonly waitMs: (host: string) => number;
  /** Notes that a call tries to connect. Others go on waiting for its result. */
  readonly tries: (host: string) => void;
  /** Notes that a call got a connection, a new or an open one. */
  readonly reached: (host: string) => void;
  /** Notes that a call got no connection. */
  readonly failed: (host: string) => void;
};

/** How long calls wait after the first failure, the second in a row, and so on. */
const WAITS_MS = [1_000, 2_000, 4_000];
/** An upstream that was reached so recently is not away, whatever became of one connection. */
const RECENT_MS = 1_000;
/** A failure so long after the last one is a first one again. */
const FORGOTTEN_MS = 60_000;
/** Upstreams that are remembered. For one that is forgotten, one more call is sent. */
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
      // Changed in place, because each call comes here.
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
 * @param host names the upstream, as it is named to `forward`
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
