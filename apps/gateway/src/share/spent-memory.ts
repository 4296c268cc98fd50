import { getHeapStatistics } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * V8 collects its whole heap, which takes tens of milliseconds, whenever the memory of buffers has grown by about 32 MB: with bodies of
 * 256 KB once in 70 calls. Bodies die young, so that a collection of young objects frees most of them in a millisecond.
 */
const GROWN_BYTES = 10 * 1024 * 1024;

let least = Number.POSITIVE_INFINITY;
let isDue = false;
let collect: (() => void) | undefined;

/** Frees the memory of bodies that are sent, if it has grown much since it was last freed. Call it for each large body. */
export function freeSpentBodies(): void {
  const bytes = getHeapStatistics().external_memory;
  least = Math.min(least, bytes);
  if (isDue || bytes - least < GROWN_BYTES) return;
  isDue = true;
  collect ??= youngCollector();
  setImmediate(() => {
    collect?.();
    // The memory is freed in another thread, so the next body sees how much is left.
    least = Number.POSITIVE_INFINITY;
    isDue = false;
  });
}

/** Does nothing where the process was not started with `--expose-gc`, as the gateway's own is. */
function youngCollector(): () => void {
  const gc: unknown = runInNewContext('globalThis.gc');
  return typeof gc === 'function' ? () => gc({ type: 'minor' }) : () => {};
}
