import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { call } from '../chaos/load.ts';
import { startWorld, type World } from '../chaos/world.ts';
import { eventually } from '../harness/eventually.ts';
import { type Answer, startUpstream, type Upstream } from '../harness/upstream.ts';
import { type Found, firing, hasPromtool, values } from './promtool.ts';
import { record } from './recorder.ts';
import { canHurt } from './witness.ts';

const RULES = new URL('../../infra/dashboards/alerts.yaml', import.meta.url);
const DASHBOARD = new URL('../../infra/dashboards/presign.json', import.meta.url);

/**
 * Real seconds between two scrapes, each a step of five. By default the time of the rules is compressed to a fifth. Rates are then a
 * fifth of the true ones. Ages and delays that a service states in seconds are true, so no rule on them is awaited here.
 */
const REAL_SECONDS = Number(process.env.TEST_SCRAPE_SECONDS ?? 1);

/** With the true time of the rules it takes ten minutes. */
const LONGEST_MS = 1_800_000;

const CALL = { model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 16 };
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const answering =
  (usage: object, status = 200): Answer =>
  (_seen, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: '1', model: 'm', choices: [], usage }));
/** The upstream of each provider. */
const UPSTREAMS: Readonly<Record<string, Answer>> = {
  openai: answering(USAGE),
  fails: answering(USAGE, 500),
  hangs: () => {},
  contradicts: answering({ ...USAGE, prompt_tokens: 0, total_tokens: 5 }),
  unknown: answering({ ...USAGE, new_tokens: 3 }),
};

type Fault = {
  readonly name: string;
  readonly seconds: number;
  readonly begin: () => Promise<unknown>;
  readonly end: () => Promise<unknown>;
  /** Calls as a caller does. Returns 200, or what the caller got. */
  readonly ask: () => Promise<string | number>;
  readonly readyz: string | undefined;
  /** Alerts that must fire before it ends, with a label of theirs. */
  readonly alerts: readonly (readonly [alert: string, label: string])[];
};

