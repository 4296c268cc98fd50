/**
 * Sends a storm of calls to a URL that has no uses left, beside a bystander of another URL, and prints what the storm leaves and costs: rows,
 * sums and bytes in Postgres, memory of Redis and of the gateway, and the bystander's latency before, during and after.
 *
 *     REFUSALS=1000000 npx tsx bench/scale/refusals.ts
 *
 * It needs Linux, redis-server, openssl and Postgres, and starts stores of its own.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { keys, type RedisClient } from '@presign/limits';
import { PARTITIONS } from '@presign/schema';
import postgres from 'postgres';
import { Pool } from 'undici';
import { startServices } from '../table/services.ts';

const REFUSALS = Number(process.env.REFUSALS ?? 1_000_000);
const LANES = 32;
const BYSTANDER_EACH_MS = 20;
const CALM_MS = 10_000;

const services = await startServices(process.execPath);
const sql = postgres(services.databaseUrl, { max: 1, onnotice: () => {} });
const ask = { provider: 'openai', path: '/v1/chat/completions', client_api_key: 'sk-bench' };
const [spent = ''] = await services.issue('/v1/presign', { ...ask, max_uses: 1, external_user: 'storm' }, 1);
const [other = ''] = await services.issue('/v1/presign', ask, 1);
const gateway = await services.start('gateway', process.execPath);
const pools = [
  new Pool(gateway.origin, { connections: LANES }),
  new Pool(gateway.origin, { connections: 2 }),
];
const [storm, calm] = pools as [Pool, Pool];
const body = JSON.stringify({
  model: 'gpt-4o-mini',
  max_tokens: 9,
  messages: [{ role: 'user', content: 'Hi' }],
});

async function call(pool: Pool, path: string): Promise<number> {
  const headers = { 'content-type': 'application/json' };
  const answer = await pool.request({ path, method: 'POST', headers, body });
  await answer.body.dump();
  return answer.statusCode;
}

/** Calls of the bystander until `until` resolves: their latency in ms. */
async function bystander(until: Promise<unknown>): Promise<string> {
  let isOver = false;
  until.then(() => {
    isOver = true;
  });
  const times: number[] = [];
  while (!isOver) {
    const began = performance.now();
    if ((await call(calm, other)) !== 200) throw new Error('the bystander was refused');
    times.push(performance.now() - began);
    await sleep(BYSTANDER_EACH_MS);
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  return `${times.length} calls, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`;
}

async function flood(): Promise<void> {
  let left = REFUSALS;
  const lane = async () => {
    while (left-- > 0) if ((await call(storm, spent)) !== 403) throw new Error('the storm was not refused');
  };
  await Promise.all(Array.from({ length: LANES }, lane));
}

const used = async (redis: RedisClient) =>
  Number(/^used_memory:(\d+)/m.exec(await redis.info('memory'))?.[1]);
const rss = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1]) / 1024;
const entries = async () => {
  const all = Array.from({ length: PARTITIONS }, (_, at) => services.redis.xlen(keys.refused(at)));
  return Math.max(...(await Promise.all(all)));
};

await call(storm, spent);
console.log(`before: ${await bystander(sleep(CALM_MS))}`);
const before = { redis: await used(services.redis), rss: rss() };
const most = { redis: 0, rss: 0, entries: 0 };
const watch = setInterval(async () => {
  most.redis = Math.max(most.redis, await used(services.redis));
  most.rss = Math.max(most.rss, rss());
  most.entries = Math.max(most.entries, await entries());
}, 500);
const began = performance.now();
const flooding = flood();
console.log(`during: ${await bystander(flooding)}`);
await flooding;
const seconds = (performance.now() - began) / 1_000;
clearInterval(watch);
console.log(`${REFUSALS} refusals in ${seconds.toFixed(0)} s, ${Math.round(REFUSALS / seconds)} a second`);
console.log(`after: ${await bystander(sleep(CALM_MS))}`);
const [sums] = await sql`select sum(calls)::text as calls, count(*)::int as rows from refusal_days`;
const [kept] = await sql`select count(*)::int as rows from refused_calls`;
const [size] = await sql`select sum(pg_total_relation_size(inhrelid))::int as bytes from pg_inherits
  where inhparent = 'refused_calls'::regclass`;
console.log(
  `Postgres: ${kept?.rows} calls kept in ${size?.bytes} bytes; ${sums?.calls} counted in ${sums?.rows} rows`,
);
console.log(
  `Redis: ${before.redis} bytes before, at most ${most.redis}; at most ${most.entries} entries of a partition`,
);
console.log(`gateway: ${before.rss.toFixed(0)} MB before, at most ${most.rss.toFixed(0)}`);
process.exit();
