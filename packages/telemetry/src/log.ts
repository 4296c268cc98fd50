import { fstatSync } from 'node:fs';
import { type Logger, type LoggerOptions, pino } from 'pino';

/** The most bytes that wait for a reader of stdout that stalls. Further lines are dropped. */
const MOST_BYTES = 8 * 1024 * 1024;
/** How long the end of a process waits for a reader that stalls. */
const LAST_MS = 1_000;

/**
 * Opens the log on stdout. A service goes on without its log: when the reader stalls, has gone, or has a full disk, lines
 * are dropped.
 * @param buffer when lines are written; by default each at once
 */
export function openLog(
  options: LoggerOptions,
  buffer: { readonly minLength?: number; readonly periodicFlush?: number } = {},
): Logger {
  neverBlock();
  let givesUpAt = Number.POSITIVE_INFINITY;
  const retryEAGAIN = () => Date.now() < givesUpAt;
  const out = pino.destination({ sync: false, maxLength: MOST_BYTES, retryEAGAIN, ...buffer });
  let isFailing = false;
  // Without a listener, a write that fails ends the process. The next line tries again.
  out.on('error', () => {
    isFailing = true;
  });
  out.on('write', () => {
    isFailing = false;
  });
  const flushSync = out.flushSync.bind(out);
  // At the end of the process, pino writes what is left. On a full disk it would try for ever.
  out.flushSync = () => {
    givesUpAt = Date.now() + LAST_MS;
    try {
      if (!isFailing) flushSync();
    } catch {
      // No reader takes the last lines.
    }
  };
  return pino(options, out);
}

/** Lets a write into a full pipe fail, and not block a thread for good. Node does so when it opens its own stream of a pipe. */
function neverBlock(): void {
  const stdout = fstatSync(1);
  if (stdout.isFIFO() || stdout.isSocket()) void process.stdout;
}
