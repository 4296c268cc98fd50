// Makes the measured part of docs/reference/performance.md, the gateway's row of docs/guides/scale.md and docs/performance.svg from
// bench/results.json.
// Run: npx tsx bench/table/render.ts [--check | --since FILE]   With --check it writes nothing, and fails if a file would
// change. With --since it prints what changed since other results.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { markdownTable } from '../../docs/markdown-table.ts';
import { chart } from './chart.ts';
import { METERED, type Results, ROWS, type RowId, readResults, spreadOf } from './results.ts';

const PAGE = new URL('../../docs/reference/performance.md', import.meta.url);
const SCALE = new URL('../../docs/guides/scale.md', import.meta.url);
const CHART = new URL('../../docs/performance.svg', import.meta.url);
const BEGIN = '<!-- bench/table: made from bench/results.json -->';
const END = '<!-- bench/table: end -->';

/** Writes all files. */
export function render(): void {
  for (const [file, text] of documents()) writeFileSync(file, text);
}

function documents(): [URL, string][] {
  const results = readResults();
  const page = readFileSync(PAGE, 'utf8');
  const [before = '', rest = ''] = page.split(BEGIN);
  const [, after = ''] = rest.split(END);
  const measured = `${tables(results)}\n\n${conditions(results)}`;
  return [
    [PAGE, `${before}${BEGIN}\n\n${measured}\n\n${END}${after}`],
    [SCALE, withOwnRow(readFileSync(SCALE, 'utf8'), results)],
    [CHART, chart(results)],
  ];
}

/** Whose figure the page on scale has, and the share of a core that it reckons with. */
const SCALED = { subject: 'Presign, Node 24', share: 0.6 };

/** The page on scale with what one gateway carries. */
function withOwnRow(page: string, { rows }: Results): string {
  const cpuUs = spreadOf(rows.json?.subjects[SCALED.subject]?.['cpuUs'])?.median;
  if (cpuUs === undefined) return page;
  const perSecond = Number(((SCALED.share * 1e6) / cpuUs).toPrecision(3));
  const row = /^(\| gateway, JSON on Node \d+ +\|)( *[\d,.]+ µs)( \|)( *[\d,]+)( \|.*)$/m;
  return page.replace(row, (_, before, time, between, rate, after) =>
    [
      before,
      `${number(cpuUs)} µs`.padStart(time.length),
      between,
      number(perSecond).padStart(rate.length),
      after,
    ].join(''),
  );
}

/** The tables of these rows, for the terminal. */
export function summary(results: Results, chosen: readonly RowId[]): string {
  const rows = Object.fromEntries(
    Object.entries(results.rows).filter(([id]) => chosen.includes(id as RowId)),
  );
  const part = { ...results, rows };
  return `\n${tables(part)}\n\n${conditions(part)}`;
}

const tables = (results: Results) => `${ownTable(results)}\n\n${peerTable(results)}`;

type Line = { readonly what: string; readonly id: RowId; readonly figure: string; readonly against?: string };

const MICROS: readonly RowId[] = ['json', 'free', 'burst', 'paced', 'mcp', 'tls'];
const SIZES: readonly RowId[] = [
  ...([
    'in32k',
    'in256k',
    'in1m',
    'free256k',
    'chat32k',
    'counted32k',
    'chat256k',
    'counted256k',
    'out200k',
  ] as const),
];
const LINES: readonly Line[] = [
  ...[...MICROS, ...SIZES].map((id): Line => ({ what: `${ROWS[id]}, µs`, id, figure: 'cpuUs' })),
  { what: 'at 400 calls a second, µs', id: 'rate', figure: 'cpuUs' },
  { what: 'p50 at 400 calls a second, ms', id: 'rate', figure: 'p50Ms' },
  { what: 'p99 at 400 calls a second, ms', id: 'rate', figure: 'p99Ms' },
  { what: 'first call of a URL, µs', id: 'fresh', figure: 'firstUs' },
  { what: 'later calls of these URLs, µs', id: 'fresh', figure: 'laterUs' },
  { what: '12,000 rotating URLs, µs', id: 'rotate', figure: 'manyUs' },
  { what: '1,000 rotating URLs, µs', id: 'rotate', figure: 'fewUs' },
  { what: 'issue `/v1/presign`, calls/s a core', id: 'issue', figure: 'presignPerCore' },
  { what: 'issue `/v2/mcp-presign`, calls/s a core', id: 'issue', figure: 'bundlePerCore' },
  { what: 'RSS under JSON load, MB', id: 'json', figure: 'rssMb' },
  { what: '`start`: warm to first reply, ms', id: 'start', figure: 'firstReplyMs' },
  { what: '`start`: idle RSS, MB', id: 'start', figure: 'idleRssMb' },
];

