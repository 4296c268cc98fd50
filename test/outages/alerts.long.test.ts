import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { eventually } from '../harness/eventually.ts';
import { type AlertWorld, startAlertWorld } from './alert-world.ts';
import { type Outage, type Outages, outagesOf } from './outages.ts';
import { type Found, firing, hasPromtool, values } from './promtool.ts';
import { type Recorder, record } from './recorder.ts';
import { canHurt } from './witness.ts';

const RULES = new URL('../../infra/dashboards/alerts.yaml', import.meta.url);
const DASHBOARD = new URL('../../infra/dashboards/presign.json', import.meta.url);

/**
 * Real seconds between two scrapes, each a step of five. By default the time of the rules is compressed to a fifth. Rates are then a
 * fifth of the true ones, and ages are multiplied by five.
 */
const REAL_SECONDS = Number(process.env.TEST_SCRAPE_SECONDS ?? 1);

/** `all`, or a pattern of the names of those to run. By default the test runs one of each kind. */
const WANTED = process.env.TEST_OUTAGES;

/** With the true time of the rules all outages take over an hour. */
const LONGEST_MS = 7_200_000;

/** A recording begins so many seconds before its outage: the longest window of a rule that an outage must fire. */
const BEFORE_SECONDS = 120;
const IN_TIME_SECONDS = 180;

/** The load has usage that contradicts itself and calls without a bound, for the dashboard. */
const OF_THE_LOAD: ReadonlySet<string> = new Set([
  ...['PresignUsageContradicts', 'PresignUsageUnknown', 'PresignCallsUnbounded'],
]);

type Rule = { readonly alert: string; readonly labels: { readonly severity: string } };
const rules = (parse(readFileSync(RULES, 'utf8')) as { groups: readonly { rules: readonly Rule[] }[] }).groups
  .flatMap((group) => group.rules)
  .filter(({ alert }) => !OF_THE_LOAD.has(alert));

describe.skipIf(!canHurt || !hasPromtool)('an issuer and two gateways, in separate processes', () => {
  let at: AlertWorld;
  let all: readonly Outages[];
  beforeAll(async () => {
    at = await startAlertWorld();
    all = await outagesOf(at);
  });
  afterAll(() => at.close());

  test(
    'fire alerts in each outage, none before it, and every query of the dashboard has values',
    async () => {
      const isWanted = ({ name, often }: Outages) =>
        WANTED === undefined ? often : WANTED === 'all' || new RegExp(WANTED).test(name);
      const wanted = all.filter(isWanted);
      expect(wanted).not.toEqual([]);
      const faults: string[] = [];
      for (const outages of wanted) faults.push(...(await provoke(at, outages)));
      expect(faults).toEqual([]);
    },
    LONGEST_MS,
  );
});

/** Lets outages be, prints a line for each, and returns what is wrong with their alerts. */
async function provoke(at: AlertWorld, outages: Outages): Promise<readonly string[]> {
  const undo = await outages.before?.();
  await eventually(async () => (await isWell(at)) && (await isCalm(at)));
  const recorder = record(at.world.metricsPorts, REAL_SECONDS);
  await recorder.pass(BEFORE_SECONDS);
  const began = recorder.now();
  const suffered = await suffer(at, outages, recorder.pass);
  const recorded = await recorder.close();
  await undo?.();
  const fired = firing(
    recorded,
    RULES.pathname,
    rules.map(({ alert }) => alert),
  );
  const print = (name: string, line: string) => process.stdout.write(`outage: ${name}: ${line}\n`);
  for (const [{ name }, line] of suffered) print(name, line);
  const firsts = firstsOf(fired, began);
  print(`${outages.name}, alerts`, firsts.map(({ alert, after }) => `${alert} ${after} s`).join(', '));
  const empty = outages.name === 'providers' ? emptyPanels(recorded) : [];
  return [
    ...firsts.filter(({ after }) => after < 0).map(({ alert }) => `${alert} fires before ${outages.name}`),
    ...outages.outages.flatMap((outage) => missing(outage, fired, began)),
    ...empty.map((query) => `no values: ${query}`),
  ];
}

/** The alerts that fire, and after how many seconds of the outage. */
function firstsOf(fired: Found, began: number) {
  const firsts = rules.flatMap(({ alert, labels: { severity } }) => {
    const [first] = fired.get(alert) ?? [];
    return first ? [{ alert, severity, after: first.at - began }] : [];
  });
  return firsts.sort((a, b) => a.after - b.after);
}

