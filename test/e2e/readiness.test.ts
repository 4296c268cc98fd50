import { connectRedis, keys, type RedisClient, redisReady } from '@presign/limits';
import { startEmbeddedRedis } from '@presign/local';
import type { Problem, Readiness } from '@presign/service';
import { connectDatabase } from '@presign/service/database';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasRedisServer, makeRedis } from '../chaos/redis-server.ts';
import { buildRoad } from '../gateway/road.ts';
import { eventually } from '../harness/eventually.ts';
import { freePort } from '../harness/free-port.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { issue } from '../issuer/ask.ts';
import { startOwnIssuer } from '../issuer/own-issuer.ts';

let stack: Stack;
/** A Redis that no issuer drains, so that its partitions stay as a test sets them. */
let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
let client: RedisClient;

beforeAll(async () => {
  stack = await startStack({ providers: { openai: { base_url: 'http://127.0.0.1:9' } } });
  redis = await startEmbeddedRedis();
  client = connectRedis(redis.url, () => {});
  await redisReady(client);
});
afterAll(async () => {
  client.disconnect();
  await stack.close();
  await redis.close();
});

async function readiness(service: string): Promise<Readiness & { readonly code: number }> {
  const answer = await fetch(`${service}/readyz`);
  return { ...((await answer.json()) as Readiness), code: answer.status };
}
/** Waits until a service is ready, or unready. */
const becomes = (service: string, status: Readiness['status']) =>
  eventually(async () => {
    const found = await readiness(service);
    return found.status === status ? found : undefined;
  });
const problemOf = ({ problems }: { readonly problems: readonly Problem[] }) =>
  problems.map(({ store, problem }) => `${store} ${problem}`);
const setPartitions = (from: number, to: number, state: 'open' | 'closed') =>
  Promise.all(
    Array.from({ length: to - from }, (_, i) => client.hset(keys.partition(from + i), 'state', state)),
  );

describe('a gateway', () => {
  test('is ready without problems while all is well', async () => {
    const bundled = { source: 'bundled', id: expect.any(String), date: expect.any(String), waits: false };
    expect(await readiness(stack.gatewayUrls[0] ?? '')).toEqual({
      ...{ code: 200, status: 'ready', problems: [] },
      prices: [bundled, bundled],
      knowledge: bundled,
    });
  });

  test('is ready while one partition is open, and reports how many are not', async () => {
    const gateway = await stack.addGateway({ redisUrl: redis.url });
    const unready = await becomes(gateway, 'unready');
    expect(unready.code).toBe(503);
    expect(problemOf(unready)[0]).toMatch(/^redis 64 of 64 partitions are closed/);
    await setPartitions(0, 3, 'open');
    const ready = await becomes(gateway, 'ready');
    expect(ready.code).toBe(200);
    expect(problemOf(ready)[0]).toMatch(/^redis 61 of 64 partitions are closed/);
    expect(ready.problems[0]?.effect).toContain('503 limits_unavailable');
    await setPartitions(3, 64, 'open');
    await eventually(async () => ((await readiness(gateway)).problems.length === 0 ? true : undefined));
    await setPartitions(0, 64, 'closed');
    expect((await becomes(gateway, 'unready')).code).toBe(503);
  });

  test('stays ready for five seconds without Redis, is then not ready, and is ready again when Redis returns', async () => {
    await setPartitions(0, 64, 'open');
    const road = await buildRoad(redis.port);
    const url = new URL(redis.url);
    url.port = String(road.port);
    const gateway = await stack.addGateway({ redisUrl: url.href });
    await becomes(gateway, 'ready');
    await road.cut();
    const first = await eventually(async () => {
      const found = await readiness(gateway);
      return found.problems.length > 0 ? found : undefined;
    });
    expect([first.status, ...problemOf(first)]).toEqual(['ready', 'redis does not answer']);
    expect(problemOf(await becomes(gateway, 'unready'))).toEqual(['redis does not answer']);
    await road.mend();
    expect((await becomes(gateway, 'ready')).problems).toEqual([]);
    await road.cut();
  });

  test.skipIf(!hasRedisServer)('is not ready as soon as Redis is read-only', async () => {
    const server = await makeRedis();
    for (let at = 0; at < 64; at++) await server.command('HSET', keys.partition(at), 'state', 'open');
    const gateway = await stack.addGateway({ redisUrl: `redis://127.0.0.1:${server.port}` });
    expect((await becomes(gateway, 'ready')).problems).toEqual([]);
    // A replica whose master is away keeps what it has, and takes no writes.
    await server.command('REPLICAOF', '127.0.0.1', String(await freePort()));
    const found = await becomes(gateway, 'unready');
    expect([found.code, ...problemOf(found)]).toEqual([503, 'redis is read-only']);
    await server.command('REPLICAOF', 'NO', 'ONE');
    expect((await becomes(gateway, 'ready')).code).toBe(200);
    await server.remove();
  });

  test('is ready without Postgres, and says which URLs get 503', async () => {
    const { db, close } = connectDatabase(`postgres://nobody@127.0.0.1:${await freePort()}/none`);
    const gateway = await stack.addGateway({ db });
    const found = await readiness(gateway);
    expect([found.code, ...problemOf(found)]).toEqual([200, 'postgres does not answer']);
    expect(found.problems[0]?.effect).toContain('503 database_unavailable');
    await close();
  });
});

