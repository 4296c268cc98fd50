import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbeddedRedis } from '@presign/local';
import { ledger } from '@presign/schema/ledger-tables';
import { inArray } from 'drizzle-orm';
import { request } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis } from '../chaos/redis-server.ts';
import { type Providers, startProviders } from '../gateway/providers.ts';
import { buildRoad } from '../gateway/road.ts';
import { eventually } from '../harness/eventually.ts';
import { startGatewayProcess } from '../harness/gateway-process.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { grantIn, outcomes, post, toolCall, urlOf } from '../mcp/holder.ts';
import { startMcpUpstream } from '../mcp/upstream.ts';

const LEASE_MS = 3_000;
const COMMAND_MS = 1_000;
/** Every lease runs out meanwhile. */
const SILENT_MS = 2.5 * LEASE_MS;
const CALLS = 30;
const PRICE = { input: 1_000_000, output: 4_000_000 };
const BODY = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 100 });
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const COST = 30;
const answer = (response: ServerResponse) => {
  const body = JSON.stringify({ id: '1', model: 'm', choices: [], usage: USAGE });
  response.writeHead(200, { 'content-type': 'application/json' }).end(body);
};

/** A Redis that falls silent and speaks again. */
type Silent = {
  readonly url: string;
  readonly fallSilent: () => unknown;
  readonly speak: () => unknown;
  readonly close: () => Promise<unknown>;
};

async function frozen(): Promise<Silent> {
  const redis = await makeRedis();
  const url = `redis://127.0.0.1:${redis.port}/0`;
  return { url, fallSilent: redis.freeze, speak: redis.thaw, close: redis.remove };
}

async function cutOff(): Promise<Silent> {
  const redis = await startEmbeddedRedis();
  const road = await buildRoad(redis.port);
  const url = new URL(redis.url);
  url.port = String(road.port);
  const close = async () => {
    await road.cut();
    await redis.close();
  };
  return { url: url.href, fallSilent: road.cut, speak: road.mend, close };
}

const KINDS: readonly (readonly [string, boolean, () => Promise<Silent>])[] = [
  ['a server of Redis that is frozen', hasRedisServer, frozen],
  ['an embedded Redis that is cut off', true, cutOff],
];

