import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The rows of the table, in their order. */
export const ROWS = {
  json: 'JSON under `cost_limit`',
  free: 'JSON without a limit',
  burst: 'SSE, 80 events in a burst',
  paced: 'SSE, one event each 20 ms',
  mcp: 'MCP `tools/call`',
  tls: 'JSON under `cost_limit`, upstream over TLS',
  in32k: 'a body of 32 KB under `cost_limit`',
  in256k: 'a body of 256 KB under `cost_limit`',
  in1m: 'a body of 1 MB under `cost_limit`',
  free256k: 'a body of 256 KB without a limit',
  chat32k: 'a chat of 32 KB under `cost_limit`',
  counted32k: 'a chat of 32 KB whose tokens are counted',
  chat256k: 'a chat of 256 KB under `cost_limit`',
  counted256k: 'a chat of 256 KB whose tokens are counted',
  out200k: 'an answer of 200 KB under `cost_limit`',
  rate: 'latency at 400 calls a second',
  fresh: 'first call of a URL',
  rotate: '12,000 rotating URLs',
  issue: 'issuing',
  start: '`start`, warm',
} as const;
export type RowId = keyof typeof ROWS;

/** The peer that does the same work. */
export const METERED = 'nginx + Lua, metered';

/** Figures of one subject, by their name, one for each round. */
export type Rounds = Record<string, number[]>;
export type RowResult = {
  readonly measuredAt: string;
  readonly commit: string;
  readonly machine: string;
  readonly seconds: number;
  /** Percent of the machine's time that its host gave to others, one for each measurement. */
  readonly stealPercent: number[];
  /** Processes that wanted to run, over a minute, when the row began. */
  readonly loadBefore: number;
  readonly subjects: Record<string, Rounds>;
  /** Peers that are not installed, and subjects that failed. */
  readonly leftOut: readonly string[];
};
export type Results = { readonly rows: Partial<Record<RowId, RowResult>> };

const DEFAULT_FILE = fileURLToPath(new URL('../results.json', import.meta.url));
/** Where results are kept. The documents are made from the default file alone. */
export const RESULTS_FILE = process.env.RESULTS ?? DEFAULT_FILE;
export const isDefaultFile = RESULTS_FILE === DEFAULT_FILE;

export function readResults(file = RESULTS_FILE): Results {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Results) : { rows: {} };
}

/** Puts a row into the file; the other rows stay. */
export function keepRow(id: RowId, row: RowResult): void {
  const before = readResults();
  const ids = Object.keys(ROWS) as RowId[];
  const all = { ...before.rows, [id]: row };
  const rows = Object.fromEntries(ids.flatMap((each) => (all[each] ? [[each, all[each]]] : [])));
  // A line for each subject, so that a change can be read.
  const text = JSON.stringify({ rows }, rounded, 1).replace(/\[[^[\]{}]*\]|\{[^{}]*\}/g, (inner) =>
    inner.replace(/\s*\n\s*/g, ' '),
  );
  writeFileSync(RESULTS_FILE, `${text}\n`);
}

const rounded = (_: string, value: unknown) =>
  typeof value === 'number' ? (Number.isFinite(value) ? Number(value.toPrecision(4)) : null) : value;

export type Spread = { readonly median: number; readonly low: number; readonly high: number };

export function spreadOf(figures: readonly (number | null)[] | undefined): Spread | undefined {
  const sorted = (figures ?? []).filter((each) => each !== null).sort((a, b) => a - b);
  const [low, high] = [sorted[0], sorted.at(-1)];
  const [below, above] = [sorted[(sorted.length - 1) >> 1], sorted[sorted.length >> 1]];
  if (low === undefined || high === undefined || below === undefined || above === undefined) return undefined;
  return { low, high, median: (below + above) / 2 };
}
