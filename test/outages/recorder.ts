import { setTimeout as sleep } from 'node:timers/promises';

/** Prometheus' interval between two scrapes. */
export const STEP_SECONDS = 5;

/** Ages that a service states in seconds. Where the time of the rules is compressed, they would be too low for it. */
const AGES = /^presign_\w+_(?:lag|failing)_seconds|^presign_silent_seconds/;

export type Recorder = {
  /** The seconds of the recording so far. */
  readonly now: () => number;
  /** Waits until the recording is so much longer. */
  readonly pass: (seconds: number) => Promise<void>;
  /** Ends the recording. Its series, in the notation of promtool. */
  readonly close: () => Promise<readonly { readonly series: string; readonly values: string }[]>;
};

/**
 * Scrapes `/metrics` of processes as Prometheus does, with its labels `job` and `instance`, its `up`, and its mark for a series that a
 * scrape no longer has.
 * @param realSeconds between two scrapes. The recording takes each for a step of `STEP_SECONDS`
 */
export function record(ports: Readonly<Record<string, number>>, realSeconds: number): Recorder {
  const columns = new Map<string, string[]>();
  let steps = 0;
  let closed = false;
  const asRules = (series: string, value: string) =>
    AGES.test(series) ? String((Number(value) * STEP_SECONDS) / realSeconds) : value;
  const scrapeAll = async () => {
    const scraped = await Promise.all(Object.entries(ports).map(([name, port]) => scrapeOne(name, port)));
    const seen = new Map(scraped.flat());
    for (const [series, value] of seen) {
      const column = columns.get(series) ?? Array.from({ length: steps }, () => '_');
      column.push(asRules(series, value));
      columns.set(series, column);
    }
    for (const [series, column] of columns)
      if (!seen.has(series)) column.push(/^[\d.-]/.test(column.at(-1) ?? '_') ? 'stale' : '_');
    steps += 1;
  };
  const loop = async () => {
    while (!closed) await Promise.all([scrapeAll(), sleep(realSeconds * 1_000)]);
  };
  const running = loop();
  const now = () => steps * STEP_SECONDS;
  return {
    now,
    pass: async (seconds) => {
      const end = now() + seconds;
      while (now() < end) await sleep(50);
    },
    close: async () => {
      closed = true;
      await running;
      return Array.from(columns, ([series, values]) => ({ series, values: values.join(' ') }));
    },
  };
}

/** The series of one process. */
async function scrapeOne(instance: string, port: number): Promise<[series: string, value: string][]> {
  const own = `job="presign",instance="${instance}"`;
  const up = `up{${own}}`;
  const text = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(5_000) })
    .then((answer) => answer.text())
    .catch(() => undefined);
  if (text === undefined) return [[up, '0']];
  const series = Array.from(
    text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm),
    ([, name = '', labels = '', value = '']): [string, string] => [
      `${name}{${labels === '' ? '' : `${labels},`}${own}}`,
      value,
    ],
  );
  return [[up, '1'], ...series];
}