/** Alerts of an outage that do not fire, or too late. */
function missing({ name, alerts }: Outage, fired: Found, began: number): readonly string[] {
  return alerts.flatMap(([alert, label, seconds = IN_TIME_SECONDS]) => {
    const first = fired.get(alert)?.find(({ labels }) => labels.includes(`"${label}"`));
    if (!first) return [`${name}: ${alert} of ${label} does not fire`];
    const after = first.at - began;
    process.stdout.write(`outage: ${name}: ${alert} of ${label} after ${after} s\n`);
    return after <= seconds ? [] : [`${name}: ${alert} of ${label} fires after ${after} s`];
  });
}

/** Calls pass, URLs are issued, and no service names a problem. */
async function isWell({ world, readiness, issueCode }: AlertWorld): Promise<boolean> {
  const urls = [world.issuerUrl, ...world.gatewayUrls];
  const codes = await Promise.all([issueCode(), ...urls.map(readiness)]);
  return codes.every((code) => code === 200);
}

/** The traces of an outage of Redis in the counters of the services. */
const TRACES =
  /^presign_(?:epoch_changes_total|refusals_total\{.*code="(?:limits_unavailable|database_unavailable|internal_error)").*$/gm;
const CALM_MS = 5_000;

/** For a while no call is refused by an outage, and Redis is the same: a service may learn of the outage before after `/readyz` is well again. */
async function isCalm({ world: { metricsPorts } }: AlertWorld): Promise<boolean> {
  const look = async (port: number) => {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    return text.match(TRACES)?.join() ?? '';
  };
  const traces = async () => (await Promise.all(Object.values(metricsPorts).map(look))).join();
  const before = await traces();
  await sleep(CALM_MS);
  return before === (await traces());
}

/** Returns for each outage when the caller and `/readyz` saw it, and when calls passed again. */
async function suffer(
  at: AlertWorld,
  { outages, seconds }: Outages,
  pass: Recorder['pass'],
): Promise<readonly (readonly [Outage, string])[]> {
  let isOver = false;
  const running = outages.map(async (outage) => {
    const since = performance.now();
    await outage.begin?.();
    const seen = async (look: () => Promise<string | number>) => {
      while (!isOver) {
        const got = await look();
        if (got !== 200) return `${got} after ${((performance.now() - since) / 1_000).toFixed(1)} s`;
        await sleep(50);
      }
      return 'never';
    };
    const { readyz } = outage;
    const caller = seen(outage.ask);
    // One that ends by itself.
    const again = outage.end || readyz === undefined ? undefined : caller.then(() => passes(outage));
    const unready = readyz === undefined ? 'never' : seen(() => at.readiness(readyz));
    const repeated = readyz === undefined ? repeat(outage.ask, () => isOver) : undefined;
    return { caller, unready, repeated, again };
  });
  await pass(seconds);
  isOver = true;
  const found = await Promise.all(running);
  const lines: [Outage, string][] = [];
  for (const [i, outage] of outages.entries()) {
    const { caller, unready, repeated, again } = found[i] ?? {};
    await repeated;
    await outage.end?.();
    const recovered = outage.readyz === undefined ? '–' : await (again ?? passes(outage));
    lines.push([outage, `callers ${await caller}, /readyz ${await unready}, again after ${recovered}`]);
  }
  return lines;
}

/** How long it takes until calls pass again. */
async function passes({ ask }: Outage): Promise<string> {
  const since = performance.now();
  await eventually(async () => (await ask()) === 200);
  return `${((performance.now() - since) / 1_000).toFixed(2)} s`;
}

async function repeat(ask: () => Promise<unknown>, isOver: () => boolean): Promise<void> {
  while (!isOver()) await Promise.all([ask(), sleep(200)]);
}

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };

/** Queries of the dashboard that have no value at any time. */
function emptyPanels(recorded: Parameters<typeof values>[0]): readonly string[] {
  const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: readonly Panel[] };
  const queries = panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'presign')),
  );
  expect(queries.length).toBeGreaterThan(25);
  const found = values(recorded, queries);
  // A query without values is noticed.
  const none = 'sum(presign_none) or histogram_quantile(0.5, presign_none_bucket)';
  expect(values(recorded, [none]).get(none)).toEqual([]);
  return queries.filter((query) => found.get(query)?.length === 0);
}

test('the expected rules exist', () => {
  expect(rules.length).toBeGreaterThan(20);
});
