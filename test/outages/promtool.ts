import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { STEP_SECONDS } from './recorder.ts';

/** Whether this machine has Prometheus' own engine for tests of rules. */
export const hasPromtool = spawnSync('promtool', ['--version']).status === 0;

type Recorded = readonly { readonly series: string; readonly values: string }[];

/** The seconds of the recording at which a rule or a query has series, each with their labels. */
export type Found = ReadonlyMap<string, readonly { readonly at: number; readonly labels: string }[]>;

/**
 * Evaluates alert rules on recorded series.
 * @param alerts their names
 * @returns those that fire
 */
export function firing(recorded: Recorded, rulesFile: string, alerts: readonly string[]): Found {
  const alert_rule_test = timesOf(recorded).flatMap((eval_time) =>
    alerts.map((alertname) => ({ eval_time, alertname, exp_alerts: [] })),
  );
  const found = evaluate(recorded, [rulesFile], { alert_rule_test });
  return new Map(alerts.map((alert) => [alert, found.filter(({ name }) => name === alert)]));
}

/** Evaluates queries on recorded series. A query that has only values that are no numbers has none. */
export function values(recorded: Recorded, queries: readonly string[]): Found {
  const foundOf = (query: string) => {
    const expr = `count((${query}) > -Inf)`;
    const own = recorded.filter(({ series }) => query.includes(series.replace(/\{.*/, '')));
    const promql_expr_test = timesOf(recorded).map((eval_time) => ({ eval_time, expr, exp_samples: [] }));
    return evaluate(own, [], { promql_expr_test });
  };
  return new Map(queries.map((query) => [query, foundOf(query)]));
}

const timesOf = (recorded: Recorded) =>
  Array.from({ length: recorded[0]?.values.split(' ').length ?? 0 }, (_, i) => `${i * STEP_SECONDS}s`);

/** promtool prints what it found where nothing was expected. */
function evaluate(input_series: Recorded, rule_files: readonly string[], checks: object) {
  const folder = mkdtempSync(join(tmpdir(), 'presign-promtool-'));
  const interval = `${STEP_SECONDS}s`;
  const file = join(folder, 'tests.yaml');
  const tests = [{ interval, input_series, ...checks }];
  writeFileSync(file, stringify({ rule_files, evaluation_interval: interval, tests }));
  const ran = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8', maxBuffer: 2 ** 28 });
  rmSync(folder, { recursive: true });
  return foundIn(`${ran.stdout}${ran.stderr}`);
}

function foundIn(printed: string): { name: string; at: number; labels: string }[] {
  if (/SUCCESS/.test(printed)) return [];
  const parts = printed.split(/(?=\balertname: |\bexpr: )/).slice(1);
  if (parts.length === 0) throw new Error(`promtool: ${printed.slice(0, 2_000)}`);
  return parts.map((part) => {
    const [, name = ''] = /^alertname: (\w+)/.exec(part) ?? [];
    const [, time = ''] = /time: ((?:\d+[hms])+)/.exec(part) ?? [];
    return { name, at: secondsOf(time), labels: part.slice(part.indexOf('got:')) };
  });
}

const UNITS: Readonly<Record<string, number>> = { h: 3_600, m: 60, s: 1 };
const secondsOf = (time: string) =>
  Array.from(
    time.matchAll(/(\d+)([hms])/g),
    ([, count, unit = '']) => Number(count) * (UNITS[unit] ?? 0),
  ).reduce((sum, each) => sum + each, 0);
