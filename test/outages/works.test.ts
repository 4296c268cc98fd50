import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectRedis, redisReady } from '@presign/limits';
import { connectDatabase } from '@presign/service/database';
import { type Metrics, serveMetrics } from '@presign/service/metrics';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { openTunnel, type Tunnel } from '../chaos/tunnel.ts';
import { startProviders } from '../gateway/providers.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { scrape } from '../harness/scrape.ts';
import { startStack } from '../harness/stack.ts';
import { startOwnIssuer } from '../issuer/own-issuer.ts';
import { canReachDatabase, reachableDatabase } from '../issuer/reachable-database.ts';
import { post, toolCall, urlOf } from '../mcp/holder.ts';
import { startMcpUpstream } from '../mcp/upstream.ts';

/** Every work of a service that docs/reference/metrics.md names. */
const worksOf = (service: string) => {
  const page = readFileSync(new URL('../../docs/reference/metrics.md', import.meta.url), 'utf8');
  const [, list = ''] = page.split(`\nJobs of the ${service}:\n\n`);
  const [works = ''] = list.split('\n\n');
  return Array.from(
    works.matchAll(/^- (`\w+`(?:, `\w+`)*): /gm),
    ([, names = '']) => names.match(/\w+/g) ?? [],
  )
    .flat()
    .sort();
};

/** Gauges of an issuer that a store answers. */
const isOfStores = (name: string) =>
  /^presign_(ledger_lag|usage_stream|fullest_partition|redis_memory|webhook(?!_tries)|pending_changes|archive)/.test(
    name,
  );
const STORE_GAUGES = 8;

let metrics: Metrics;
const undo: (() => unknown)[] = [];
beforeEach(async () => {
  metrics = await serveMetrics('127.0.0.1', 0);
  undo.push(() => metrics.close());
});
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

/** The works of a service, and for how many seconds each has failed. */
async function failing(service: string): Promise<ReadonlyMap<string, number>> {
  const { text } = await scrape(metrics.port);
  const series = new RegExp(
    `^presign_work_failing_seconds\\{service="${service}",work="(\\w+)"\\} (\\S+)$`,
    'gm',
  );
  return new Map(Array.from(text.matchAll(series), ([, work = '', seconds]) => [work, Number(seconds)]));
}

/** Waits until every work fails for longer than that. */
const allFail = async (service: string, seconds: number) => {
  const late = async () =>
    [...(await failing(service))].filter(([, each]) => each <= seconds).map(([work]) => work);
  await eventually(async () => (await late()).length === 0, 30_000).catch(() => {});
  expect(await late()).toEqual([]);
};
const noneFails = async (service: string) => {
  const left = async () =>
    [...(await failing(service))].filter(([, each]) => each >= 1).map(([work]) => work);
  await eventually(async () => (await left()).length === 0, 60_000).catch(() => {});
  expect(await left()).toEqual([]);
};

/** A way to a store, and its address. */
async function wayTo(url: string): Promise<Tunnel & { readonly url: string; readonly back: () => void }> {
  const port = Number(new URL(url).port);
  const way = await openTunnel(port);
  // After the services that go this way.
  undo.unshift(() => way.close());
  const there = Object.assign(new URL(url), { port: String(way.port) });
  return { ...way, url: there.href, back: () => way.lead(port) };
}

describe.skipIf(!canReachDatabase)('an issuer', () => {
  test('reports for each of its jobs that it fails while the stores are down, and no longer once they are back; it reports no figures of stores that do not answer', async () => {
    undo.push(await reachableDatabase());
    const stack = await startStack({ providers: {} });
    undo.push(() => stack.close());
    const [postgresWay, redisWay] = [await wayTo(stack.databaseUrl ?? ''), await wayTo(stack.redisUrl)];
    const redis = connectRedis(redisWay.url, () => {});
    undo.push(() => redis.disconnect());
    await redisReady(redis);
    const { db, close } = connectDatabase(postgresWay.url);
    undo.push(() => close().catch(() => {}));
    const folder = await mkdtemp(join(tmpdir(), 'presign-archive-'));
    undo.push(() => rm(folder, { recursive: true }));
    const dead = await freePort();
    for (const way of [postgresWay, redisWay]) way.lead(dead);
    const days = { ledgerDays: 400, grantDays: 30, usageDays: 500, refusedDays: 90 };
    const changed = { meter: metrics.meter, retention: { ...days, archive: { folder } }, auditDays: 400 };
    const issuer = await startOwnIssuer(stack, { ...changed, db, redis });
    undo.push(() => issuer.close());
    expect([...(await failing('issuer')).keys()].sort()).toEqual(worksOf('issuer'));
    await allFail('issuer', 1);
    for (const way of [postgresWay, redisWay]) way.back();
    await noneFails('issuer');
    const shown = async () => [...(await scrape(metrics.port)).metrics.keys()].filter(isOfStores).sort();
    await eventually(async () => (await shown()).length === STORE_GAUGES);
    for (const way of [postgresWay, redisWay]) way.lead(dead);
    await eventually(async () => (await shown()).length === 0).catch(() => {});
    expect(await shown()).toEqual([]);
  });
});

describe('a gateway', () => {
  test.each(['is away', 'is silent'])(
    'reports for each of its jobs that it fails while Redis %s, and no longer once it is back',
    async (how) => {
      const providers = await startProviders();
      undo.push(() => providers.close());
      const servers = await startMcpUpstream();
      undo.push(() => servers.close());
      const stack = await startStack({ providers: providers.file, gateways: 1 });
      undo.push(() => stack.close());
      const way = await wayTo(stack.redisUrl);
      const gateway = await stack.addGateway({ redisUrl: way.url, meter: metrics.meter, leaseMs: 3_000 });
      const here = (url: string) => url.replace(stack.gatewayUrls[0] ?? '', gateway);
      const ask = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-real' };
      const { url } = await stack.issue({ ...ask, max_uses: 1 });
      const bundle = await stack.issueMcp({ servers: [{ name: 'a', url: servers.url, transport: 'http' }] });
      const arrived = new Promise<ServerResponse>((resolve) => {
        providers.answer = (_seen, response) => resolve(response);
      });
      const call = () =>
        request(here(url), { method: 'POST', body: '{}' }).then((answer) => answer.body.dump());
      const called = call().catch(() => {});
      const response = await arrived;
      await post(here(urlOf(bundle, 'a')), toolCall('run'));
      await call();
      // The refused call and the end of the MCP call are sent a second later.
      if (how === 'is away') way.lead(await freePort());
      else way.silence();
      expect([...(await failing('gateway')).keys()].sort()).toEqual(worksOf('gateway'));
      await allFail('gateway', 1.5);
      way.back();
      await noneFails('gateway');
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
      await called;
    },
  );
});
