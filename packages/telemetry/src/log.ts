import { type Logger, type LoggerOptions, pino } from 'pino';

/** The most bytes that wait for a reader of stdout that stalls. Further lines are dropped. */
const MOST_BYTES = 8 * 1024 * 1024;

/**
 * Opens the log on stdout. A service goes on without its log: when the reader stalls, has gone, or has a full disk, lines
 * are dropped.
 * @param buffer when lines are written; by default each at once
 */
export function openLog(
  options: LoggerOptions,
  buffer: { readonly minLength?: number; readonly periodicFlush?: number } = {},
): Logger {
  const out = pino.destination({ sync: false, maxLength: MOST_BYTES, ...buffer });
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
    if (!isFailing) flushSync();
  };
  return pino(options, out);
}
