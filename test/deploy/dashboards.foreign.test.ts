import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { UNKNOWN_KINDS } from '../harness/unknown-kinds.ts';

const { promtool, js } = inject('toolchains');
const ROOT = join(import.meta.dirname, '../..');
const rules = readFileSync(join(ROOT, 'infra/dashboards/alerts.yaml'), 'utf8');
const dashboardJson = readFileSync(join(ROOT, 'infra/dashboards/presign.json'), 'utf8');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'presign-dashboards-'));
});
afterAll(() => rmSync(folder, { recursive: true }));
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

type Alert = {
  readonly alert: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string };
};
const { groups } = parse(rules) as { groups: readonly { rules: readonly Alert[] }[] };
const alerts = groups.flatMap((group) => group.rules);

/** Series that fire an alert after 80 minutes, and series that do not, in the notation of promtool; the labels of the alert. */
type Case = readonly [
  alert: string,
  firing: Series,
  quiet: Series,
  labels?: Readonly<Record<string, string>>,
];
type Series = Readonly<Record<string, string>>;
const once = '0x70 1x50';
const CASES: readonly Case[] = [
  [
    'PresignSettlesDropped',
    { presign_settles_dropped_total: once },
    { presign_settles_dropped_total: '0x120' },
  ],
  [
    'PresignCallsRefusedByOutage',
    { 'presign_refusals_total{code="limits_unavailable"}': '0+60x120' },
    { 'presign_refusals_total{code="uses_exhausted"}': '0+60x120' },
  ],
  [
    'PresignUpstreamUnreachable',
    {
      'presign_calls_total{provider="openai",outcome="unanswered"}': '0+10x120',
      'presign_calls_total{provider="openai",outcome="complete"}': '0+90x120',
    },
    {
      'presign_calls_total{provider="openai",outcome="unanswered"}': '0+1x120',
      'presign_calls_total{provider="openai",outcome="complete"}': '0+90x120',
      'presign_calls_total{provider="openai",outcome="refused"}': '0+900x120',
    },
    { provider: 'openai' },
  ],
  [
    'PresignGatewaySlow',
    {
      'presign_own_seconds_bucket{kind="llm",le="1"}': '0+90x120',
      'presign_own_seconds_bucket{kind="llm",le="2.5"}': '0+100x120',
      'presign_own_seconds_bucket{kind="llm",le="+Inf"}': '0+100x120',
    },
    {
      'presign_own_seconds_bucket{kind="llm",le="1"}': '0+100x120',
      'presign_own_seconds_bucket{kind="llm",le="2.5"}': '0+100x120',
      'presign_own_seconds_bucket{kind="llm",le="+Inf"}': '0+100x120',
      'presign_own_seconds_bucket{kind="mcp",le="1"}': '0x120',
      'presign_own_seconds_bucket{kind="mcp",le="2.5"}': '0+100x120',
      'presign_own_seconds_bucket{kind="mcp",le="+Inf"}': '0+100x120',
    },
  ],
  [
    'PresignEventLoopBusy',
    { 'presign_event_loop_delay_seconds{instance="a",percentile="99"}': '0.6x120' },
    {
      'presign_event_loop_delay_seconds{instance="a",percentile="99"}': '0.1x120',
      'presign_event_loop_delay_seconds{instance="a",percentile="max"}': '0.6x120',
    },
    { instance: 'a' },
  ],
  ['PresignOverrun', { presign_overruns_total: once }, { presign_overruns_total: '1x120' }],
  [
    'PresignUsageContradicts',
    { 'presign_usage_contradictions_total{provider="acme",why="falls"}': once },
    { 'presign_usage_contradictions_total{provider="acme",why="falls"}': '1x120' },
    { provider: 'acme', why: 'falls' },
  ],
  [
    'PresignUsageUnknown',
    { 'presign_unknown_usage_total{provider="acme",name="new_tokens"}': once },
    { 'presign_unknown_usage_total{provider="acme",name="new_tokens"}': '1x120' },
    { provider: 'acme', name: 'new_tokens' },
  ],
  ...['unknown_usage', 'unbounded_calls'].map((metric): Case => {
    const series = `presign_${metric}_total{provider="acme",name="new"}`;
    const alert = metric === 'unknown_usage' ? 'PresignUsageUnknown' : 'PresignCallsUnbounded';
    // A new name has no series before its first call.
    return [alert, { [series]: '_x70 1x50' }, { [series]: '1x120' }, { provider: 'acme', name: 'new' }];
  }),
  ...UNKNOWN_KINDS.slice(0, 4).map(({ provider, name }): Case => {
    const series = `presign_unbounded_calls_total{provider="${provider}",name="${name}"}`;
    return ['PresignCallsUnbounded', { [series]: '_x70 1x50' }, { [series]: '1x120' }, { provider, name }];
  }),
  ['PresignLeasesExpired', { presign_leases_expired_total: once }, { presign_leases_expired_total: '1x120' }],
  ['PresignEpochChanged', { presign_epoch_changes_total: once }, { presign_epoch_changes_total: '1x120' }],
  ['PresignLedgerBehind', { presign_ledger_lag_seconds: '400x120' }, { presign_ledger_lag_seconds: '9x120' }],
  ['PresignLedgerUnknown', {}, { presign_ledger_lag_seconds: '9x120' }],
  // 0: Redis states no maxmemory.
  ...['0', '0.6'].map(
    (memory): Case => [
      'PresignPartitionFills',
      { presign_fullest_partition_entries: '26000x120', presign_redis_memory_ratio: `${memory}x120` },
      { presign_fullest_partition_entries: '100x120', presign_redis_memory_ratio: `${memory}x120` },
      { $value: '26000' },
    ],
  ),
  [
    'PresignPartitionFills',
    { presign_fullest_partition_entries: '200000x120', presign_redis_memory_ratio: '0.51x120' },
    { presign_fullest_partition_entries: '200000x120', presign_redis_memory_ratio: '0.4x120' },
    { $value: '200000' },
  ],
  [
    'PresignDown',
    { 'up{job="presign",instance="a"}': '0x120', 'up{job="presign",instance="b"}': '1x120' },
    { 'up{job="presign",instance="a"}': '1x120', 'up{job="node",instance="a"}': '0x120' },
    { job: 'presign', instance: 'a' },
  ],
  [
    'PresignNotReady',
    { 'presign_ready{service="issuer",instance="a"}': '0x120' },
    { 'presign_ready{service="issuer",instance="a"}': '1x120' },
    { service: 'issuer', instance: 'a' },
  ],
  [
    'PresignStoreProblem',
    { 'presign_store_problem{service="issuer",store="postgres",instance="a"}': '1x120' },
    { 'presign_store_problem{service="issuer",store="postgres",instance="a"}': '0x120' },
    { service: 'issuer', store: 'postgres', instance: 'a' },
  ],
  ['PresignRedisFills', { presign_redis_memory_ratio: '0.9x120' }, { presign_redis_memory_ratio: '0.7x120' }],
  ...['PresignProviderFails', 'PresignProviderErrors'].map(
    (alert): Case => [
      alert,
      calls({ provider_error: alert === 'PresignProviderFails' ? 60 : 15, complete: 40 }),
      calls({ provider_error: 4, complete: 90, refused: 900 }),
      { provider: 'openai' },
    ],
  ),
  [
    'PresignProviderSlow',
    firstBytes({ 30: 90, 60: 100, '+Inf': 100 }),
    firstBytes({ 30: 100, 60: 100, '+Inf': 100 }),
    { provider: 'openai' },
  ],
  [
    'PresignProviderHangs',
    {
      ...waits('openai', 'a', 12, 400),
      ...waits('openai', 'b', 12, 300),
      // A gateway without calls to it, and a provider that answers.
      ...waits('openai', 'c', 0, 0),
      ...waits('acme', 'a', 30, 5),
    },
    {
      // One gateway still gets answers; few calls wait, as where answers take minutes.
      ...waits('openai', 'a', 30, 400),
      ...waits('openai', 'b', 30, 5),
      ...waits('acme', 'a', 10, 400),
    },
    { provider: 'openai' },
  ],
  [
    'PresignWebhooksFail',
    {
      'presign_webhook_tries_total{outcome="failed"}': '0+6x120',
      'presign_webhook_tries_total{outcome="delivered"}': '0+4x120',
    },
    {
      'presign_webhook_tries_total{outcome="failed"}': '0+1x120',
      'presign_webhook_tries_total{outcome="delivered"}': '0+9x120',
    },
  ],
  [
    'PresignLimitsReached',
    {
      'presign_refusals_total{kind="llm",code="rate_limited"}': '0+60x120',
      'presign_calls_total{kind="llm",outcome="refused"}': '0+60x120',
      'presign_calls_total{kind="llm",outcome="complete"}': '0+9x120',
    },
    {
      'presign_refusals_total{kind="llm",code="uses_exhausted"}': '0+60x120',
      'presign_calls_total{kind="llm",outcome="refused"}': '0+60x120',
    },
  ],
  [
    'PresignArchiveBehind',
    { presign_archive_lag_seconds: '4000x120' },
    { presign_archive_lag_seconds: '60x120' },
  ],
  [
    'PresignPricesOld',
    { 'presign_price_list_age_seconds{service="issuer",source="file"}': '300000x120' },
    {
      'presign_price_list_age_seconds{service="issuer",source="file"}': '3000x60 300000x60',
      'presign_price_list_age_seconds{service="issuer",source="bundled"}': '9000000x120',
    },
    { service: 'issuer', source: 'file' },
  ],
  [
    'PresignRevocationsWait',
    { presign_pending_changes: '1x120' },
    { presign_pending_changes: '1x76 0 1x43' },
  ],
  [
    'PresignWebhooksBehind',
    { presign_webhook_lag_seconds: '700x120' },
    { presign_webhook_lag_seconds: '5x120' },
  ],
  [
    'PresignIssuerFails',
    { 'presign_requests_total{status="503"}': '0+60x120' },
    { 'presign_requests_total{status="400"}': '0+60x120' },
  ],
  [
    'PresignClockOff',
    { 'presign_clock_offset_seconds{service="gateway",instance="a"}': '-6x120' },
    { 'presign_clock_offset_seconds{service="gateway",instance="a"}': '1x120' },
    { service: 'gateway', instance: 'a' },
  ],
  [
    'PresignPriceListProblem',
    { 'presign_price_list_problem{service="issuer"}': '1x120' },
    { 'presign_price_list_problem{service="issuer"}': '0x60 1x60' },
    { service: 'issuer' },
  ],
  [
    'PresignKnowledgeProblem',
    { 'presign_knowledge_problem{service="issuer"}': '1x120' },
    { 'presign_knowledge_problem{service="issuer"}': '0x60 1x60' },
    { service: 'issuer' },
  ],
  [
    'PresignKnowledgeOld',
    { 'presign_knowledge_age_seconds{service="issuer",source="bundled"}': '5200000x120' },
    { 'presign_knowledge_age_seconds{service="issuer",source="bundled"}': '5000000x120' },
    { service: 'issuer', source: 'bundled' },
  ],
  [
    'PresignWorkFails',
    { 'presign_work_failing_seconds{service="issuer",work="old_calls",instance="a"}': '0x60 0+60x60' },
    { 'presign_work_failing_seconds{service="issuer",work="old_calls",instance="a"}': '500x120' },
    { service: 'issuer', work: 'old_calls', instance: 'a' },
  ],
];

