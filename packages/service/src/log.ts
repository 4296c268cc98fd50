import { fstatSync } from 'node:fs';
import { type Logger, type LoggerOptions, pino } from 'pino';

/** The most bytes that wait for a reader of stdout that stalls. Further lines are dropped. */
const MOST_BYTES = 8 * 1024 * 1024;
/** How long the end of a process waits for a reader that stalls. */
const LAST_MS = 1_000;

/** When lines are written: at this many characters, or after so many ms. */
type LogBuffer = { readonly chars: number; readonly ms: number };

/**
 * For a service: a write for each line would be a system call for each call, so one has up to eighty lines. A kill -9 loses the lines of
 * the last tenth of a second.
 */
export const GATHERED: LogBuffer = { chars: 48 * 1024, ms: 100 };

/**
 * Starts the log on stdout. A service goes on without its log: when the reader stalls, has gone, or has a full disk, lines
 * are dropped.
 * @param buffer by default each line is written at once
 * @param textOf the text to write of a line; undefined writes nothing. By default the line itself
 */
export function startLog(
  options: LoggerOptions,
  buffer?: LogBuffer,
  textOf?: (line: string) => string | undefined,
): Logger {
  neverBlock();
  let givesUpAt = Number.POSITIVE_INFINITY;
  const retryEAGAIN = () => Date.now() < givesUpAt;
  const out = pino.destination({ sync: false, maxLength: MOST_BYTES, retryEAGAIN });
  let isFailing = false;
  // Without a listener, a write that fails ends the process. The next line tries again.
  out.on('error', () => {
    isFailing = true;
  });
  out.on('write', () => {
    isFailing = false;
  });
  const lines = buffer && gather(buffer, (text) => out.write(text));
  const [flush, flushSync] = [out.flush.bind(out), out.flushSync.bind(out)];
  out.flush = (done) => {
    lines?.flush();
    flush(done);
  };
  // At the end of the process, pino writes what is left. On a full disk it would try for ever.
  out.flushSync = () => {
    givesUpAt = Date.now() + LAST_MS;
    // No write in the background would end any more.
    Object.assign(out, { minLength: Number.POSITIVE_INFINITY });
    lines?.flush();
    try {
      if (!isFailing) flushSync();
    } catch {
      // No reader takes the last lines.
    }
  };
  const write = lines?.write ?? ((line: string) => void out.write(line));
  return pino(options, textOf ? { write: (line) => write(textOf(line) ?? '') } : lines ? { write } : out);
}

/** The parts of a logger from which a line is made (pino, docs/api.md, "pino.symbols"). */
type Parts = {
  readonly [pino.symbols.streamSym]: { readonly write: (line: string) => void };
  readonly [pino.symbols.chindingsSym]: string;
  readonly [pino.symbols.lsCacheSym]: Readonly<Record<number, string>>;
  readonly [pino.symbols.timeSym]: () => string;
};

/**
 * Logs as `log[level](fields, message)` does. It needs at least one field, and fields are texts and numbers. pino looks at each
 * character of each text, which took 4 % of the CPU time of a call.
 */
export function logFields(
  log: Logger,
  level: 'debug' | 'info' | 'warn' | 'error',
  fields: object,
  message: string,
): void {
  if (!log.isLevelEnabled(level)) return;
  const parts = log as object as Parts;
  const ofLevel = parts[pino.symbols.lsCacheSym][log.levels.values[level] ?? 0];
  const begin = `${ofLevel}${parts[pino.symbols.timeSym]()}${parts[pino.symbols.chindingsSym]}`;
  parts[pino.symbols.streamSym].write(
    `${begin},${JSON.stringify(fields).slice(1, -1)},"msg":${JSON.stringify(message)}}\n`,
  );
}

/** Gathers lines. pino's own destination can, too, but copies all lines that wait with each further one. */
function gather({ chars, ms }: LogBuffer, write: (text: string) => void) {
  let lines: string[] = [];
  let length = 0;
  const flush = () => {
    if (length === 0) return;
    const text = lines.join('');
    lines = [];
    length = 0;
    write(text);
  };
  setInterval(flush, ms).unref();
  return {
    flush,
    write: (line: string) => {
      lines.push(line);
      length += line.length;
      if (length >= chars) flush();
    },
  };
}

/** Lets a write into a full pipe fail, and not block a thread for good. Node does so when it opens its own stream of a pipe. */
function neverBlock(): void {
  const stdout = fstatSync(1);
  if (stdout.isFIFO() || stdout.isSocket()) void process.stdout;
}
