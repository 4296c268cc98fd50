import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { startEmbeddedRedis } from '@presign/local';
import { ledger } from '@presign/schema/ledger-tables';
import { Redis } from 'ioredis';
import { request } from 'undici';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { timeRecovery } from '../outages/recovery.ts';
import { OK, type Providers, startProviders } from './providers.ts';
import { buildRoad, type Road } from './road.ts';

let providers: Providers;
let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
/** A connection that the road does not cut. */
let direct: Redis;
let road: Road;
let stack: Stack;

beforeAll(async () => {
  providers = await startProviders();
  redis = await startEmbeddedRedis();
  direct = new Redis(redis.url);
  road = await buildRoad(redis.port);
  const url = new URL(redis.url);
  url.port = String(road.port);
  stack = await startStack({ providers: providers.file, redisUrl: url.href });
});
afterAll(async () => {
  await road.mend();
  await stack.close();
  await road.cut();
  direct.disconnect();
  await redis.close();
  await providers.close();
});
beforeEach(async () => {
  providers.answer = OK;
  await works(await issue(-1));
  providers.seen.length = 0;
});

const issue = async (maxUses: number) =>
  (await stack.issue({ provider: 'openai', path: '/v1/x', client_api_key: 'sk-real', max_uses: maxUses }))
    .url;

async function call(url: string) {
  const answer = await request(url, { method: 'POST', body: '{}' });
  const body = (await answer.body.json()) as { error?: { code: string } };
  return { is: body.error?.code ?? answer.statusCode, after: answer.headers['retry-after'] };
}

/** Uses of the ledger's rows since the table had `known` of them. */
async function newRows(known: number, count: number) {
  return eventually(async () => {
    // The issuer's own connection may not be back yet.
    await stack.issuer.ledger.drainAll().catch(() => {});
    const rows = await stack.db.select().from(ledger).orderBy(ledger.settledAt);
    return rows.length >= known + count ? rows.slice(known) : undefined;
  });
}
const rowCount = async () => {
  await stack.issuer.ledger.drainAll();
  return (await stack.db.select().from(ledger)).length;
};
/** Redis' own keys of the calls that it counts. */
const holds = () => direct.keys('presign:*:hold:*');
const works = (url: string) => eventually(async () => ((await call(url)).is === 200 ? true : undefined));

/** Holds the answer back until the test sends it. */
function held(): Promise<ServerResponse> {
  return new Promise((resolve) => {
    providers.answer = (_seen, response) => resolve(response);
  });
}

test('while Redis is unreachable no call passes, and calls pass again when Redis returns', async () => {
  const known = await issue(-1);
  const fresh = await issue(-1);
  expect((await call(known)).is).toBe(200);
  await road.cut();
  providers.seen.length = 0;
  for (const url of [known, fresh, known]) {
    expect(await call(url)).toEqual({ is: 'limits_unavailable', after: '1' });
  }
  expect((await request(`${stack.gatewayUrls[0]}/healthz`)).statusCode).toBe(200);
  expect(providers.seen).toHaveLength(0);
  await road.mend();
  const recovered = timeRecovery('Redis cannot be reached');
  await works(known);
  recovered();
  await works(fresh);
});

test('a call admitted before the outage of Redis is answered, and settled exactly once when Redis returns', async () => {
  const url = await issue(2);
  const known = await rowCount();
  const answering = held();
  const calling = call(url);
  const response = await answering;
  await road.cut();
  response.end('{"ok":true}');
  expect((await calling).is).toBe(200);
  await road.mend();
  expect(await newRows(known, 1)).toMatchObject([{ uses: 1, status: 200, outcome: 'settled' }]);
  providers.answer = OK;
  await works(url);
  expect((await call(url)).is).toBe('uses_exhausted');
  expect(await newRows(known, 2)).toHaveLength(2);
});

test('a settle whose reply was lost is repeated and counts once', async () => {
  const url = await issue(2);
  const known = await rowCount();
  const before = await holds();
  const answering = held();
  const calling = call(url);
  const response = await answering;
  const [own = '', ...others] = (await holds()).filter((each) => !before.includes(each));
  expect(others).toEqual([]);
  road.loseReplies();
  response.end('{"ok":true}');
  expect((await calling).is).toBe(200);
  // Redis has the settle, but the gateway got no answer to it.
  await eventually(async () => (await direct.exists(own)) === 0);
  await road.mend();
  providers.answer = OK;
  await works(url);
  expect((await call(url)).is).toBe('uses_exhausted');
  expect((await newRows(known, 2)).map((row) => row.uses)).toEqual([1, 1]);
});

test('a use that cannot be returned at once is returned later, and the holder does not wait for it', async () => {
  const url = await issue(1);
  const known = await rowCount();
  const answering = held();
  const calling = call(url);
  const response = await answering;
  await road.cut();
  response.writeHead(429).end('{"error":{"code":"theirs"}}');
  expect((await calling).is).toBe('theirs');
  await road.mend();
  expect(await newRows(known, 1)).toMatchObject([{ uses: 0, status: 429 }]);
  providers.answer = OK;
  await works(url);
});

test('a call that Redis counted as the connection failed is refunded when Redis returns, long before its lease ends', async () => {
  const url = await issue(2);
  await works(url);
  const known = await rowCount();
  providers.seen.length = 0;
  const before = (await holds()).length;
  road.loseReplies();
  const calling = call(url);
  // Redis has the call, but the gateway gets no answer to it.
  await eventually(async () => (await holds()).length > before);
  await road.cut();
  expect((await calling).is).toBe('limits_unavailable');
  await road.mend();
  await works(url);
  expect(providers.seen).toHaveLength(1);
  // The refused call is in no ledger.
  expect(await newRows(known, 1)).toMatchObject([{ uses: 1, status: 200 }]);
  expect((await call(url)).is).toBe('uses_exhausted');
});

test('a call that Redis certainly never got leaves nothing to refund', async () => {
  const url = await issue(2);
  await works(url);
  const known = await rowCount();
  const before = (await holds()).length;
  await road.cut();
  for (let i = 0; i < 20; i++) expect((await call(url)).is).toBe('limits_unavailable');
  await road.mend();
  await works(url);
  // Nothing may be given back meanwhile: a gateway tries at least once a second.
  await sleep(1_000);
  expect((await newRows(known, 1)).map((row) => row.uses)).toEqual([1]);
  // The first call may count: it came before the gateway had noticed.
  expect((await holds()).length - before).toBeLessThanOrEqual(1);
  expect((await call(url)).is).toBe('uses_exhausted');
});
