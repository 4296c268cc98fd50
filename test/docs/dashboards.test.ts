import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const ROOT = new URL('../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, ROOT), 'utf8');

/** Each metric of docs/reference/metrics.md, which test/e2e/metrics.test.ts compares with `/metrics`: its type and labels. */
const documented = new Map(
  Array.from(
    read('docs/reference/metrics.md').matchAll(/^\| `(presign_\w+)` +\| (\w+) +\| (.*?) +\| /gm),
    ([, name = '', type = '', labels = '']) => [name, { type, labels: namesIn(labels, /`(\w+)`/g) }] as const,
  ),
);
/** Labels that Prometheus adds. */
const OF_PROMETHEUS = ['job', 'instance', 'le'];

type Target = { readonly expr: string; readonly legendFormat: string };
type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly Target[];
};
const dashboard = JSON.parse(read('infra/dashboards/presign.json')) as {
  readonly panels: readonly Panel[];
  readonly schemaVersion: number;
};
const shown = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ name: title, expr, legend: legendFormat })),
);
const alerts = Array.from(
  read('infra/dashboards/alerts.yaml').matchAll(
    /^ {6}- alert: (\w+)\n {8}expr: (.+)\n {8}for: \d+[smh]\n {8}labels:\n {10}severity: (?:warning|critical)\n {8}annotations:\n {10}summary: (.+)$/gm,
  ),
  ([, name = '', expr = '', legend = '']) => ({ name, expr, legend }),
);

test('the dashboard and the rules are found', () => {
  expect(shown.length).toBeGreaterThan(20);
  expect(alerts.length).toBe(read('infra/dashboards/alerts.yaml').split('- alert:').length - 1);
  expect(alerts.length).toBeGreaterThan(10);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});

describe.each([...shown, ...alerts])('$name ($expr)', ({ expr, legend }) => {
  test('uses documented metrics, in a way that fits their type', () => {
    expect(wrongMetrics(expr)).toEqual([]);
    // `up` is Prometheus' own, of each process that it scrapes.
    expect(namesIn(expr, /\b(presign_\w+|up(?=\{))/g)).not.toEqual([]);
  });

  test('uses labels that these metrics have', () => {
    expect(wrongLabels(expr, legend)).toEqual([]);
  });
});

test('the dashboard leads from callers to causes, and no two panels overlap', () => {
  const { panels } = dashboard;
  const rows = panels.filter(({ type }) => type === 'row');
  expect(rows.map(({ title }) => title.split(/ |:/)[0])).toEqual([
    ...['Now', 'Callers', 'Gateways', 'Stores', 'Providers', 'Money'],
  ]);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  const bottoms = panels.map(({ gridPos: { y } }) => y);
  expect(bottoms).toEqual([...bottoms].sort((a, b) => a - b));
});

test('each alert has a row in the runbook: what callers see, and what to do', () => {
  const page = read('docs/reference/metrics.md');
  const rows = Array.from(page.matchAll(/^\| (`Presign.*?) \| (.*?) \| (.*?) \|$/gm), (found) =>
    found.slice(1).map((cell) => cell.trim()),
  );
  const explained = rows
    .filter(([, callers = '', act = '']) => callers !== '' && act.length > 10)
    .flatMap(([names = '']) => namesIn(names, /`(Presign\w+)`/g));
  expect(explained.sort()).toEqual(alerts.map(({ name }) => name).sort());
});

test('every documented metric is on the dashboard', () => {
  const used = new Set(shown.flatMap(({ expr }) => metricsIn(expr).map(({ name }) => name)));
  expect([...documented.keys()].filter((name) => !used.has(name))).toEqual([]);
});

test('a wrong name, type or label is detected', () => {
  expect(wrongMetrics('sum(presign_none)')).toEqual(['presign_none']);
  expect(wrongMetrics('sum(presign_calls_total)')).toEqual(['presign_calls_total']);
  expect(wrongMetrics('rate(presign_holds[5m])')).toEqual(['presign_holds']);
  expect(wrongMetrics('rate(presign_own_seconds[5m])')).toEqual(['presign_own_seconds']);
  expect(wrongLabels('sum by (grant) (rate(presign_calls_total{user="x"}[5m]))', '{{account}}')).toEqual([
    ...['account', 'grant', 'user'],
  ]);
});

/** The metrics of an expression, each with the suffix of its series and whether it is within a function of counters, or of any series. */
function metricsIn(expr: string) {
  return Array.from(
    expr.matchAll(/(rate\(|increase\(|group by \([^)]*\) \()?\b(presign_\w+?)(_bucket|_sum|_count)?(?!\w)/g),
    ([, grows, name = '', suffix]) => ({ name, suffix, grows: grows !== undefined }),
  );
}

const wrongMetrics = (expr: string): string[] =>
  metricsIn(expr).flatMap(({ name, suffix, grows }) => {
    const type = documented.get(name)?.type;
    const isRight =
      (type === 'gauge' && !grows && suffix === undefined) ||
      (type === 'counter' && grows && suffix === undefined) ||
      (type === 'histogram' && grows && suffix !== undefined);
    return isRight ? [] : [name];
  });

function wrongLabels(expr: string, legend: string): string[] {
  const known = metricsIn(expr).flatMap(({ name }) => documented.get(name)?.labels ?? []);
  const grouped = Array.from(expr.matchAll(/\bby \(([^)]*)\)/g), ([, names = '']) =>
    names.split(/, ?/),
  ).flat();
  const used = [
    ...namesIn(expr, /[{,](\w+)(?:=|!=|=~|!~)"/g),
    ...grouped,
    ...namesIn(legend, /\{\{ ?(?:\$labels\.)?(\w+) ?\}\}/g),
  ];
  return [...new Set(used)].filter((label) => ![...known, ...OF_PROMETHEUS].includes(label)).sort();
}

function namesIn(text: string, pattern: RegExp): string[] {
  return Array.from(text.matchAll(pattern), ([, name = '']) => name);
}

test('the page says for each alert how to act', () => {
  const page = read('docs/reference/metrics.md');
  expect(alerts.filter(({ name }) => !page.includes(`\`${name}\``))).toEqual([]);
});
