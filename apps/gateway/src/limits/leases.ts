import { Worker } from 'node:worker_threads';
import {
  groupsOf,
  type JumpWatch,
  type RedisClient,
  type RedisTimeouts,
  sweep,
  watchForJumps,
} from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import { causeOf } from '@presign/service';
import type { Work, Works } from '@presign/service/metrics';
import type { Logger } from 'pino';
import { Bag } from '../bag.ts';
import {
  keepRenewing,
  LEASE_SLOTS,
  LeaseTable,
  type LeaseThreadReport,
  type LeaseThreadStart,
  monotonicMs,
  renewTables,
} from './lease-table.ts';
import { OUTAGE_MS } from './retry.ts';

/** The holds of this gateway's calls in flight. */
export type Leases = {
  /** Renews a hold until it is removed, or its call has taken its longest time and an hour to settle. */
  readonly add: (hold: LeasedHold) => void;
  /** Records the lower amount of a hold. */
  readonly lower: (holdId: string, microusd: number) => void;
  readonly remove: (holdId: string) => void;
  /** Calls `cut` before the lease of a hold may end. The returned function stops this. */
  readonly guard: (lease: Guarded, cut: () => void) => () => void;
  readonly held: () => { readonly holds: number; readonly microusd: number };
  /** How many seconds a call should wait for other calls' holds to end: half of the mean time of calls here. */
  readonly waitSeconds: () => number;
  /** Stops renewing and sweeping. */
  readonly close: () => Promise<void>;
};

/** The hold of a call that has begun. */
export type LeasedHold = {
  readonly partition: number;
  readonly holdId: string;
  /** 0: it holds a place only. */
  readonly microusd: number;
  /** The longest time that its call may take. */
  readonly longestMs: number;
};

/** A lease that its call must not outlive. */
export type Guarded = {
  readonly partition: number;
  readonly holdId: string;
  /** A time before the lease began, by `monotonicMs`. */
  readonly askedMs: number;
};

type Deps = {
  readonly redis: RedisClient;
  /** The address of the same Redis, for a thread that renews the leases. */
  readonly redisUrl?: string | undefined;
  readonly redisTimeouts?: RedisTimeouts | undefined;
  readonly leaseMs: number;
  readonly metrics: {
    /** Counts holds whose gateway stopped renewing them. */
    readonly leasesExpired: (holds: number) => void;
    readonly work: Works<'leases' | 'lease_sweep'>;
  };
  readonly log: Logger;
};

const BEAT_MS = 1_000;
/** The mean time of calls covers about this many recent calls. */
const CALLS_OF_MEAN = 16;
const LONGEST_WAIT_SECONDS = 30;

/**
 * Renews the leases of calls in flight, and sweeps the holds of dead gateways, with one script per partition. It renews
 * every third and sweeps every sixth of a lease, so that one missed renewal ends no lease.
 *
 * With `redisUrl` a thread renews (`lease-thread.ts`), so that a busy event loop ends no lease. Without it, and
 * whenever the thread does not run, this event loop renews. The embedded Redis has no thread: it runs in this process,
 * and a busy event loop stops it, too.
 */
export function startLeases(deps: Deps): Leases {
  const { redis, redisUrl, redisTimeouts, leaseMs, log } = deps;
  const tables: LeaseTable[] = [];
  const slots = new Map<string, number>();
  const free: number[] = [];
  /** The hold in each slot, in microdollars. */
  const amounts: number[] = [];
  let heldMicrousd = 0;
  let usualMs = 2_000;
  const renewedMs = sharedFloats(PARTITIONS);
  const toStart = { redisTimeouts, leaseMs, renewedMs };
  const work = deps.metrics.work('leases');
  const renewed = (failed: number) => renewalEnded(log, work, failed);
  const thread = redisUrl === undefined ? undefined : startThread({ redisUrl, ...toStart, log, renewed });
  const addTable = () => {
    const table = new LeaseTable();
    const first = tables.push(table) * LEASE_SLOTS - LEASE_SLOTS;
    for (let slot = LEASE_SLOTS - 1; slot >= 0; slot--) free.push(first + slot);
    thread?.share(table);
  };
  const tableOf = (slot: number) => tables[Math.floor(slot / LEASE_SLOTS)];
  const setAmount = (slot: number, microusd: number) => {
    heldMicrousd += microusd - (amounts[slot] ?? 0);
    amounts[slot] = microusd;
  };
  const renewHeld = async () => {
    work.begins();
    return thread?.isRenewing() ? 0 : renewed(await renewTables(redis, toStart, tables));
  };
  const stopRenewing = keepRenewing(leaseMs, renewHeld);
  const watch = watchForJumps(leaseMs);
  const sweeper = { ...deps, work: deps.metrics.work('lease_sweep') };
  const sweepNow = () => void sweepAll(sweeper, watch);
  sweepNow();
  const sweeping = setInterval(sweepNow, leaseMs / 6);
  const renewedUntil = (slot = -1) => tableOf(slot)?.untilMs(slot % LEASE_SLOTS);
  const guards = startGuards(leaseMs, renewedMs, (holdId) => renewedUntil(slots.get(holdId)));
  return {
    guard: guards.guard,
    held: () => ({ holds: slots.size, microusd: heldMicrousd }),
    lower: (holdId, microusd) => {
      const slot = slots.get(holdId);
      if (slot !== undefined) setAmount(slot, microusd);
    },
    add: ({ partition, holdId, microusd, longestMs }) => {
      if (free.length === 0) addTable();
      const slot = free.pop() ?? 0;
      slots.set(holdId, slot);
      setAmount(slot, microusd);
      tableOf(slot)?.fill(slot % LEASE_SLOTS, partition, holdId, longestMs + OUTAGE_MS);
    },
    remove: (holdId) => {
      const slot = slots.get(holdId);
      if (slot === undefined) return;
      slots.delete(holdId);
      setAmount(slot, 0);
      free.push(slot);
      const tookMs = tableOf(slot)?.free(slot % LEASE_SLOTS) ?? usualMs;
      usualMs += (tookMs - usualMs) / CALLS_OF_MEAN;
    },
    waitSeconds: () => Math.min(Math.max(1, Math.ceil(usualMs / 2_000)), LONGEST_WAIT_SECONDS),
    close: async () => {
      stopRenewing();
      clearInterval(sweeping);
      guards.close();
      await thread?.close();
    },
  };
}