/** Outages that begin after 70 minutes. Their alerts fire within three minutes. */
const OUTAGES: readonly Case[] = [
  ['PresignDown', { 'up{job="presign",instance="a"}': '1x70 0x50' }, {}, { job: 'presign', instance: 'a' }],
  [
    'PresignCallsRefusedByOutage',
    { 'presign_refusals_total{code="limits_unavailable"}': '0x70 60+60x50' },
    {},
  ],
  ['PresignIssuerFails', { 'presign_requests_total{status="503"}': '0x70 60+60x50' }, {}],
  [
    'PresignNotReady',
    { 'presign_ready{service="gateway",instance="a"}': '1x70 0x50' },
    {},
    { service: 'gateway', instance: 'a' },
  ],
  [
    'PresignStoreProblem',
    { 'presign_store_problem{service="gateway",store="redis",instance="a"}': '0x70 1x50' },
    {},
    { service: 'gateway', store: 'redis', instance: 'a' },
  ],
  ['PresignLedgerBehind', { presign_ledger_lag_seconds: '0x70 60+60x50' }, {}],
  ['PresignLedgerUnknown', { presign_ledger_lag_seconds: '0x70 stale' }, {}],
  [
    'PresignProviderFails',
    {
      'presign_calls_total{provider="openai",outcome="provider_error"}': '0x70 60+60x50',
      'presign_calls_total{provider="openai",outcome="complete"}': '0+60x70 4200x50',
    },
    {},
    { provider: 'openai' },
  ],
  [
    'PresignProviderHangs',
    {
      'presign_waiting_calls{provider="openai",instance="a"}': '1x70 60+60x50',
      'presign_silent_seconds{provider="openai",instance="a"}': '1x70 60+60x50',
    },
    {},
    { provider: 'openai' },
  ],
];

