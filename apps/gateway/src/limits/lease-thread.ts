import { parentPort, workerData } from 'node:worker_threads';
import { connectRedis, renewAll } from '@presign/limits';

/** The data that the thread starts with. */
export type LeaseThreadStart = {
  readonly redisUrl: string;
  readonly leaseMs: number;
  /** The longest that a hold is renewed. */
  readonly longestMs: number;
  /** Shared with the main thread, which writes the time there (`process.hrtime`) while its event loop turns. */
  readonly heartbeat: BigInt64Array;
};

/** A hold that begins or ends. */
export type LeaseChange = readonly [partition: number, holdId: string, isHeld: boolean];

/** Sent when the thread begins, and whenever a renewal failed. */
export type LeaseThreadReport = { readonly failed: number };

/**
 * A main thread that is busy for longer counts as stuck: its calls end with their leases, as those of a gateway that died.
 * A process that is frozen runs no thread at all.
 */
const STUCK_MS = 30_000;

const { redisUrl, leaseMs, longestMs, heartbeat } = workerData as LeaseThreadStart;
const nowMs = () => Number(process.hrtime.bigint() / 1_000_000n);
const mainMs = () => Number(Atomics.load(heartbeat, 0) / 1_000_000n);

/** When each hold is given up, by partition. */
const held = new Map<number, Map<string, number>>();
const redis = connectRedis(redisUrl, () => {
  // The main thread has a connection of its own and logs why Redis cannot be reached.
});

parentPort?.on('message', (changes: readonly LeaseChange[]) => {
  const endsMs = nowMs() + longestMs;
  for (const [partition, holdId, isHeld] of changes) {
    const holds = held.get(partition) ?? new Map<string, number>();
    if (isHeld) held.set(partition, holds.set(holdId, endsMs));
    else if (holds.delete(holdId) && holds.size === 0) held.delete(partition);
  }
});

setInterval(async () => {
  if (nowMs() - mainMs() > STUCK_MS) return;
  const failed = await renewAll(redis, leaseMs, notEnded());
  if (failed > 0) report(failed);
}, leaseMs / 3);

const report = (failed: number) => parentPort?.postMessage({ failed } satisfies LeaseThreadReport);
report(0);

function* notEnded(): Generator<[number, string[]]> {
  const now = nowMs();
  for (const [partition, holds] of held) {
    const alive = [...holds].filter(([, endsMs]) => now < endsMs).map(([holdId]) => holdId);
    if (alive.length > 0) yield [partition, alive];
  }
}
