import { parentPort, workerData } from 'node:worker_threads';
import { connectRedis } from '@presign/limits';
import {
  keepRenewing,
  LeaseTable,
  type LeaseThreadReport,
  type LeaseThreadStart,
  monotonicMs,
  renewTables,
} from './lease-table.ts';

/**
 * A main thread that is busy for longer counts as stuck. The leases of its calls then end, as if the gateway had died. In a suspended
 * process this thread does not run either.
 */
const STUCK_MS = 30_000;

const start = workerData as LeaseThreadStart;
const { redisUrl, redisTimeouts, leaseMs, heartbeat } = start;

const tables: LeaseTable[] = [];
/** The main thread has a connection of its own and logs why Redis cannot be reached. */
const ignore = () => {};
const redis = connectRedis(redisUrl, ignore, redisTimeouts);

parentPort?.on('message', (memory: SharedArrayBuffer) => tables.push(new LeaseTable(memory)));

keepRenewing(leaseMs, async () => {
  if (monotonicMs() - (heartbeat[0] ?? 0) > STUCK_MS) return 0;
  const failed = await renewTables(redis, start, tables);
  report(failed);
  return failed;
});

const report = (failed: number) => parentPort?.postMessage({ failed } satisfies LeaseThreadReport);
report(0);