/** A gateway whose calls wait for a provider, and for how long none has had a first byte. */
function waits(provider: string, instance: string, calls: number, silent: number): Series {
  const labels = `{provider="${provider}",instance="${instance}"}`;
  return {
    [`presign_waiting_calls${labels}`]: `${calls}x120`,
    [`presign_silent_seconds${labels}`]: `${silent}x120`,
  };
}

function calls(outcomes: Readonly<Record<string, number>>): Series {
  const series = Object.entries(outcomes).map(([outcome, each]) => [
    `presign_calls_total{provider="openai",outcome="${outcome}"}`,
    `0+${each}x120`,
  ]);
  return Object.fromEntries(series) as Series;
}

function firstBytes(buckets: Readonly<Record<string, number>>): Series {
  const series = Object.entries(buckets).map(([le, each]) => [
    `presign_first_byte_seconds_bucket{provider="openai",le="${le}"}`,
    `0+${each}x120`,
  ]);
  return Object.fromEntries(series) as Series;
}

const tests = [...CASES, ...OUTAGES].flatMap(([alertname, firing, quiet, { $value, ...labels } = {}], i) => {
  const isOutage = i >= CASES.length;
  const found = alerts.find(({ alert }) => alert === alertname);
  const summary = found?.annotations.summary.replaceAll(
    /\{\{ \$(?:labels\.)?(\w+) \}\}/g,
    (_all, label: string) => (label === 'value' ? $value : labels[label]) ?? '',
  );
  const fires = [{ exp_labels: { ...found?.labels, ...labels }, exp_annotations: { summary } }];
  const both = [
    [firing, fires],
    [quiet, []],
  ];
  return both.slice(0, isOutage ? 1 : 2).map(([series, exp_alerts]) => ({
    interval: '1m',
    input_series: Object.entries(series as Series).map(([name, values]) => ({ series: name, values })),
    alert_rule_test: [{ eval_time: isOutage ? '73m' : '80m', alertname, exp_alerts }],
  }));
});