/** The table of the gateway itself, next to nginx + Lua where that does the same work: the ratio is that of the newest Node measured. */
function ownTable({ rows }: Results): string {
  const own = ownNames({ rows });
  const body = LINES.flatMap(({ what, id, figure }) => {
    const subjects = rows[id]?.subjects;
    if (!subjects) return [];
    const spreads = own.map((name) => spreadOf(subjects[name]?.[figure]));
    const peer = spreadOf(subjects[METERED]?.[figure]);
    const newest = spreads.findLast((each) => each);
    const ratio = newest && peer ? (newest.median / peer.median).toFixed(2) : '–';
    return [[what, ...[...spreads, peer].map((each) => number(each?.median)), ratio]];
  });
  return markdownTable(['Median', ...own, METERED, 'Ratio'], body);
}

/** Medians before and after, and their ratio. */
function changes(before: Results, after: Results): string {
  const names = ownNames(after).filter((name) => ownNames(before).includes(name));
  const body = LINES.flatMap(({ what, id, figure }) => {
    const pair = (name: string) =>
      [before, after].map(({ rows }) => spreadOf(rows[id]?.subjects[name]?.[figure])?.median);
    const cells = [...names, METERED].map((name) => {
      const [old, now] = pair(name);
      if (old === undefined || now === undefined) return '–';
      return `${number(old)} → ${number(now)} (${(now / old).toFixed(2)} ×)`;
    });
    return cells.every((each) => each === '–') ? [] : [[what, ...cells]];
  });
  return markdownTable(['Before → after', ...names, METERED], body);
}

/** Everyone side by side. */
function peerTable({ rows }: Results): string {
  const names = [...new Set(MICROS.flatMap((id) => Object.keys(rows[id]?.subjects ?? {})))];
  const median = (id: RowId, name: string, figure: string) =>
    spreadOf(rows[id]?.subjects[name]?.[figure])?.median;
  const base = median('json', METERED, 'cpuUs');
  const order = (name: string) => median('json', name, 'cpuUs') ?? -1;
  const body = names
    .sort((a, b) => order(a) - order(b))
    .map((name) => {
      const json = median('json', name, 'cpuUs');
      const ratio = json !== undefined && base !== undefined ? (json / base).toFixed(2) : '–';
      const of = (id: RowId, figure: string) => number(median(id, name, figure));
      return [
        isOwn(name) ? `**${name}**` : name,
        ...[of('json', 'cpuUs'), ratio, of('json', 'perSecond'), of('json', 'p99Ms'), of('json', 'rssMb')],
        ...[of('burst', 'cpuUs'), of('paced', 'cpuUs'), of('mcp', 'cpuUs'), of('tls', 'cpuUs')],
        `${of('rate', 'p50Ms')} / ${of('rate', 'p99Ms')}`,
      ];
    });
  const load = ['JSON, µs', '× metered', 'calls/s', 'p99 ms', 'RSS MB'];
  return markdownTable(
    ['', ...load, 'SSE burst, µs', 'SSE paced, µs', 'MCP, µs', 'TLS, µs', '400/s: p50 / p99 ms'],
    body,
  );
}

/** When and where it was measured, and how much the machine did besides. */
function conditions({ rows }: Results): string {
  const all = Object.values(rows);
  const unique = (values: string[]) => [...new Set(values)].join(' and ');
  const steal = spreadOf(all.flatMap((row) => row.stealPercent));
  const loads = spreadOf(all.map((row) => row.loadBefore));
  const rounds = all.map((row) =>
    Math.max(
      ...Object.values(row.subjects).flatMap((each) => Object.values(each).map(({ length }) => length)),
    ),
  );
  return [
    `Measured on ${unique(all.map((row) => row.measuredAt.slice(0, 10)))} on ${unique(all.map((row) => row.machine))}.`,
    `Rounds: ${unique(rounds.map(String))}. Each measurement took ${unique(all.map((row) => String(row.seconds)))} s.`,
    `The host took at most ${number(steal?.high)} % of the machine's time, and ${number(loads?.low)} to ${number(loads?.high)} processes wanted to run when a row began.`,
    ...new Set(all.flatMap(({ leftOut }) => leftOut.map((why) => `Left out: ${why}.`))),
  ].join('\n');
}

const ownNames = ({ rows }: Results) =>
  [...new Set(Object.values(rows).flatMap((row) => Object.keys(row.subjects).filter(isOwn)))].sort();
const isOwn = (name: string) => name.startsWith('Presign');

/** With as many digits as mean something. */
function number(value: number | undefined): string {
  if (value === undefined) return '–';
  const digits = value < 10 ? 2 : value < 100 ? 1 : 0;
  return Number(value.toFixed(digits)).toLocaleString('en');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , option, file = ''] = process.argv;
  const changed = documents().filter(([to, text]) => readFileSync(to, 'utf8') !== text);
  if (option === '--since') console.log(changes(readResults(file), readResults()));
  else if (option !== '--check') render();
  else if (changed.length > 0) {
    console.error(`not made from bench/results.json: ${changed.map(([to]) => fileURLToPath(to)).join(', ')}`);
    process.exit(1);
  }
}
