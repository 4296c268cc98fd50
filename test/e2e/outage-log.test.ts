import { setTimeout as sleep } from 'node:timers/promises';
import { keys } from '@presign/limits';
import { startEmbeddedRedis } from '@presign/local';
import { connectDatabase } from '@presign/service/database';
import { pino } from 'pino';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type Stack, startStack } from '../harness/stack.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { claimsOf } from '../issuer/ask.ts';
import { startOwnIssuer } from '../issuer/own-issuer.ts';

/** No server listens at this address. */
const away = connectDatabase('postgres://nobody@127.0.0.1:1/none');

let upstream: Upstream;
let redis: Awaited<ReturnType<typeof startEmbeddedRedis>>;
let stack: Stack;

beforeAll(async () => {
  upstream = await startUpstream();
  redis = await startEmbeddedRedis();
  stack = await startStack({
    providers: { openai: { base_url: upstream.url } },
    redisUrl: redis.url,
    gateway: { db: away.db },
  });
});
afterAll(async () => {
  await away.close();
  await stack.close();
  await redis.close();
  await upstream.close();
});

const ask = { provider: 'openai', path: '/v1/x', client_api_key: 'sk-marked' };

async function requestId(url: string, method: 'GET' | 'POST', body?: string): Promise<string> {
  const answer = await request(url, { method, body: body ?? null });
  expect(answer.statusCode).toBe(503);
  await answer.body.dump();
  return String(answer.headers['x-request-id']);
}

/** The one error line of a request. */
function errorOf(id: string, logs: readonly string[] = stack.logs): object {
  const lines = logs.map((line) => JSON.parse(line) as { level: number; request_id?: string });
  const found = lines.filter((line) => line.request_id === id && line.level === 50);
  expect(found).toHaveLength(1);
  return found[0] ?? {};
}

const refused = { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED 127.0.0.1:1' };

test('a gateway that cannot reach Postgres logs why, with the request id', async () => {
  const { url } = await stack.issue(ask);
  const { prt, jti } = claimsOf(stack, url);
  await stack.redis.del(keys.seed(prt, jti));
  const id = await requestId(url, 'POST', '{}');
  expect(errorOf(id)).toMatchObject({ msg: 'database_unavailable', ...refused });
});

test('an issuer that cannot reach Postgres logs why, with the request id, and quotes nothing', async () => {
  const logs: string[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logs.push(line) });
  const issuer = await startOwnIssuer(stack, { db: away.db, log });
  const answer = await fetch(`${issuer.issuerUrl}/v1/presign`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify(ask),
  });
  expect(answer.status).toBe(503);
  const id = String(answer.headers.get('x-request-id'));
  // The client may give a request the connection that has just been refused to another one.
  expect(errorOf(id, logs)).toMatchObject({
    msg: 'database_unavailable',
    code: expect.stringMatching(/^(ECONNREFUSED|CONNECTION_CLOSED)$/),
    message: expect.stringMatching(/^(connect ECONNREFUSED|write CONNECTION_CLOSED) 127\.0\.0\.1:1$/),
  });
  expect(logs.find((line) => line.includes('ledger is behind'))).toContain('127.0.0.1:1');
  for (const secret of [ask.client_api_key, stack.apiKey]) expect(logs.join('')).not.toContain(secret);
  await issuer.close();
});

test('a gateway that has lost Redis logs why, with the request id, for calls and status requests', async () => {
  const { url } = await stack.issue(ask);
  await redis.close();
  for (const id of [await requestId(url, 'POST', '{}'), await requestId(url.replace('/v1/x', ''), 'GET')])
    expect(errorOf(id)).toMatchObject({
      msg: 'limits_unavailable',
      message: 'there is no connection to Redis',
    });
});

test('an outage under many calls logs 20 causes a second, and how many it left out', async () => {
  const grants = await Promise.all(Array.from({ length: 5 }, () => stack.issue(ask)));
  await sleep(1_100);
  stack.logs.length = 0;
  const began = performance.now();
  const calls = grants.flatMap(({ url }) => Array.from({ length: 40 }, () => requestId(url, 'POST', '{}')));
  await Promise.all(calls);
  const seconds = Math.ceil((performance.now() - began) / 1_000);
  const lines = () => stack.logs.map((line) => JSON.parse(line) as { msg: string; left_out?: number });
  const logged = () => lines().filter(({ msg }) => msg === 'limits_unavailable').length;
  const leftOut = () =>
    lines()
      .filter(({ msg }) => msg === 'outages were not logged')
      .reduce((sum, line) => sum + (line.left_out ?? 0), 0);
  await eventually(async () => logged() + leftOut() === calls.length || undefined);
  // A second that has begun before them may have lines, too.
  expect(logged()).toBeLessThanOrEqual(20 * (seconds + 1));
});
