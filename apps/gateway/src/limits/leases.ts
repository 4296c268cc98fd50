import { Worker } from 'node:worker_threads';
import { type RedisClient, renewAll, sweep } from '@presign/limits';
import { causeOf, PARTITIONS } from '@presign/schema';
import type { Logger } from 'pino';
import type { LeaseChange, LeaseThreadReport, LeaseThreadStart } from './lease-thread.ts';

/** The holds of this gateway's calls under way. */
export type Leases = {
  readonly add: (partition: number, holdId: string) => void;
  readonly remove: (partition: number, holdId: string) => void;
  /** Stops renewing and sweeping. */
  readonly close: () => Promise<void>;
};

type Deps = {
  readonly redis: RedisClient;
  /** The address of the same Redis, for a thread that renews the leases. */
  readonly redisUrl?: string | undefined;
  readonly leaseMs: number;
  readonly upstreamTimeoutMs: number;
  readonly log: Logger;
};

const BEAT_MS = 1_000;

/**
 * Renews the leases of calls under way, and sweeps the holds that dead gateways left, with one script per partition.
 * It renews every third and sweeps every sixth of a lease, so that one missed turn ends no lease.
 *
 * With `redisUrl` a thread renews (`lease-thread.ts`), so that a busy event loop ends no lease. Without it, and whenever
 * the thread does not run, this event loop renews. The embedded Redis has no thread: it runs in this process, and a busy
 * event loop stops it, too.
 */
export function startLeases(deps: Deps): Leases {
  const { redis, redisUrl, leaseMs, log } = deps;
  const held = new Map<number, Set<string>>();
  const thread = redisUrl === undefined ? undefined : startThread({ ...deps, redisUrl });
  const renewHeld = async () => {
    if (thread?.isRenewing()) return;
    const turns = [...held].filter(([, holds]) => holds.size > 0);
    logFailed(log, await renewAll(redis, leaseMs, turns));
  };
  const renewing = setInterval(() => void renewHeld(), leaseMs / 3);
  const sweeping = setInterval(() => void sweepAll(deps), leaseMs / 6);
  return {
    add: (partition, holdId) => {
      const holds = held.get(partition);
      if (holds) holds.add(holdId);
      else held.set(partition, new Set([holdId]));
      thread?.change([partition, holdId, true]);
    },
    remove: (partition, holdId) => {
      held.get(partition)?.delete(holdId);
      thread?.change([partition, holdId, false]);
    },
    close: async () => {
      clearInterval(renewing);
      clearInterval(sweeping);
      await thread?.close();
    },
  };
}

type Thread = {
  readonly change: (change: LeaseChange) => void;
  readonly isRenewing: () => boolean;
  readonly close: () => Promise<void>;
};

/** Starts a thread that learns of every hold, and sees by a heartbeat that this event loop still turns. */
function startThread({ redisUrl, leaseMs, upstreamTimeoutMs, log }: Deps & { redisUrl: string }): Thread {
  const heartbeat = new BigInt64Array(new SharedArrayBuffer(8));
  const beat = () => void Atomics.store(heartbeat, 0, process.hrtime.bigint());
  beat();
  const beating = setInterval(beat, BEAT_MS);
  // The bundle for containers has the thread in one file of this name.
  const file = import.meta.url.endsWith('.ts') ? './lease-thread-from-source.mjs' : './lease-thread.js';
  // A call may take as long as its upstream, and as long as its settle is tried again.
  const longestMs = upstreamTimeoutMs + leaseMs;
  const workerData: LeaseThreadStart = { redisUrl, leaseMs, longestMs, heartbeat };
  const worker = new Worker(new URL(file, import.meta.url), { workerData });
  worker.unref();
  let isRenewing = false;
  worker.on('message', ({ failed }: LeaseThreadReport) => {
    isRenewing = true;
    logFailed(log, failed);
  });
  worker.on('error', (error) => log.error(causeOf(error), 'the thread that renews leases failed'));
  worker.on('exit', () => {
    isRenewing = false;
  });
  let changes: LeaseChange[] = [];
  const send = () => {
    worker.postMessage(changes);
    changes = [];
  };
  return {
    // The changes of one callback leave before the next callback, which may keep the event loop busy.
    change: (change) => {
      if (changes.push(change) === 1) queueMicrotask(send);
    },
    isRenewing: () => isRenewing,
    close: async () => {
      clearInterval(beating);
      await worker.terminate();
    },
  };
}

function logFailed(log: Logger, partitions: number): void {
  if (partitions > 0) log.warn({ partitions }, 'leases not renewed');
}

async function sweepAll({ redis, log }: Deps): Promise<void> {
  const partitions = Array.from({ length: PARTITIONS }, (_, id) => id);
  const done = await Promise.allSettled(partitions.map((id) => sweep(redis, id)));
  const expired = done.reduce((sum, each) => sum + (each.status === 'fulfilled' ? each.value : 0), 0);
  if (expired > 0) log.warn({ holds: expired }, 'leases ran out and were settled in full');
}