type Thread = {
  readonly share: (table: LeaseTable) => void;
  readonly isRenewing: () => boolean;
  readonly close: () => Promise<void>;
};

type ThreadOptions = Omit<LeaseThreadStart, 'heartbeat'> &
  Pick<Deps, 'log'> & { readonly renewed: (failed: number) => void };

/** The thread creates few objects. With its default, V8 would collect them later, which took 5 MB. */
const THREAD_YOUNG_MB = 3;

/** Starts a thread that reads the tables of holds. A heartbeat shows the thread that this event loop still runs. */
function startThread({ log, renewed, ...options }: ThreadOptions): Thread {
  const heartbeat = sharedFloats(1);
  const beat = () => {
    heartbeat[0] = monotonicMs();
  };
  beat();
  const beating = setInterval(beat, BEAT_MS);
  // In the container bundle, the thread is a single file with this name.
  const file = import.meta.url.endsWith('.ts') ? './lease-thread-from-source.mjs' : './lease-thread.js';
  const workerData: LeaseThreadStart = { ...options, heartbeat };
  const resourceLimits = { maxYoungGenerationSizeMb: THREAD_YOUNG_MB };
  const worker = new Worker(new URL(file, import.meta.url), { workerData, resourceLimits });
  worker.unref();
  let isRenewing = false;
  worker.on('message', ({ failed }: LeaseThreadReport) => {
    isRenewing = true;
    renewed(failed);
  });
  worker.on('error', (error) => log.error(causeOf(error), 'the thread that renews leases failed'));
  worker.on('exit', () => {
    isRenewing = false;
  });
  return {
    share: ({ memory }) => worker.postMessage(memory),
    isRenewing: () => isRenewing,
    close: async () => {
      clearInterval(beating);
      await worker.terminate();
    },
  };
}

const sharedFloats = (length: number) =>
  new Float64Array(new SharedArrayBuffer(length * Float64Array.BYTES_PER_ELEMENT));

/**
 * Cuts calls whose leases were not renewed, a sixth of a lease before the leases may end, and calls whose leases are not renewed any more.
 * @param untilMs until when a hold is renewed. Undefined: its call has ended
 */
function startGuards(
  leaseMs: number,
  renewedMs: Float64Array,
  untilMs: (holdId: string) => number | undefined,
) {
  const guarded = new Bag<Guarded & { readonly addedMs: number; readonly cut: () => void }>();
  const checking = setInterval(() => {
    const now = monotonicMs();
    for (const { partition, holdId, askedMs, addedMs, cut } of guarded) {
      const renewed = renewedMs[partition] ?? 0;
      // A renewal that began before the lease was in the tables does not count.
      const beganMs = renewed > addedMs ? renewed : askedMs;
      const isLate = now - beganMs > (leaseMs * 5) / 6 - CHECK_PART_OF * leaseMs;
      if (isLate || now > (untilMs(holdId) ?? now)) cut();
    }
  }, leaseMs * CHECK_PART_OF);
  checking.unref();
  return {
    guard: (lease: Guarded, cut: () => void) => guarded.add({ ...lease, addedMs: monotonicMs(), cut }),
    close: () => clearInterval(checking),
  };
}

/** How often guarded leases are checked, as a part of a lease. */
const CHECK_PART_OF = 1 / 12;

/** @returns how many partitions did not answer */
function renewalEnded(log: Logger, work: Work, partitions: number): number {
  if (partitions > 0) log.warn({ partitions }, 'leases not renewed');
  else work.succeeds();
  return partitions;
}

type Sweeper = Deps & { readonly work: Work };

async function sweepAll({ redis, log, metrics, work }: Sweeper, watch: JumpWatch): Promise<void> {
  work.begins();
  const partitions = Array.from({ length: PARTITIONS }, (_, id) => id);
  const done = await Promise.allSettled(
    groupsOf(redis, partitions).map((group) => sweep(redis, group, watch)),
  );
  if (done.every(({ status }) => status === 'fulfilled')) work.succeeds();
  const expired = done.reduce((sum, each) => sum + (each.status === 'fulfilled' ? each.value : 0), 0);
  if (expired === 0) return;
  metrics.leasesExpired(expired);
  log.warn({ holds: expired }, 'leases ran out and were settled in full');
}