describe.skipIf('skipped' in promtool)('Prometheus', () => {
  const run = (...args: string[]) =>
    spawnSync('at' in promtool ? promtool.at : '', args, { encoding: 'utf8' });
  /** Each alert is alone with its own tests: promtool evaluates all rules of a file at each step of each test. */
  const runTests = (text: string) => {
    const all = (parse(text) as { groups: readonly { rules: readonly Alert[] }[] }).groups.flatMap(
      (g) => g.rules,
    );
    const files = all.map((rule) => {
      const rule_files = [
        file(`${rule.alert}.yaml`, stringify({ groups: [{ name: rule.alert, rules: [rule] }] })),
      ];
      const own = tests.filter(({ alert_rule_test: [at] }) => at?.alertname === rule.alert);
      return file(
        `${rule.alert}-tests.yaml`,
        stringify({ rule_files, evaluation_interval: '1m', tests: own }),
      );
    });
    return run('test', 'rules', ...files);
  };

  test('fires each alert for its own series, and for no others', () => {
    const named = new Set(CASES.map(([name]) => name));
    expect([...named].sort()).toEqual(alerts.map(({ alert }) => alert).sort());
    expect(runTests(rules)).toMatchObject({ status: 0 });
  });

  test.each([
    ['for: 1h', 'for: 10m'],
    ['bucket{kind="llm"', 'bucket{kind=~"llm|mcp"'],
  ])('detects a rule with %s changed to %s', (right, wrong) => {
    expect(rules).toContain(right);
    expect(runTests(rules.replace(right, wrong)).status).toBe(1);
  });

  test('parses every query of the dashboard, and refuses a wrong one', () => {
    const queries = Array.from(dashboardJson.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g), ([, expr = '']) =>
      String(JSON.parse(expr)).replaceAll('$__rate_interval', '5m'),
    );
    expect(queries.length).toBeGreaterThan(25);
    const check = (exprs: readonly string[]) => {
      const recorded = exprs.map((expr, i) => ({ record: `panel:${i}`, expr }));
      return run(
        'check',
        'rules',
        file('queries.yaml', stringify({ groups: [{ name: 'g', rules: recorded }] })),
      );
    };
    expect(check(queries)).toMatchObject({ status: 0 });
    for (const wrong of ['sum(presign_holds', 'rate(presign_holds)', 'sum by (le) presign_holds'])
      expect(check([...queries, wrong]).status, wrong).not.toBe(0);
  });
});

describe.skipIf('skipped' in js)('the dashboard', () => {
  /** TypeScript's answer to whether it is a dashboard by Grafana's own types. */
  const check = (json: string) => {
    const source = `import type { Dashboard } from '@grafana/schema';\nexport const dashboard: Dashboard = ${json};\n`;
    const modules = join(folder, 'node_modules');
    rmSync(modules, { force: true });
    symlinkSync(join('at' in js ? js.at : '', 'node_modules'), modules);
    const options = '--noEmit --strict --skipLibCheck --target es2022 --module nodenext --types'.split(' ');
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const args = [...options, '', file('dashboard.mts', source)];
    return spawnSync(tsc, args, { encoding: 'utf8', cwd: folder });
  };

  test("matches Grafana's schema", () => {
    expect(check(dashboardJson)).toMatchObject({ status: 0, stdout: '' });
  });

  test.each([
    ['"gridPos"', '"gridPosition"'],
    ['"graphTooltip": 1', '"graphTooltip": 7'],
    ['"schemaVersion": 39', '"schemaVersion": "39"'],
    ['"multi": false', '"multi": "no"'],
  ])('does not match it with %s changed to %s', (right, wrong) => {
    expect(dashboardJson).toContain(right);
    expect(check(dashboardJson.replace(right, wrong)).stdout).toMatch(/^dashboard\.mts\(\d+,\d+\): error/);
  });
});