describe.skipIf(!canHurt || !hasPromtool)('an issuer and two gateways, in processes of their own,', () => {
  const upstreams: Upstream[] = [];
  let world: World;
  beforeAll(async () => {
    const providers: Record<string, object> = {};
    for (const [name, answer] of Object.entries(UPSTREAMS)) {
      const upstream = await startUpstream(answer);
      upstreams.push(upstream);
      const pricing = { m: { input: 1_000_000, output: 4_000_000 } };
      providers[name] = { ...(name !== 'openai' && { extends: 'openai' }), base_url: upstream.url, pricing };
    }
    world = await startWorld(providers);
  });
  afterAll(async () => {
    await world.close();
    for (const upstream of upstreams) await upstream.close();
  });

  const issue = (provider: string, fields: object = {}) =>
    world.issue({ provider, path: '/v1/chat/completions', client_api_key: 'sk-1', ...fields });
  const at = (gateway: 0 | 1, url: string) => url.replace(world.gatewayUrls[0], world.gatewayUrls[gateway]);
  const ask = async (url: string, body: object = CALL) => {
    const { status, code } = await call(url, body);
    return code ?? status;
  };
  const issueCode = async () => {
    const headers = { authorization: `Bearer ${world.apiKey}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-1' });
    const answer = await fetch(`${world.issuerUrl}/v1/presign`, { method: 'POST', headers, body }).catch(
      () => {},
    );
    if (!answer) return 0;
    const { error } = (await answer.json()) as { error?: { code: string } };
    return error?.code ?? answer.status;
  };
  /** 200 if `/readyz` is ready and names no problem. */
  const readiness = async (url: string) => {
    const answer = await fetch(`${url}/readyz`).catch(() => {});
    if (!answer) return 0;
    const { problems } = (await answer.json()) as { problems: readonly unknown[] };
    return problems.length > 0 ? 503 : answer.status;
  };

  const faultsOf = async (): Promise<readonly Fault[]> => {
    const [good, fails, hangs] = [await issue('openai'), await issue('fails'), await issue('hangs')];
    const here = () => ask(at(0, good));
    const hanging: Promise<unknown>[] = [];
    const hang = async () => {
      for (let i = 0; i < 25; i++) hanging.push(ask(at(1, hangs)));
    };
    for (const gateway of [0, 1] as const) expect(await ask(at(gateway, good))).toBe(200);
    const nothing = async () => {};
    return [
      {
        ...{
          name: 'a provider hangs',
          seconds: 150,
          begin: hang,
          end: nothing,
          readyz: world.gatewayUrls[1],
        },
        ask: () => Promise.race([ask(at(1, hangs)), sleep(1_000, 'no answer')]),
        alerts: [['PresignProviderHangs', 'gateway-2']],
      },
      {
        ...{ name: 'a provider answers 500', seconds: 100, begin: nothing, end: nothing },
        ...{ ask: () => ask(at(0, fails)), readyz: world.gatewayUrls[0] },
        alerts: [['PresignProviderFails', 'fails']],
      },
      {
        ...{ name: 'a gateway is killed', seconds: 90, readyz: world.gatewayUrls[1] },
        ...{ begin: () => world.gateways[1].kill(), end: () => world.gateways[1].start() },
        ask: () => ask(at(1, good)),
        alerts: [['PresignDown', 'gateway-2']],
      },
      {
        ...{ name: 'Redis is stopped', seconds: 90, readyz: world.gatewayUrls[0], ask: here },
        ...{ begin: () => world.master().kill(), end: () => world.master().start() },
        alerts: [
          ['PresignCallsRefusedByOutage', 'critical'],
          ['PresignStoreProblem', 'redis'],
          ['PresignLedgerUnknown', 'critical'],
        ],
      },
      {
        ...{ name: 'Postgres is stopped', seconds: 90, readyz: world.issuerUrl, ask: issueCode },
        ...{ begin: () => world.postgres.stop(), end: () => world.postgres.start() },
        alerts: [
          ['PresignIssuerFails', 'critical'],
          ['PresignStoreProblem', 'postgres'],
        ],
      },
    ];
  };

  test(
    'have alerts that fire in each outage that is provoked, and a dashboard whose every query has values',
    async () => {
      const others = [
        [await issue('openai', { max_uses: 1 }), CALL],
        [await issue('contradicts', { cost_limit: 1_000_000 }), CALL],
        [await issue('unknown', { cost_limit: 1_000_000 }), CALL],
        [await issue('openai', { cost_limit: 1_000_000 }), { ...CALL, new_field: 1 }],
      ] as const;
      const faults = await faultsOf();
      const recorder = record(world.metricsPorts, REAL_SECONDS);
      let isOver = false;
      const served = await issue('openai');
      const load = async () => {
        while (!isOver) {
          await Promise.all([ask(at(0, served)), issueCode(), sleep(100)]);
          for (const [url, body] of others) await ask(at(0, url), body);
        }
      };
      const loading = load();
      await recorder.pass(30);
      const suffered: (readonly [Fault, began: number, line: string])[] = [];
      for (const fault of faults) {
        const began = recorder.now();
        const line = await suffer(fault, recorder.pass);
        suffered.push([fault, began, line]);
        await recorder.pass(15);
      }
      isOver = true;
      await loading;
      const recorded = await recorder.close();
      if (process.env.TEST_RECORDING)
        writeFileSync(process.env.TEST_RECORDING, JSON.stringify({ recorded, suffered }));
      const alerts = [...new Set(faults.flatMap((fault) => fault.alerts.map(([name]) => name)))];
      const fired = firing(recorded, RULES.pathname, alerts);
      for (const [fault, began, line] of suffered) {
        const first = fault.alerts.map(([name, label]) => [name, firstOf(fired, name, label)] as const);
        const after = first.map(([name, seconds]) => `${name} after ${(seconds ?? Number.NaN) - began} s`);
        process.stdout.write(`outage: ${fault.name}: ${line}; ${after.join(', ')}\n`);
        for (const [name, seconds = 0] of first) {
          expect(seconds, name).toBeGreaterThanOrEqual(began);
          expect(seconds, name).toBeLessThanOrEqual(began + fault.seconds + 60);
        }
      }
      expect(emptyPanels(recorded)).toEqual([]);
      // A query without values is noticed.
      const none = 'sum(presign_none) or histogram_quantile(0.5, presign_none_bucket)';
      expect(values(recorded, [none]).get(none)).toEqual([]);
    },
    LONGEST_MS,
  );

  /** Lets a fault be for its time. Returns when the caller and `/readyz` saw it, and when calls passed again. */
  async function suffer(fault: Fault, pass: (seconds: number) => Promise<void>): Promise<string> {
    const since = performance.now();
    let over = false;
    const seconds = () => ((performance.now() - since) / 1_000).toFixed(1);
    await fault.begin();
    const seen = async (look: () => Promise<string | number>) => {
      const is = await eventually(async () => {
        const got = await look();
        return got !== 200 && `${got} after ${seconds()} s`;
      });
      return is;
    };
    const caller = seen(fault.ask);
    const { readyz = '' } = fault;
    const isOfProvider = fault.name.startsWith('a provider');
    const unready = isOfProvider ? 'never' : seen(() => readiness(readyz));
    const whole = isOfProvider ? repeat(fault.ask, () => over) : undefined;
    await pass(fault.seconds);
    over = true;
    await whole;
    await fault.end();
    const ended = performance.now();
    if (!isOfProvider) await eventually(async () => (await fault.ask()) === 200);
    const recovered = ((performance.now() - ended) / 1_000).toFixed(2);
    return `callers ${await caller}, /readyz ${await unready}, passes again after ${recovered} s`;
  }
});

async function repeat(ask: () => Promise<unknown>, isOver: () => boolean): Promise<void> {
  while (!isOver()) await Promise.all([ask(), sleep(200)]);
}

/** The first second at which an alert fires with that label. */
const firstOf = (fired: Found, name: string, label: string) =>
  fired.get(name)?.find(({ labels }) => labels.includes(`"${label}"`))?.at;

type Panel = { readonly title: string; readonly targets?: readonly { readonly expr: string }[] };

/** Queries of the dashboard that have no value at any time. */
function emptyPanels(recorded: Parameters<typeof values>[0]): readonly string[] {
  const { panels } = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as { panels: readonly Panel[] };
  const queries = panels.flatMap(({ targets = [] }) =>
    targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '1m').replaceAll('$job', 'presign')),
  );
  expect(queries.length).toBeGreaterThan(25);
  const found = values(recorded, queries);
  return queries.filter((query) => found.get(query)?.length === 0);
}

test('the rules that are awaited are there', () => {
  const { groups } = parse(readFileSync(RULES, 'utf8')) as {
    groups: readonly { rules: readonly unknown[] }[];
  };
  expect(groups[0]?.rules.length).toBeGreaterThan(20);
});