test('an issuer without Redis issues, is ready, and reports what waits', async () => {
  const away = connectRedis(`redis://127.0.0.1:${await freePort()}`, () => {});
  const issuer = await startOwnIssuer(stack, { redis: away });
  const found = await readiness(issuer.issuerUrl);
  expect([found.code, found.status, ...problemOf(found)]).toEqual([200, 'ready', 'redis does not answer']);
  expect(found.problems[0]?.effect).toContain('Revocations');
  await issue({ ...stack, ...issuer, issuer: stack.issuer }, {});
  await issuer.close();
  away.disconnect();
});

describe('a machine whose clock differs from that of Redis', () => {
  const shifted = (seconds: number) => () => Date.now() + seconds * 1_000;
  const clockOf = (service: string) =>
    eventually(async () => {
      const { problems, code } = await readiness(service);
      const found = problems.find(({ store }) => store === 'clock');
      return found && { ...found, code };
    });
  const refusedAtFirst = expect.stringMatching(
    /In its first (29|30) seconds, each gets 401 token_invalid\.$/,
  );

  test.each([
    [-90, 'behind', refusedAtFirst],
    [90, 'ahead of', expect.stringMatching(/^URLs expire here (89|90) seconds early\.$/)],
    [-30, 'behind', expect.stringMatching(/^URLs expire here (29|30) seconds late\.$/)],
  ])(
    'by %i seconds is ready as a gateway, and reports it in its log and in /readyz',
    async (seconds, side, effect) => {
      const lines = stack.logs.length;
      const gateway = await stack.addGateway({ now: shifted(seconds) });
      const problem = expect.stringMatching(new RegExp(`^is (29|30|89|90) seconds ${side} that of Redis$`));
      expect(await clockOf(gateway)).toEqual({ code: 200, store: 'clock', problem, effect });
      const said = stack.logs.slice(lines).map((line) => JSON.parse(line) as Record<string, unknown>);
      const about = said.filter(({ clock_offset_ms }) => clock_offset_ms !== undefined);
      expect(about).toMatchObject([{ level: 40, msg: 'the clock differs from that of Redis' }]);
      expect(Number(about[0]?.clock_offset_ms) / 1_000).toBeCloseTo(seconds, 0);
    },
  );

  test.each([
    [90, 'ahead of', refusedAtFirst],
    [-90, 'behind', expect.stringMatching(/^New URLs expire (89|90) seconds early\.$/)],
  ])('by %i seconds is ready as an issuer, and reports it', async (seconds, side, effect) => {
    const issuer = await startOwnIssuer(stack, { now: shifted(seconds) });
    const problem = expect.stringMatching(new RegExp(`^is (89|90) seconds ${side} that of Redis$`));
    expect(await clockOf(issuer.issuerUrl)).toEqual({ code: 200, store: 'clock', problem, effect });
    await issuer.close();
  });
});
