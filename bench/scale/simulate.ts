/**
 * Says how many of each part a rate of calls needs, and which part gives first. Plain arithmetic on the CPU time that the other
 * measurements found; no process is started.
 *
 *     npx tsx bench/scale/simulate.ts
 *
 * The CPU of a gateway for a call comes from bench/results.json. Set GATEWAY_US, REDIS_US, ISSUER_US and POSTGRES_US to the figures of
 * your machines.
 */
import { readResults, spreadOf } from '../table/results.ts';

const us = (name: string, found: number) => Number(process.env[name] ?? found);

/** The share of a core that is used; at more, calls queue. */
const USED = 0.6;
const PARTITIONS = 64;
/** Cores of the one Postgres that writes. */
const POSTGRES_CORES = 32;
const POSTGRES_US = us('POSTGRES_US', 36);
/** Calls that wait for the ledger may take three quarters of a `maxmemory` of 4 GB (docs/guides/scale.md). */
const BACKLOG = (0.75 * 4e9) / 700;
const [LEDGER_BYTES, WAL_BYTES] = [616, 650];
/** Summed and then deleted by one issuer at a time: docs/guides/retention.md. */
const RETAINED_PER_SECOND = 1 / (1 / 38_000 + 1 / 14_500);

/** A part of the system: what one of it carries in a second, and how many may work at once. */
type Part = { readonly name: string; readonly each: number; readonly most: number; readonly isPacked?: true };
const core = (micros: number) => (USED * 1e6) / micros;
const { rows: measured } = readResults();
const OF_GATEWAY = spreadOf(measured.json?.subjects['Presign, Node 24']?.['cpuUs'])?.median ?? Number.NaN;
const PARTS: readonly Part[] = [
  {
    name: 'gateways (a core each)',
    each: core(us('GATEWAY_US', OF_GATEWAY)),
    most: Number.POSITIVE_INFINITY,
  },
  // The fullest shard has the most partitions, so shards are no use beyond one for each partition.
  { name: 'Redis shards', each: core(us('REDIS_US', 48)), most: PARTITIONS, isPacked: true },
  { name: 'issuers (a core each)', each: core(us('ISSUER_US', 97)), most: PARTITIONS },
  { name: 'Postgres that writes', each: POSTGRES_CORES * core(POSTGRES_US), most: 1 },
  { name: 'deleting old calls', each: RETAINED_PER_SECOND, most: 1 },
];

/** How many of a part carry this rate; undefined if no number does. */
function needed({ each, most, isPacked }: Part, rate: number): number | undefined {
  for (let count = 1; count <= most; count++) {
    const share = isPacked ? Math.ceil(PARTITIONS / count) / PARTITIONS : 1 / count;
    if (rate * share <= each) return count;
  }
  return undefined;
}

const rates = [1e3, 1e4, 1e5, 1e6];
const row = (cells: readonly (string | number)[]) => console.log(`| ${cells.join(' | ')} |`);
row(['', 'one carries, calls/s', ...rates.map((rate) => `${rate.toLocaleString('en')} calls/s`)]);
row(['---', '--:', ...rates.map(() => '--:')]);
for (const part of PARTS) {
  const cells = rates.map((rate) => needed(part, rate) ?? 'too much');
  row([part.name, Math.round(part.each).toLocaleString('en'), ...cells]);
}
const perDay = (bytes: number, rate: number) => `${((bytes * rate * 86_400) / 1e9).toLocaleString('en')} GB`;
row(['ledger a day', '', ...rates.map((rate) => perDay(LEDGER_BYTES, rate))]);
row(['WAL of Postgres', '', ...rates.map((rate) => `${(WAL_BYTES * rate) / 1e6} MB/s`)]);
row(['ledger may stop for', '', ...rates.map((rate) => `${Number((BACKLOG / rate).toPrecision(2))} s`)]);

const limits = PARTS.map((part) => ({ name: part.name, rate: part.each * part.most })).sort(
  (a, b) => a.rate - b.rate,
);
for (const { name, rate } of limits)
  if (Number.isFinite(rate))
    console.log(`${name}: all together carry ${Math.round(rate).toLocaleString('en')} calls/s`);
console.log(`first that gives: ${limits[0]?.name}`);