describe.each(KINDS)('%s for longer than a lease', (_what, isHere, make) => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function start() {
    const redis = await make();
    closers.push(redis.close);
    const providers = await startProviders();
    closers.push(providers.close);
    const servers = await startMcpUpstream();
    closers.push(servers.close);
    const stack = await startStack({
      providers: { openai: { base_url: providers.url, pricing: { m: PRICE } } },
      redisUrl: redis.url,
      redisTimeouts: { connectMs: COMMAND_MS, commandMs: COMMAND_MS },
      gateway: { leaseMs: LEASE_MS },
      gateways: 2,
    });
    closers.push(stack.close);
    closers.push(redis.speak);
    return { redis, providers, servers, stack };
  }

  const idOf = (url: string) => grantIn(new URL(url).pathname.split('/')[3] ?? '').id;
  const call = async (url: string) => {
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: BODY,
    });
    const { error } = (await body.json()) as { error?: { code: string } };
    return error?.code ?? statusCode;
  };

  /** Calls that the provider has got and not answered. */
  async function startCalls(providers: Providers, urls: readonly string[]) {
    const waiting: ServerResponse[] = [];
    providers.answer = (_seen, response) => void waiting.push(response);
    const answers = Promise.all(urls.map((url) => call(url).catch(() => 'broken')));
    await eventually(async () => (waiting.length === urls.length ? true : undefined));
    providers.answer = (_seen, response) => answer(response);
    return { waiting, answers };
  }

  const rowsOf = async (stack: Stack, urls: readonly string[]) => {
    await stack.issuer.ledger.drainAll().catch(() => {});
    return stack.db
      .select({ outcome: ledger.outcome, cost: ledger.costMicrousd, uses: ledger.uses })
      .from(ledger)
      .where(inArray(ledger.grantId, urls.map(idOf)));
  };
  const reported = async (stack: Stack) => {
    const headers = { authorization: `Bearer ${stack.apiKey}` };
    const { total } = (await (await fetch(`${stack.issuerUrl}/v1/usage`, { headers })).json()) as {
      total: { calls: number };
    };
    return total.calls;
  };

  test.skipIf(!isHere)(
    'loses no known usage: each answer is charged its cost, once, and refused calls are not charged',
    async () => {
      const { redis, providers, servers, stack } = await start();
      const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
      const limited = (await stack.issue({ ...ask, cost_limit: 1_000_000 })).url;
      const unlimited = (await stack.issue(ask)).url;
      const [first = '', second = ''] = stack.gatewayUrls;
      const tool = urlOf(
        await stack.issueMcp({ servers: [{ name: 'a', url: servers.url, transport: 'http' }], max_uses: 9 }),
        'a',
      );
      const over = (url: string, i: number) => (i % 2 === 0 ? url : url.replace(first, second));
      const urls = Array.from({ length: CALLS }, (_, i) => over(i % 3 === 0 ? unlimited : limited, i));
      expect(outcomes(await post(tool, toolCall('run')))).toEqual(['ran']);
      const { waiting, answers } = await startCalls(providers, urls);

      await redis.fallSilent();
      for (const response of waiting) answer(response);
      expect(new Set(await answers)).toEqual(new Set([200]));
      const refused = await Promise.all([
        ...urls.map(call),
        post(tool, toolCall('run')).then((heard) => outcomes(heard)[0]),
      ]);
      expect(new Set(refused)).toEqual(new Set(['limits_unavailable']));
      await sleep(SILENT_MS);
      await redis.speak();

      const rows = await eventually(async () => {
        const found = await rowsOf(stack, [limited, unlimited]).catch(() => []);
        return found.length >= CALLS ? found : undefined;
      });
      // A sweep, or a call given back late, would show by now.
      await sleep(1.5 * LEASE_MS);
      expect(await rowsOf(stack, [limited, unlimited])).toHaveLength(CALLS);
      expect(rows.map(({ outcome, cost, uses }) => [outcome, Number(cost), uses])).toEqual(
        Array.from({ length: CALLS }, () => ['settled', COST, 1]),
      );
      expect(stack.logs.filter((line) => line.includes('leases ran out'))).toEqual([]);
      expect(await reported(stack)).toBe(CALLS + 1);
      expect(await call(limited)).toBe(200);
      expect(outcomes(await post(tool, toolCall('run')))).toEqual(['ran']);
    },
  );

  test.skipIf(!isHere)(
    'charges the holds of a gateway that is killed meanwhile in full, and no row is missing or duplicated',
    async () => {
      const { redis, providers, stack } = await start();
      const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-real' };
      const { url } = await stack.issue({ ...ask, cost_limit: 1_000_000 });
      providers.answer = (_seen, response) => answer(response);
      expect(await call(url)).toBe(200);
      const killed = await startGatewayProcess(stack, { HOLD_LEASE_SECONDS: String(LEASE_MS / 1_000) });
      closers.push(killed.kill);
      const doomed = url.replace(stack.gatewayUrls[0] ?? '', killed.url);
      const half = (of: string) => Array.from({ length: CALLS / 2 }, () => of);
      const lasting = await startCalls(providers, half(url));
      const ending = await startCalls(providers, half(doomed));

      await redis.fallSilent();
      // Some answers of the killed gateway have reached their holders, and others have not.
      for (const response of [...lasting.waiting, ...ending.waiting.slice(0, CALLS / 3)]) answer(response);
      expect(new Set(await lasting.answers)).toEqual(new Set([200]));
      await sleep(500);
      await killed.kill();
      expect(new Set(await ending.answers)).toEqual(new Set([200, 'broken']));
      await sleep(SILENT_MS);
      await redis.speak();

      const rows = await eventually(async () => {
        const found = await rowsOf(stack, [url]).catch(() => []);
        return found.length >= CALLS + 1 ? found : undefined;
      });
      // A second row of a call would show by now.
      await sleep(1.5 * LEASE_MS);
      expect(await rowsOf(stack, [url])).toHaveLength(CALLS + 1);
      const costs = (outcome: string) =>
        rows.filter((each) => each.outcome === outcome).map(({ cost }) => Number(cost));
      const [settled, expired] = [costs('settled'), costs('expired')];
      // A frozen Redis still reads the settles that the killed gateway has sent.
      expect(settled.length).toBeGreaterThanOrEqual(CALLS / 2 + 1);
      expect(new Set(settled)).toEqual(new Set([COST]));
      expect(expired.length).toBeGreaterThanOrEqual(CALLS / 6);
      const [hold = 0] = expired;
      expect(hold).toBeGreaterThan(COST);
      expect(new Set(expired)).toEqual(new Set([hold]));
      const { used, spent, held } = (await (await fetch(url.replace(/\/v1\/.*/, ''))).json()) as {
        used: number;
        spent: number;
        held: number;
      };
      expect({ used, spent, held }).toEqual({
        used: CALLS + 1,
        spent: settled.length * COST + expired.length * hold,
        held: 0,
      });
    },
  );
});
