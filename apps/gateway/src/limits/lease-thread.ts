import { parentPort, workerData } from 'node:worker_threads';
import { connectRedis, renewAll } from '@presign/limits';
import { byPartition, LeaseTable, monotonicMs } from './lease-table.ts';

/** The data that the thread starts with. */
export type LeaseThreadStart = {
  readonly redisUrl: string;
  readonly leaseMs: number;
  /** The longest that a hold is renewed. */
  readonly longestMs: number;
  /** Shared with the main thread, which writes the time there (`monotonicMs`) while its event loop turns. */
  readonly heartbeat: Float64Array;
};

/** Sent when the thread begins, and whenever a renewal failed. */
export type LeaseThreadReport = { readonly failed: number };

/**
 * A main thread that is busy for longer counts as stuck. The leases of its calls then end, as if the gateway had died. In a
 * frozen process this thread does not run either.
 */
const STUCK_MS = 30_000;

const { redisUrl, leaseMs, longestMs, heartbeat } = workerData as LeaseThreadStart;

const tables: LeaseTable[] = [];
const redis = connectRedis(redisUrl, () => {
  // The main thread has a connection of its own and logs why Redis cannot be reached.
});

parentPort?.on('message', (memory: SharedArrayBuffer) => tables.push(new LeaseTable(memory)));

setInterval(async () => {
  if (monotonicMs() - (heartbeat[0] ?? 0) > STUCK_MS) return;
  const failed = await renewAll(redis, leaseMs, byPartition(tables, longestMs));
  if (failed > 0) report(failed);
}, leaseMs / 3);

const report = (failed: number) => parentPort?.postMessage({ failed } satisfies LeaseThreadReport);
report(0);
