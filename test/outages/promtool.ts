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
 * @param alerts their names, for those that fire
 */
export const firing = (recorded: Recorded, rulesFile: string, alerts: readonly string[]): Found =>
  evaluate(recorded, [rulesFile], alerts, (eval_time, name) => ({
    alert_rule_test: [{ eval_time, alertname: name, exp_alerts: [] }],
  }));

/** Evaluates queries on recorded series. A query that has only values that are no numbers has none. */
export const values = (recorded: Recorded, queries: readonly string[]): Found =>
  evaluate(recorded, [], queries, (eval_time, query) => ({
    promql_expr_test: [{ eval_time, expr: `count((${query}) > -Inf)`, exp_samples: [] }],
  }));

/** promtool prints what it found where nothing was expected. */
function evaluate(
  recorded: Recorded,
  rule_files: readonly string[],
  names: readonly string[],
  testAt: (evalTime: string, name: string) => Record<string, unknown[]>,
): Found {
  const steps = recorded[0]?.values.split(' ').length ?? 0;
  const folder = mkdtempSync(join(tmpdir(), 'presign-promtool-'));
  const foundOf = (name: string) => {
    const parts = Array.from({ length: steps }, (_, i) => testAt(`${i * STEP_SECONDS}s`, name));
    const kind = Object.keys(parts[0] ?? {})[0] ?? '';
    const checks = { [kind]: parts.flatMap((part) => part[kind] ?? []) };
    const interval = `${STEP_SECONDS}s`;
    const own = recorded.filter(
      ({ series }) => name.includes(series.replace(/\{.*/, '')) || rule_files.length > 0,
    );
    const tests = [{ interval, input_series: own, ...checks }];
    const file = join(folder, 'tests.yaml');
    writeFileSync(file, stringify({ rule_files, evaluation_interval: interval, tests }));
    const ran = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8', maxBuffer: 2 ** 28 });
    return foundIn(`${ran.stdout}${ran.stderr}`);
  };
  const found = new Map(names.map((name) => [name, foundOf(name)]));
  rmSync(folder, { recursive: true });
  return found;
}

function foundIn(printed: string): { at: number; labels: string }[] {
  if (/SUCCESS/.test(printed)) return [];
  const parts = printed.split(/(?=\balertname: |\bexpr: )/).slice(1);
  if (parts.length === 0) throw new Error(`promtool: ${printed.slice(0, 2_000)}`);
  return parts.map((part) => {
    const [, time = ''] = /time: ((?:\d+[hms])+)/.exec(part) ?? [];
    return { at: secondsOf(time), labels: part.slice(part.indexOf('got:')) };
  });
}

const UNITS: Readonly<Record<string, number>> = { h: 3_600, m: 60, s: 1 };
const secondsOf = (time: string) =>
  Array.from(
    time.matchAll(/(\d+)([hms])/g),
    ([, count, unit = '']) => Number(count) * (UNITS[unit] ?? 0),
  ).reduce((sum, each) => sum + each, 0);
